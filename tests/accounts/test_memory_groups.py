"""Cgroups with their limits: which of them tells the story."""

import time

from tests.case_host import parse_case

from seawall.accounts.cgroup_memory.memory_groups import (
    MemoryGroup,
    MemoryGroups,
    ancestors,
    innermost,
    parent,
)
from seawall.accounts.rates import gained
from seawall.host.host import Unread
from seawall.readings.memcg import Memcg
from seawall.readings.snapshot import Snapshot

TREE = b"""why: a pod with two containers, one of which has a cgroup of its own inside
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
memory
=== /sys/fs/cgroup/pod/memory.current
1000
=== /sys/fs/cgroup/pod/memory.max
max
=== /sys/fs/cgroup/pod/cgroup.procs
=== /sys/fs/cgroup/pod/a/memory.current
600
=== /sys/fs/cgroup/pod/a/memory.max
1000
=== /sys/fs/cgroup/pod/a/cgroup.procs
=== /sys/fs/cgroup/pod/a/inner/memory.current
500
=== /sys/fs/cgroup/pod/a/inner/memory.max
max
=== /sys/fs/cgroup/pod/a/inner/cgroup.procs
11
12
=== /sys/fs/cgroup/pod/b/memory.current
300
=== /sys/fs/cgroup/pod/b/memory.max
0
=== /sys/fs/cgroup/pod/b/cgroup.procs
13
"""


def tree(text: bytes = TREE) -> MemoryGroups:
    groups = Snapshot(parse_case(text).rounds[0]).get(MemoryGroups)
    assert not isinstance(groups, Unread), groups
    return groups


def group(path: str, usage: int) -> MemoryGroup:
    memcg = Memcg(
        path=path, version=2, usage=usage, limit=1000, stat={}, events={}, events_local={}
    )
    return MemoryGroup(memcg, None, "/sys/fs/cgroup" + path, ())


def test_processes_below_count_for_every_cgroup_above() -> None:
    groups = tree()
    assert {path: g.pids for path, g in groups.by_path.items()} == {
        "/pod": (11, 12, 13),
        "/pod/a": (11, 12),
        "/pod/a/inner": (11, 12),
        "/pod/b": (13,),
    }


def test_only_a_number_is_a_limit() -> None:
    groups = tree()
    assert [g.path for g in groups.limited()] == ["/pod/a"]
    assert [g.path for g in groups.at(0.6)] == ["/pod/a"]
    assert groups.at(0.61) == []
    assert groups.by_path["/pod/a"].limit_file == "/sys/fs/cgroup/pod/a/memory.max"


def test_above_and_children() -> None:
    groups = tree()
    assert [g.path for g in groups.above("/pod/a/inner")] == ["/pod/a", "/pod"]
    assert {p: [g.path for g in c] for p, c in groups.children().items()} == {
        "/": ["/pod"], "/pod": ["/pod/a", "/pod/b"], "/pod/a": ["/pod/a/inner"],
    }  # fmt: skip
    assert list(ancestors("/a/b/c")) == ["/a/b", "/a"]
    assert parent("/a") == "/"


def test_without_cgroup_procs_nothing_is_said_about_processes() -> None:
    text = TREE.replace(b"/cgroup.procs\n", b"/cgroup.procs !refused\n")
    groups = Snapshot(parse_case(text).rounds[0]).get(MemoryGroups)
    assert not isinstance(groups, Unread)
    assert all(not g.pids for g in groups.by_path.values())


def test_a_pod_and_its_only_container_are_one_story() -> None:
    pod, container = group("/pod", 1000), group("/pod/a", 960)
    assert innermost([pod, container]) == [container]


def test_a_pod_that_is_full_of_something_else_has_its_own_story() -> None:
    pod, container = group("/pod", 1000), group("/pod/a", 500)
    assert innermost([pod, container]) == [container, pod]


def test_nested_ones_are_counted_once() -> None:
    # 500 in a/x are part of a's 500: the pod's other 500 are its own story.
    pod, a, x = group("/pod", 1000), group("/pod/a", 1000), group("/pod/a/x", 500)
    assert innermost([pod, a, x]) == [x, a]
    small = group("/pod/a", 500)
    assert innermost([pod, small, x]) == [x, pod]


def test_many_full_cgroups_take_no_square_of_time() -> None:
    many = [group(f"/{n % 100}/{n}", 1000) for n in range(20_000)]
    began = time.perf_counter()
    assert len(innermost(many)) == 20_000
    assert time.perf_counter() - began < 2


def test_gained_never_goes_back() -> None:
    assert gained(3, 10) == 7
    assert gained(10, 3) is None
    assert gained(None, 3) is None
