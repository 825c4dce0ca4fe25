"""Who holds what: leaves add up, parents do not count twice, limits above are seen."""

from typing import Any

from seawall.accounts.pods.pod_danger import Danger, danger_of
from seawall.accounts.pods.pod_table import PodRow, PodTable, Room, account
from seawall.accounts.workloads import account as workloads_of
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.container_files import ContainerFiles
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.pressure import Pressure, Stall
from seawall.readings.reading import UNLIMITED

MIB = 1 << 20
A, B, C = (digit * 64 for digit in "abc")
POD = "/kubepods/burstable/pod1858680e-b044-4fd5-9dd4-f137e30e2180"


def memcg(path: str, usage: int | None, **more: Any) -> Memcg:
    values: dict[str, Any] = {
        "path": path, "version": 2, "usage": usage, "limit": UNLIMITED, "stat": {}, "events": {},
        "events_local": {}, "anon": usage, "file": 0, "shmem": 0, "inactive_file": 0,
        "active_file": 0, "dirty": 0, "writeback": 0, "kernel": 0,
    }  # fmt: skip
    return Memcg(**values | more)


def table_of(*rows: Memcg, pids: dict[str, tuple[int, ...]]) -> PodTable:
    paths = {row.path: row for row in rows}
    version = rows[0].version
    mount = "/sys/fs/cgroup"
    layout = CgroupLayout(v1={}, v2=mount, v2_controllers=("memory",))
    cgroups = Cgroups(layout, ("/", *{**paths, **pids}), mount, pids, ())
    workloads = workloads_of(cgroups, ContainerFiles({}, {}, ()))
    return account(workloads, Memcgs(version, paths, mount, ()), cgroups)


def by_path(table: PodTable) -> dict[str, PodRow]:
    return {row.workload.cgroup: row for row in table.rows}


def stalled(share: float) -> Pressure:
    return Pressure(Stall(share, 0, 0, 0), None)


def test_leaves_and_parents() -> None:
    table = table_of(
        memcg("/kubepods", 100 * MIB), memcg("/kubepods/burstable", 100 * MIB),
        memcg(POD, 95 * MIB), memcg(f"{POD}/{A}", 60 * MIB), memcg(f"{POD}/{B}", 30 * MIB),
        memcg("/system.slice", 50 * MIB), memcg("/system.slice/ssh.service", 40 * MIB),
        memcg("/plain", 7 * MIB), memcg("/left", 3 * MIB), memcg("/empty", 4096),
        pids={f"{POD}/{A}": (1, 2), f"{POD}/{B}": (3,), "/system.slice/ssh.service": (4,),
              "/plain": (5,)},
    )  # fmt: skip
    rows = by_path(table)
    assert {path for path, row in rows.items() if row.is_leaf} == {
        f"{POD}/{A}", f"{POD}/{B}", "/system.slice/ssh.service", "/plain", "/left",
    }  # fmt: skip
    assert rows[POD].whole.charge == 95 * MIB
    assert rows[POD].own.charge == 5 * MIB
    assert (rows[POD].nested, rows[POD].processes) == (2, 3)
    total = sum(row.own.charge or 0 for row in table.rows if row.is_leaf)
    assert total == 140 * MIB
    assert table.parents_own == 160 * MIB + 4096 - total


def test_a_container_with_containers_inside_counts_once() -> None:
    """A kind node: its own services stay in its row, its pods have theirs."""
    node = f"/docker/{C}"
    table = table_of(
        memcg("/docker", 300 * MIB), memcg(node, 300 * MIB, anon=200 * MIB),
        memcg(f"{node}/system.slice", 100 * MIB), memcg(f"{node}/kubelet{POD}", 120 * MIB),
        memcg(f"{node}/kubelet{POD}/{A}", 110 * MIB, anon=None),
        pids={f"{node}/system.slice": (1, 2), f"{node}/kubelet{POD}/{A}": (3,)},
    )  # fmt: skip
    rows = by_path(table)
    assert f"{node}/system.slice" not in rows
    row = rows[node]
    assert (row.is_leaf, row.nested, row.processes) == (True, 1, 3)
    assert row.whole.charge == 300 * MIB
    assert row.own.charge == 190 * MIB
    assert row.own.anon is None, "a part of the difference is unknown"
    assert sum(r.own.charge or 0 for r in table.rows if r.is_leaf) == 300 * MIB
    assert table.parents_own == 0


def test_values_of_a_cgroup_without_hierarchy_are_its_own() -> None:
    """v1 with use_hierarchy=0: nothing to take off."""
    parent = memcg("/docker/" + C, 10 * MIB, hierarchical=False, version=1)
    child = memcg(f"/docker/{C}/docker/{A}", 50 * MIB, version=1)
    rows = by_path(table_of(parent, child, pids={parent.path: (1,), child.path: (2,)}))
    assert rows[parent.path].own.charge == 10 * MIB


