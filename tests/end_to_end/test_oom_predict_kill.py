"""The prediction against the OOM killer itself, in a cgroup of one's own with a limit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.cgroups import Cgroup, cgroup, missing
from tests.end_to_end.verbs import seawall

pytestmark = [pytest.mark.system, pytest.mark.timeout(60)]

PLANTER = Path(__file__).with_name("planted_sizes.py")
LIMIT_BYTES = 128 << 20
# The small one with 600 is first (+ 77 MiB), then by size; the planter itself is far smaller.
PLANTED = ("20:0", "44:0", "4:600", "30:0")
FILLER = """
import mmap, time
held = []
while True:
    area = mmap.mmap(-1, 1 << 18, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(b"x" * (1 << 18))
    held.append(area)
    time.sleep(0.01)
"""


@pytest.fixture
def small() -> Iterator[Cgroup]:
    if why := missing():
        pytest.skip(why)
    with cgroup("seawall-test-predict", LIMIT_BYTES) as group:
        for name, value in (("memory.memsw.limit_in_bytes", LIMIT_BYTES), ("memory.swap.max", 0)):
            if (group.path / name).exists():
                (group.path / name).write_text(str(value))
        yield group


def start(group: Cgroup, *words: str) -> subprocess.Popen[bytes]:
    """A program that enters the group before it takes any memory."""
    line = f'echo 0 > {group.entry} && exec "$@"'
    return subprocess.Popen(
        ["sh", "-c", line, "sh", sys.executable, *words],
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_they_die_in_the_predicted_order(small: Cgroup) -> None:
    planter = start(small, str(PLANTER), *PLANTED)
    filler: subprocess.Popen[bytes] | None = None
    try:
        assert planter.stdout is not None
        rows = [line.split() for line in iter(planter.stdout.readline, b"ready\n")]
        sizes = {int(pid): int(mib) for pid, mib, _ in rows}
        page = seawall("oom", "predict", "--json", f"/{small.path.name}").answered().document
        assert (page["scope"], page["limit"]["bytes"]) == ("memcg", LIMIT_BYTES)
        predicted = [row["pid"] for row in page["ranking"]]
        assert [sizes[pid] for pid in predicted if pid in sizes] == [4, 44, 30, 20]
        filler = start(small, "-c", FILLER)
        died = watch(sizes, 2)
        assert died == predicted[:2], (died, predicted, sizes)
    finally:
        for child in (planter, filler):
            if child is not None:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate()


def watch(pids: dict[int, int], number: int) -> list[int]:
    """The first that die, in order."""
    died: list[int] = []
    until = time.monotonic() + 30
    while len(died) < number:
        assert time.monotonic() < until, f"only {died} of {pids} died"
        died += [pid for pid in pids if pid not in died and is_dead(pid)]
        time.sleep(0.002)
    return died
