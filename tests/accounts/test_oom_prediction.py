"""Who is a candidate, what a kill gives back, whose limit is hit: from files written by hand."""

from typing import TypeVar

import pytest
from tests.case_host import parse_case

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.limits.kill_prospects import KillProspects
from seawall.accounts.oom.agreement import agree
from seawall.accounts.oom.badness import formula_named
from seawall.accounts.oom.contenders import Contenders, ProcessMoment, contenders
from seawall.accounts.oom.prediction import Field, Ranked, rank
from seawall.accounts.oom.returns import Returns, returns_of, together
from seawall.accounts.oom.salvage import Hopeless
from seawall.accounts.oom.scope import memcg_pages, node_scope, scope_of
from seawall.host.host import Unread
from seawall.readings.limit_members import LimitMembers
from seawall.readings.meminfo import Meminfo
from seawall.readings.oom_score import OomScores
from seawall.readings.oom_score_adj import OomScoreAdjs
from seawall.readings.process import Processes
from seawall.readings.process_status import ProcessStatuses
from seawall.readings.snapshot import Snapshot

T = TypeVar("T")
MIB = 1 << 20
GIB = 1 << 30
V2 = """=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
memory
"""
V1 = "=== /proc/1/mountinfo\n33 25 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
NODE = """=== /proc/meminfo
MemTotal:       8388608 kB
MemFree:        1048576 kB
SwapTotal:      2097152 kB
SwapFree:       2097152 kB
AnonPages:      4194304 kB
"""


def process(pid: int, anon: int = 0, **more: int | str) -> str:
    """One process as its files; bytes."""
    comm, file, shmem = more.get("comm", "app"), int(more.get("file", 0)), int(more.get("shmem", 0))
    rss = anon + file + shmem
    spaces = f"NSpid:\t{pid}\t{more['inner']}\n" if "inner" in more else ""
    return (
        f"=== /proc/{pid}/stat\n{pid} ({comm}) S {more.get('ppid', 1)} 1 1 0 -1 0"
        f" 0 0 0 0 1 1 0 0 20 0 1 0 {more.get('start', pid)} {rss * 3} {rss // 4096} 99\n"
        f"=== /proc/{pid}/status\nName:\t{comm}\nPid:\t{pid}\n"
        f"Uid:\t{more.get('uid', 1000)}\t0\t0\t0\n"
        f"{spaces}VmRSS:\t{rss >> 10} kB\nRssAnon:\t{anon >> 10} kB\nRssFile:\t{file >> 10} kB\n"
        f"RssShmem:\t{shmem >> 10} kB\nVmPTE:\t{int(more.get('tables', 0)) >> 10} kB\n"
        f"VmSwap:\t{int(more.get('swap', 0)) >> 10} kB\nThreads:\t1\n"
        f"CapEff:\t{more.get('caps', '0')}\n"
        f"=== /proc/{pid}/oom_score_adj\n{more.get('adj', 0)}\n"
        + (f"=== /proc/{pid}/oom_score\n{more['score']}\n" if "score" in more else "")
    )


KTHREADD = "=== /proc/2/stat\n2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 9\n"


def group(path: str, limit: str, usage: int, pids: str = "", **more: int) -> str:
    """One cgroup v2."""
    at = f"=== /sys/fs/cgroup{path}"
    stat = {"anon": usage, "shmem": 0, "inactive_file": 0, "active_file": 0, "kernel": 0} | more
    lines = "".join(f"{key} {value}\n" for key, value in stat.items())
    return (
        f"{at}/memory.current\n{usage}\n{at}/memory.max\n{limit}\n"
        f"{at}/memory.swap.max\n{more.get('swap_max', 'max')}\n{at}/memory.stat\n{lines}"
        f"{at}/memory.oom.group\n{more.get('together', 0)}\n{at}/cgroup.procs\n{pids}"
    )


def snapshot(text: str) -> Snapshot:
    return Snapshot(parse_case(f"why: x\n{text}".encode()).rounds[0])


def get(snap: Snapshot, topic: type[T]) -> T:
    found = snap.get(topic)
    assert not isinstance(found, Unread), found
    return found


def moment_of(snap: Snapshot, *, zero_is_immune: bool = False) -> ProcessMoment:
    scores = snap.get(OomScores)
    return ProcessMoment(
        get(snap, Processes).by_pid, get(snap, ProcessStatuses).by_pid,
        get(snap, OomScoreAdjs).by_pid, {} if isinstance(scores, Unread) else scores.by_pid, 4096,
        zero_is_immune=zero_is_immune,
    )  # fmt: skip


