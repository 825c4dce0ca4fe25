"""Who takes kernel memory and hands it on is charged by nobody but the kernel; what is in flight
stays with whom it was traced to.

Of pipes, vmsplice and io_uring the kernel charges the pages to the cgroup that took them, and a
trace of uncounted memory leaves charged pages out: so no claim may name who took them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.cgroups import Cgroup, cgroup, missing

MIB = 1 << 20
HELD_MIB = 96
HANDED_ON = Path(__file__).with_name("handed_on.py")
TRACED_SECONDS = 8

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.skipif(os.geteuid() != 0, reason="a trace needs root: make test-system"),
]


@pytest.fixture
def groups() -> Iterator[tuple[Cgroup, Cgroup]]:
    with ExitStack() as stack:
        taker, keeper = (
            stack.enter_context(cgroup(f"seawall-{name}-{os.getpid()}", 512 * MIB))
            for name in ("taker", "keeper")
        )
        yield taker, keeper


def traced(kind: str, taker: Cgroup, keeper: Cgroup) -> dict[str, Any]:
    """``memory --who`` over the moment in which it is taken and handed on."""
    arguments = [kind, HELD_MIB, taker.path / "cgroup.procs", keeper.path / "cgroup.procs"]
    look = [sys.executable, "-m", "seawall", "memory", "--who", "--for", TRACED_SECONDS, "--json"]
    with subprocess.Popen(
        [sys.executable, str(HANDED_ON), *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        with subprocess.Popen(list(map(str, look)), stdout=subprocess.PIPE, text=True) as looking:
            try:
                looking.wait(TRACED_SECONDS / 2)
            except subprocess.TimeoutExpired:
                process.stdin.write("go\n")
                process.stdin.flush()
                assert process.stdout.readline() == "held\n"
            told = looking.communicate(timeout=60)[0]
        process.kill()
    page: dict[str, Any] = json.loads(told)
    return page


def uncounted_of(page: dict[str, Any], group: Cgroup) -> list[dict[str, Any]]:
    name = "/" + group.path.name
    return [claim for claim in page["claims"] if claim["cgroup"] == name and not claim["counted"]]


@pytest.mark.parametrize("kind", ["pipe", "vmsplice", "rings", "buffers"])
def test_what_is_charged_is_nobodys_uncounted_memory(
    kind: str, groups: tuple[Cgroup, Cgroup]
) -> None:
    page = traced(kind, *groups)
    for group in groups:
        for claim in uncounted_of(page, group):
            assert claim["least_bytes"] == 0, claim
            assert claim["bytes"] < 8 * MIB, claim
        names = {suspect["cgroup"] for suspect in page["suspects"]}
        assert "/" + group.path.name not in names


def test_a_ring_in_flight_stays_with_whom_it_was_traced_to(groups: tuple[Cgroup, Cgroup]) -> None:
    """Its sockets lie in the queue of a socket of his own, and no process has them open."""
    taker, keeper = groups
    page = traced("inflight", taker, keeper)
    (claim,) = uncounted_of(page, taker)
    assert (claim["class"], claim["confidence"]) == ("ring", "traced")
    assert claim["least_bytes"] > 0.9 * HELD_MIB * MIB
    assert not uncounted_of(page, keeper)
