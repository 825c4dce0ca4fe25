import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import parse_case

from seawall.problems import ParseProblem
from seawall.readings import cgroup_cpu, oom_score_adj
from seawall.readings.cgroup_cpu import CpuCgroups, parse_max, parse_quota
from seawall.readings.oom_score_adj import OomScoreAdjs
from seawall.readings.reading import UNLIMITED

V2 = b"""why: v2
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
cpu memory
=== /sys/fs/cgroup/a/cpu.max
150000 100000
=== /sys/fs/cgroup/a/cpu.weight
79
=== /sys/fs/cgroup/b/cpu.max
max 100000
=== /sys/fs/cgroup/b/cpu.weight
nonsense
=== /sys/fs/cgroup/c/cpu.max !refused
=== /sys/fs/cgroup/c/cpu.weight
100
"""
V1 = b"""why: v1
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
=== /sys/fs/cgroup/cpu,cpuacct/docker/cpu.shares
512
=== /sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us
-1
=== /sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us
100000
"""


def test_v2() -> None:
    found = cgroup_cpu.read(parse_case(V2).rounds[0])
    assert isinstance(found, CpuCgroups)
    assert set(found.by_path) == {"/a"}
    assert found.by_path["/a"].limit_cores == 1.5
    assert (found.by_path["/a"].weight, found.by_path["/a"].shares) == (79, None)
    assert sorted(u.why for u in found.unread) == ["malformed", "refused"]


def test_v1() -> None:
    found = cgroup_cpu.read(parse_case(V1).rounds[0])
    assert isinstance(found, CpuCgroups)
    docker = found.by_path["/docker"]
    assert docker.limit_cores is UNLIMITED
    assert (docker.weight, docker.shares) == (None, 512)


@pytest.mark.parametrize("data", [b"", b"1", b"max", b"1 2 3", b"-1 5", b"5 0", b"x 1", b"1 max"])
def test_malformed_max(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse_max(data)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_only_parse_problems_escape(one: bytes, two: bytes) -> None:
    for parse in (lambda: parse_max(one), lambda: parse_quota(one, two),
                  lambda: oom_score_adj.parse(one)):  # fmt: skip
        try:
            parse()
        except ParseProblem:
            continue


def test_oom_score_adj() -> None:
    case = b"why: x\n=== /proc/7/oom_score_adj\n-997\n=== /proc/8/oom_score_adj\n1001\n"
    found = oom_score_adj.read(parse_case(case + b"=== /proc/x/oom_score_adj\n1\n").rounds[0])
    assert isinstance(found, OomScoreAdjs)
    assert found.by_pid == {7: -997}
    assert [(u.path, u.why) for u in found.unread] == [("/proc/8/oom_score_adj", "malformed")]