def ranked(text: str, kernel: str = "6.1") -> tuple[Ranked, ...]:
    """Of the whole node."""
    snap = snapshot(NODE + text)
    found = snap.get(MemoryGroups)
    groups = None if isinstance(found, Unread) else found
    field = Field(contenders(moment_of(snap)), groups, get(snap, Meminfo), 4096)
    return rank(field, node_scope(2_621_440), formula_named(kernel))


def everybody(text: str, *, zero_is_immune: bool = False) -> Contenders:
    return contenders(moment_of(snapshot(text), zero_is_immune=zero_is_immune))


# --- who may be chosen ------------------------------------------------------------------


def test_who_is_never_chosen() -> None:
    text = KTHREADD + process(1, MIB, comm="init") + process(7, MIB, adj=-1000) + process(8, MIB)
    found = everybody(text)
    assert [(one.pid, one.immune) for one in found.immune] == [
        (1, "the node's first process"), (7, "oom_score_adj is -1000"),
    ]  # fmt: skip
    assert [one.pid for one in found.eligible] == [8]
    assert found.kernel_threads == 1


def test_first_process_of_a_container_may_be_chosen() -> None:
    """Its /proc shows no kernel threads, so pid 1 is not the node's."""
    assert [one.pid for one in everybody(process(1, MIB) + process(8, MIB)).eligible] == [1, 8]


def test_one_that_the_kernel_passes_over_shows_as_score_0() -> None:
    text = (
        process(7, MIB, score=0) + process(8, MIB, score=666) + process(9, MIB, adj=-999, score=0)
    )
    assert [one.pid for one in everybody(text, zero_is_immune=True).eligible] == [8, 9]
    assert [one.pid for one in everybody(text).eligible] == [7, 8, 9]


def test_order_is_by_age_not_by_pid() -> None:
    text = process(30, MIB, start=500) + process(4, MIB, start=900) + process(9, MIB, start=500)
    assert [one.pid for one in everybody(text).all] == [9, 30, 4]


def test_one_without_memory_is_ending_and_one_unread_is_counted() -> None:
    zombie = "=== /proc/5/stat\n5 (z) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 9\n"
    status = "=== /proc/5/status\nName:\tz\nPid:\t5\nThreads:\t1\n=== /proc/5/oom_score_adj\n0\n"
    found = everybody(
        zombie + status + process(8, MIB).replace("=== /proc/8/oom_score_adj\n0\n", "")
    )
    assert (found.all, found.incomplete) == ((), 1)


@pytest.mark.parametrize(
    ("uid", "caps", "is_root"),
    [(0, "1ffffffffff", True), (0, "a80425fb", False), (1000, "0", False), (10**5, "1ff", False)],
)
def test_root_is_cap_sys_admin_of_the_nodes_root(uid: int, caps: str, is_root: bool) -> None:
    """Docker's root has no CAP_SYS_ADMIN; a user namespace's root has another uid here."""
    (one,) = everybody(process(8, MIB, uid=uid, caps=caps)).all
    assert one.candidate.is_root is is_root


# --- what comes back --------------------------------------------------------------------


def test_parts_of_a_kill() -> None:
    """40 MiB anonymous, 8 file, 16 tmpfs, 4 swap, 1 page tables; 10 MiB may be shared."""
    text = process(8, 40 * MIB, file=8 * MIB, shmem=16 * MIB, swap=4 * MIB, tables=MIB)
    (one,) = everybody(text).all
    assert returns_of(one, 10 * MIB, 4096) == Returns(31 * MIB, 45 * MIB, 69 * MIB)
    assert returns_of(one, 99 * MIB, 4096) == Returns(1 * MIB, 45 * MIB, 69 * MIB)


def test_copies_made_by_fork_are_not_promised_twice() -> None:
    """Three of 100 MiB each in a cgroup that is charged 120 MiB: 180 are counted again."""
    pids = "10\n11\n12\n"
    text = V2 + group("/db", "max", 120 * MIB, pids)
    text += "".join(process(pid, 100 * MIB) for pid in (10, 11, 12))
    assert {row.returns.least for row in ranked(text)} == {0}
    alone = V2 + group("/db", "max", 300 * MIB, pids)
    alone += "".join(process(pid, 100 * MIB) for pid in (10, 11, 12))
    assert {row.returns.least for row in ranked(alone)} == {100 * MIB}


