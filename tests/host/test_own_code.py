"""Code that stays in memory: asked of the kernel, under a limit and without the right to."""

import re
import resource
import subprocess
import sys

import pytest

from seawall.host import own_code

SHOW = """
import ctypes, os, resource, sys
from seawall.host import own_code
soft = {soft}
if soft is not None:
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, soft))
if {is_nobody} and os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
own_code.keep()
held = bytearray(32 << 20)  # under a limit that locks fall under, this would fail
print(open("/proc/self/status").read())
"""


def locked_bytes(*, soft: int | None = None, is_nobody: bool = False) -> int:
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(soft=soft, is_nobody=is_nobody)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    found = re.search(r"VmLck:\s+(\d+) kB", done.stdout)
    assert found
    return int(found[1]) << 10


def test_under_a_limit_without_the_right_nothing_is_locked_and_all_goes_on() -> None:
    assert locked_bytes(soft=64 << 10, is_nobody=True) == 0


def test_without_a_limit_code_stays() -> None:
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] != resource.RLIM_INFINITY:
        pytest.skip("RLIMIT_MEMLOCK is limited here: ulimit -l unlimited")
    assert locked_bytes(soft=resource.RLIM_INFINITY, is_nobody=True) > 4 << 20


@pytest.mark.system
def test_root_needs_no_limit() -> None:
    assert locked_bytes(soft=64 << 10) > 4 << 20


def test_a_small_machine_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"SC_PHYS_PAGES": (512 << 20) // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(own_code.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(own_code, "_is_unlimited", lambda: pytest.fail("it was not asked"))
    own_code.keep()