def test_processes_without_a_memcg_of_their_own_count_above() -> None:
    """v2: the controller is not switched on below user.slice."""
    table = table_of(
        memcg("/user.slice", 9 * MIB), pids={"/user.slice/user-0.slice/session-1.scope": (1, 2)}
    )
    row = by_path(table)["/user.slice"]
    assert (row.is_leaf, row.processes, row.own.charge) == (True, 2, 9 * MIB)


def test_what_the_numbers_mean() -> None:
    row = table_of(
        memcg("/a", 100 * MIB, anon=20 * MIB, file=70 * MIB, shmem=10 * MIB, inactive_file=40 * MIB,
              active_file=20 * MIB, dirty=5 * MIB, writeback=MIB, kernel=8 * MIB, swap_usage=MIB,
              memory_pressure=stalled(0.25), events={"max": 7}),
        pids={"/a": (1,)},
    ).rows[0]  # fmt: skip
    own = row.own
    assert own.working_set == 60 * MIB
    assert own.cache == 60 * MIB
    assert own.file == 70 * MIB
    assert own.reclaimable == 54 * MIB
    assert own.dirty == 6 * MIB
    assert (own.kernel, own.swap) == (8 * MIB, MIB)
    assert (row.pressure, row.limit_hits) == (0.25, 7)


def test_unknown_stays_unknown() -> None:
    row = table_of(
        memcg("/a", None, anon=None, shmem=None, file=5, inactive_file=None, dirty=None,
              writeback=None, kernel=None),
        pids={"/a": (1,)},
    ).rows[0]  # fmt: skip
    own = row.own
    assert (own.charge, own.working_set, own.anon, own.shmem) == (None, None, None, None)
    assert (own.reclaimable, own.dirty, own.kernel) == (None, None, None)
    assert own.cache == 5, "shmem did not exist yet: cache is all of file"
    assert row.room is None
    assert row.pressure is None


def test_kernel_memory_before_5_18_is_the_sum_of_its_parts() -> None:
    row = table_of(
        memcg("/a", MIB, kernel=None, slab_reclaimable=1, slab_unreclaimable=2, kernel_stack=4),
        pids={"/a": (1,)},
    ).rows[0]
    assert row.own.kernel == 7


def test_the_tightest_limit_may_be_above() -> None:
    table = table_of(
        memcg(POD, 90 * MIB, limit=100 * MIB, inactive_file=30 * MIB),
        memcg(f"{POD}/{A}", 50 * MIB, limit=500 * MIB), memcg(f"{POD}/{B}", 40 * MIB),
        memcg("/free", MIB),
        pids={f"{POD}/{A}": (1,), f"{POD}/{B}": (2,), "/free": (3,)},
    )  # fmt: skip
    rows = by_path(table)
    room = rows[f"{POD}/{A}"].room
    assert room == Room(distance=10 * MIB, grows=40 * MIB, limit=100 * MIB, cgroup=POD)
    assert rows[f"{POD}/{B}"].room == room
    assert rows["/free"].room is UNLIMITED


def test_root_holds_what_is_in_no_cgroup_v1() -> None:
    root = memcg("/", 99 * MIB, version=1, stat={"rss": 3 * MIB, "cache": MIB, "total_rss": 50})
    table = table_of(root, memcg("/a", MIB, version=1), pids={"/": (1,), "/a": (2,)})
    assert table.root_own == 4 * MIB
    assert [row.workload.cgroup for row in table.rows] == ["/a"]


def danger(usage: int = MIB, **more: Any) -> Danger | None:
    return danger_of(table_of(memcg("/a", usage, **more), pids={"/a": (1,)}).rows[0])


def test_danger() -> None:
    limit = 100 * MIB
    assert danger() is None
    assert danger(96 * MIB, limit=limit) == Danger("critical", "near_limit")
    assert danger(92 * MIB, limit=limit) == Danger("warning", "near_limit")
    assert danger(89 * MIB, limit=limit) is None
    full_of_cache = danger(99 * MIB, limit=limit, inactive_file=60 * MIB, active_file=20 * MIB)
    assert full_of_cache is None, "cache can be dropped: nothing leaks"
    assert danger(memory_pressure=stalled(0.2)) == Danger("warning", "stalled")
    assert danger(memory_pressure=stalled(0.19)) is None
    assert danger(oom_kill=1) == Danger("warning", "killed")
    assert danger(under_oom=True, oom_kill=1) == Danger("critical", "under_oom")
    assert danger(0, limit=0) == Danger("critical", "near_limit")