def test_those_that_may_share_their_memory() -> None:
    text = process(10, 64 * MIB) + process(11, 64 * MIB, ppid=10) + process(12, 64 * MIB, ppid=77)
    assert {row.one.pid: row.shares for row in ranked(text)} == {10: (11,), 11: (10,), 12: ()}


def test_oom_group_takes_all_of_the_outermost_one() -> None:
    text = V2 + group("/pod", "max", 300 * MIB, together=1)
    text += group("/pod/a", "max", 200 * MIB, "10\n", together=1)
    text += group("/pod/b", "max", 100 * MIB, "11\n") + group("/other", "max", 9 * MIB, "12\n")
    text += process(10, 200 * MIB) + process(11, 100 * MIB) + process(12, 9 * MIB)
    snap = snapshot(NODE + text)
    groups = get(snap, MemoryGroups)
    field = Field(contenders(moment_of(snap)), groups, get(snap, Meminfo), 4096)
    rows = rank(field, node_scope(2_621_440), formula_named("6.1"))
    assert [(row.one.pid, row.group) for row in rows] == [(10, "/pod"), (11, "/pod"), (12, None)]
    assert together(row.returns for row in rows if row.group == "/pod").likely == 300 * MIB
    # At the limit of b alone nothing outside b is looked at.
    inside = scope_of(groups.by_path["/pod/b"], groups, get(snap, Meminfo), 4096, 60)
    assert inside.kind == "node"


def test_first_process_of_a_container_takes_the_container_with_it() -> None:
    text = V2 + group("/c", "max", 30 * MIB, "10\n11\n") + process(10, 20 * MIB, inner=1)
    text += process(11, 10 * MIB, inner=2)
    first, second = ranked(text)
    assert (first.one.pid, first.ends_container, first.returns.likely) == (10, True, 30 * MIB)
    assert (second.ends_container, second.returns.likely) == (False, 10 * MIB)
    assert not any(row.ends_container for row in ranked(text, "3.10"))


# --- whose limit ------------------------------------------------------------------------


def limits(text: str, path: str, swappiness: int = 60) -> tuple[str, int]:
    snap = snapshot(NODE + text)
    groups = get(snap, MemoryGroups)
    scope = scope_of(groups.by_path[path], groups, get(snap, Meminfo), 4096, swappiness)
    return (scope.group.path if scope.group else scope.kind, scope.total_pages)


