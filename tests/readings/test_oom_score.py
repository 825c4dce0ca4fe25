"""/proc/PID/oom_score of every process, swappiness of a v1 cgroup, capabilities of a process."""

import os
from pathlib import Path

import pytest
from tests.case_host import parse_case
from tests.readings.kernel_files import this_machine

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import oom_score, process_status
from seawall.readings.memcg_swappiness import read_swappiness
from seawall.readings.oom_score import OomScores

HOST = b"""why: x
=== /proc/1/oom_score
0
=== /proc/7/oom_score
1333
=== /proc/8/oom_score
-1
=== /proc/9/oom_score !refused
=== /sys/fs/cgroup/memory/a/memory.swappiness
0
"""


def test_all_that_were_read_and_what_was_not() -> None:
    found = oom_score.read(parse_case(HOST).rounds[0])
    assert isinstance(found, OomScores)
    assert found.by_pid == {1: 0, 7: 1333}
    assert [(u.path, u.why) for u in found.unread] == [
        ("/proc/8/oom_score", "malformed"),
        ("/proc/9/oom_score", "refused"),
    ]


@pytest.mark.parametrize("data", [b"", b"6 7", b"-3\n", b"0x10", b"1_0"])
def test_anything_else_is_a_parse_problem(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        oom_score.parse(data)


def test_this_machine() -> None:
    with this_machine() as host:
        found = oom_score.read(host)
    assert isinstance(found, OomScores)
    mine = int(Path("/proc/self/oom_score").read_text())
    assert abs(found.by_pid[os.getpid()] - mine) <= 1


def test_swappiness_of_a_cgroup() -> None:
    host = parse_case(HOST).rounds[0]
    assert read_swappiness(host, "/sys/fs/cgroup/memory/a") == 0
    assert isinstance(read_swappiness(host, "/sys/fs/cgroup/memory/b"), Unread)


def test_effective_capabilities() -> None:
    head = b"Name:\ta\nPid:\t1\n"
    assert process_status.parse(head + b"CapEff:\t000001ffffffffff\n").cap_eff == (1 << 41) - 1
    assert process_status.parse(head).cap_eff is None
    with pytest.raises(ParseProblem, match="CapEff"):
        process_status.parse(head + b"CapEff:\tall\n")