def test_the_tightest_limit_may_be_the_pods() -> None:
    pod = group("/pod", str(GIB), 900 * MIB)
    roomy = pod + group("/pod/a", str(2 * GIB), 500 * MIB)
    assert limits(V2 + roomy, "/pod/a") == ("/pod", (GIB + 2 * GIB) // 4096)
    tight = pod + group("/pod/a", str(520 * MIB), 500 * MIB, swap_max=0)
    assert limits(V2 + tight, "/pod/a") == ("/pod/a", 520 * MIB // 4096)
    assert limits(V2 + tight, "/pod/a", 0) == ("/pod/a", 520 * MIB // 4096)


def test_no_limit_is_the_node() -> None:
    assert limits(V2 + group("/a", "max", MIB), "/a") == ("node", 10 * GIB // 4096)


def test_swap_beyond_the_limit_counts_unless_swappiness_is_0() -> None:
    """mem_cgroup_get_max: v1 has one limit for both, v2 one for swap; never more than there is."""
    at = "=== /sys/fs/cgroup/memory/a/memory"
    v1 = f"{V1}{at}.usage_in_bytes\n99\n{at}.limit_in_bytes\n{GIB}\n{at}.memsw.usage_in_bytes\n99\n"
    for both, total in ((GIB + 512 * MIB, GIB + 512 * MIB), (9 * GIB, 3 * GIB)):
        text = f"{v1}{at}.memsw.limit_in_bytes\n{both}\n"
        assert limits(text, "/a") == ("/a", total // 4096)
        assert limits(text, "/a", 0) == ("/a", GIB // 4096)
    assert limits(v1, "/a") == ("/a", 3 * GIB // 4096)
    snap = snapshot(NODE + V2 + group("/a", str(GIB), MIB))
    one = get(snap, MemoryGroups).by_path["/a"]
    assert memcg_pages(one, get(snap, Meminfo), 4096, 60) == 3 * GIB // 4096


# --- against the kernel's own scores ----------------------------------------------------


def test_agreement_counts_what_differs_by_more_than_drift() -> None:
    # 262144 of 2621440 pages is a tenth: (1000 + 100) x 2 / 3 = 733; half of it 700.
    text = process(8, GIB, score=734) + process(9, GIB // 2, score=703)
    text += process(10, MIB, score=666)
    good = agree(everybody(text).all, formula_named("6.1"), 2_621_440)
    assert good is not None
    assert (good.compared, good.off_count, good.order_agrees) == (3, 1, True)
    assert good.off[0][:] == (9, "app", 700, 703)
    wrong = agree(
        everybody(text.replace("\n666\n", "\n900\n")).all, formula_named("6.1"), 2_621_440
    )
    assert wrong is not None
    assert not wrong.order_agrees
    assert agree(everybody(process(8, GIB)).all, formula_named("6.1"), 2_621_440) is None


# --- can it be saved --------------------------------------------------------------------


def prospect(text: str, path: str, release: str = "6.1.0") -> Hopeless | None:
    snap = snapshot(f"=== /proc/sys/kernel/osrelease\n{release}\n{NODE}{text}")
    prospects = get(snap, KillProspects)
    one = get(snap, MemoryGroups).by_path[path]
    found = prospects.hopeless(one, 0.10, 200)
    assert not isinstance(found, Unread)
    return found


def crowd(number: int, each: int, limit: int, **more: int) -> str:
    pids = range(100, 100 + number)
    text = V2 + group("/c", str(limit), number * each, "".join(f"{pid}\n" for pid in pids), **more)
    return text + "".join(process(pid, each, **more) for pid in pids)


def test_hundreds_of_kills() -> None:
    """2,000 of 512 KiB in 1 GiB: 205 kills for a tenth of it; 400 of 2.5 MiB need 41."""
    found = prospect(crowd(2000, MIB // 2, GIB), "/c")
    assert found is not None
    assert (found.reason, found.relief.kills, found.back_most) == ("many", 205, MIB // 2)
    assert prospect(crowd(400, 5 * MIB // 2, GIB), "/c") is None
    assert prospect(crowd(2000, MIB // 2, GIB, together=1), "/c") is None


def test_what_the_immune_hold_in_the_kernel_stays_with_them() -> None:
    """1,000 of 100 KiB, each with 200 KiB of page tables, at 300 MiB: no kill brings those back."""
    pids = range(100, 1100)
    tables = len(pids) * 200 << 10
    held = "".join(f"{pid}\n" for pid in pids)
    text = V2 + group("/c", str(300 * MIB), 299 * MIB, held, anon=99 * MIB, kernel=tables)
    immune = "".join(process(pid, 100 << 10, tables=200 << 10, adj=-1000) for pid in pids[1:])
    for adj, eligible, back_most in ((-1000, 0, 0), (0, 1, 6 * MIB)):
        first = process(pids[0], 100 << 10, tables=200 << 10, adj=adj)
        found = prospect(text + first + immune, "/c")
        assert found is not None
        assert (found.reason, found.eligible) == ("immune", eligible)
        assert found.back_most <= back_most


def test_a_hundred_workers_are_ordinary() -> None:
    assert prospect(crowd(100, 10 * MIB, GIB), "/c") is None


def test_database_with_shared_buffers_is_no_file() -> None:
    """30 backends map the same 800 MiB: it is theirs, and dies with the last of them."""
    pids = "".join(f"{pid}\n" for pid in range(100, 130))
    text = V2 + group("/c", str(GIB), 990 * MIB, pids, anon=150 * MIB, shmem=800 * MIB)
    text += "".join(process(pid, 5 * MIB, shmem=780 * MIB) for pid in range(100, 130))
    assert prospect(text, "/c") is None


def test_only_those_near_their_limit_are_looked_into() -> None:
    near, far = crowd(3, 300 * MIB, GIB), group("/far", str(GIB), 700 * MIB, "7\n")
    snap = snapshot(NODE + near + far + process(7, 700 * MIB))
    assert sorted(get(snap, LimitMembers).statuses) == [100, 101, 102]


def test_members_that_cannot_be_read_make_it_blind() -> None:
    snap = snapshot(f"=== /proc/sys/kernel/osrelease\n6.1\n{NODE}" + V2 + group(
        "/c", str(GIB), 999 * MIB, "100\n101\n102\n") + process(100, MIB))  # fmt: skip
    one = get(snap, MemoryGroups).by_path["/c"]
    found = get(snap, KillProspects).hopeless(one, 0.10, 200)
    assert isinstance(found, Unread)
    assert found.path == "/proc/*/status"
