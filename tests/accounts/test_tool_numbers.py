"""Every tool's number for one container with its formula, on both cgroup versions."""

from dataclasses import replace

import pytest
from tests.accounts.test_memory_groups import TREE, tree

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.cgroup_memory.memory_parts import parts_of
from seawall.accounts.numbers.tool_numbers import (
    ToolNumber,
    missing_rows,
    tightest_limit,
    tool_counts,
    tool_numbers,
    unread_limits,
    unseen_files,
    with_pod_sum,
)
from seawall.accounts.numbers.tool_numbers_processes import (
    largest_pids,
    process_numbers,
    resident_of,
)
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.process import Process, Processes
from seawall.readings.process_extra import parse_smaps_rollup
from seawall.readings.process_status import ProcessStatuses, parse

V1 = b"""why: a container that reads, writes and holds
=== /sys/fs/cgroup/memory/c/memory.usage_in_bytes
1000000
=== /sys/fs/cgroup/memory/c/memory.limit_in_bytes
4000000
=== /sys/fs/cgroup/memory/c/memory.failcnt
17
=== /sys/fs/cgroup/memory/c/memory.kmem.usage_in_bytes
30000
=== /sys/fs/cgroup/memory/c/memory.stat
total_cache 590000
total_rss 350000
total_shmem 150000
total_mapped_file 90000
total_swap 5000
total_inactive_anon 400000
total_active_anon 100000
total_inactive_file 300000
total_active_file 140000
"""
V2 = b"""why: the same on version 2
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
memory
=== /sys/fs/cgroup/c/memory.current
1000000
=== /sys/fs/cgroup/c/memory.max
max
=== /sys/fs/cgroup/c/memory.swap.current
5000
=== /sys/fs/cgroup/c/memory.events
max 9
=== /sys/fs/cgroup/c/memory.stat
anon 350000
file 590000
shmem 150000
file_mapped 90000
kernel 30000
inactive_anon 400000
active_anon 100000
inactive_file 300000
active_file 140000
"""


def rows(text: bytes) -> dict[tuple[str, str], ToolNumber]:
    numbers = tool_numbers(called(tree(text).by_path["/c"], "container"))
    found = {(number.tool, number.name): number for number in numbers}
    assert len(found) == len(numbers), "no tool has two rows of one name"
    return found


def called(group: MemoryGroup, kind: str, **told: object) -> MemoryGroup:
    """The group as what it would be called on a real host."""
    workload = Workload(kind=kind, name=group.path, cgroup=group.path, **told)  # type: ignore[arg-type]
    return MemoryGroup(group.memcg, workload, group.folder, group.pids)


def by_name(text: bytes) -> dict[str, int]:
    return {f"{tool} {name}": number.bytes for (tool, name), number in rows(text).items()}


COMMON = {
    "Prometheus (cAdvisor) container_memory_usage_bytes": 1_000_000,
    "Prometheus (cAdvisor) container_memory_working_set_bytes": 700_000,
    "Prometheus (cAdvisor) container_memory_rss": 350_000,
    "Prometheus (cAdvisor) container_memory_cache": 590_000,
    "Prometheus (cAdvisor) container_memory_mapped_file": 90_000,
    "Prometheus (cAdvisor) container_memory_swap": 5_000,
    "Prometheus (cAdvisor) container_memory_total_inactive_file_bytes": 300_000,
    "Prometheus (cAdvisor) container_memory_total_active_file_bytes": 140_000,
    "kubectl top pod MEMORY": 700_000,
    "kubelet eviction ranks pods by it": 700_000,
    "crictl stats MEM": 700_000,
    "docker stats 20.10 and later": 700_000,
    "docker stats before 17.06": 1_000_000,
    "podman stats 5.6 and later": 700_000,
}


def test_version_1() -> None:
    assert by_name(V1) == COMMON | {
        "kernel memory.usage_in_bytes": 1_000_000,
        "docker stats 17.06 to 19.03": 410_000,
        "podman stats 4.8 to 5.5": 500_000,
        "podman stats before 4.8": 1_000_000,
        "Prometheus (cAdvisor) container_memory_kernel_usage": 30_000,
    }


def test_version_2() -> None:
    assert by_name(V2) == COMMON | {
        "kernel memory.current": 1_000_000,
        "docker stats 17.06 to 19.03": 1_000_000,
        "podman stats 4.0 to 5.5": 350_000,
        "podman stats before 4.0": 1_000_000,
    }


def test_formula_and_inputs_add_up() -> None:
    number = rows(V1)["docker stats", "20.10 and later"]
    assert number.formula.startswith("memory.usage_in_bytes - total_inactive_file")
    assert [(part.name, part.sign, part.bytes) for part in number.inputs] == [
        ("memory.usage_in_bytes", 1, 1_000_000),
        ("total_inactive_file", -1, 300_000),
    ]
    assert number.inputs[1].source == "/sys/fs/cgroup/memory/c/memory.stat total_inactive_file"
    for text in (V1, V2):
        for row in rows(text).values():
            assert row.bytes == sum(part.sign * part.bytes for part in row.inputs), row.name


def test_letters_are_the_parts_that_it_counts() -> None:
    """Each sum of parts, made by hand: 350 A, 300 I, 140 F, 150 T and 60 K (thousands)."""
    parts = parts_of(tree(V1).by_path["/c"].memcg)
    assert (parts.anon, parts.inactive_file, parts.active_file) == (350_000, 300_000, 140_000)
    assert (parts.shmem, parts.kernel, parts.rest) == (150_000, 30_000, 30_000)
    sizes = {letter: count or 0 for letter, _, count in parts.rows()}
    assert sum(sizes.values()) == 1_000_000
    for row in rows(V1).values():
        if row.letters.isupper():
            assert row.bytes == sum(sizes[letter] for letter in row.letters), row
    assert rows(V1)["docker stats", "17.06 to 19.03"].letters == "AK"


def test_times() -> None:
    (times,) = tool_counts(tree(V1).by_path["/c"])
    assert (times.name, times.count) == ("container_memory_failcnt", 17)
    two = {row.name: row.count for row in tool_counts(tree(V2).by_path["/c"])}
    assert two == {"container_memory_failcnt": 0, "memory.events max": 9}


def test_what_was_not_read_has_no_row() -> None:
    cut = V1[: V1.index(b"=== /sys/fs/cgroup/memory/c/memory.stat")]
    assert set(by_name(cut)) == {
        "kernel memory.usage_in_bytes", "docker stats before 17.06", "podman stats before 4.8",
        "Prometheus (cAdvisor) container_memory_usage_bytes",
        "Prometheus (cAdvisor) container_memory_kernel_usage",
    }  # fmt: skip


FOR_CONTAINERS = {"docker stats", "podman stats", "crictl stats"}
FOR_PODS = {"crictl statsp"}
FOR_BOTH = {"kubectl top pod", "kubelet"}


@pytest.mark.parametrize(
    ("kind", "known"),
    [("container", FOR_CONTAINERS | FOR_BOTH), ("pod", FOR_PODS | FOR_BOTH), ("cgroup", set()),
     ("unit", {"systemctl status"}), ("slice", set())],
)  # fmt: skip
def test_each_kind_has_the_tools_that_show_it(kind: str, known: set[str]) -> None:
    for text in (V1, V2):
        tools = {row.tool for row in tool_numbers(called(tree(text).by_path["/c"], kind))}
        assert tools - {"kernel", "Prometheus (cAdvisor)"} == known


def test_file_lists_say_since_when_they_are_metrics() -> None:
    notes = {row.name: row.note for row in rows(V2).values() if row.note}
    assert notes == {
        "container_memory_total_inactive_file_bytes": "cAdvisor 0.50 and later",
        "container_memory_total_active_file_bytes": "cAdvisor 0.50 and later",
    }


def test_a_negative_number_is_marked() -> None:
    number = rows(V1.replace(b"total_cache 590000", b"total_cache 1590000"))[
        "docker stats", "17.06 to 19.03"
    ]
    assert (number.bytes, number.note) == (-590_000, "at least one counter lags")


def test_kubectl_top_adds_up_a_pods_containers_without_pause() -> None:
    text = V1.replace(b"/memory/c/", b"/memory/p/a/") + V1.replace(b"/memory/c/", b"/memory/p/b/")
    text += V1.replace(b"/memory/c/", b"/memory/p/").replace(b"1000000", b"3000000")
    text = text.replace(b"why: a container that reads, writes and holds\n", b"")
    groups = tree(b"why: a pod\n" + text)

    def container(path: str, *, is_sandbox: bool) -> MemoryGroup:
        group = groups.by_path[path]
        told = Workload(
            kind="container", name=path, cgroup=path, container=path[-1], is_sandbox=is_sandbox
        )
        return MemoryGroup(group.memcg, told, group.folder, ())

    inside = [container("/p/a", is_sandbox=False), container("/p/b", is_sandbox=True)]
    rows_of_pod = tool_numbers(called(groups.by_path["/p"], "pod"))
    numbers = with_pod_sum(rows_of_pod, inside)
    top = next(row for row in numbers if row.tool == "kubectl top pod")
    assert top.bytes == 700_000
    assert [part.name for part in top.inputs] == ["a"]
    assert next(row.bytes for row in numbers if row.tool == "kubelet") == 2_700_000
    blind = groups.by_path["/p/b"]
    memcg = replace(blind.memcg, usage=None)
    told = Workload(kind="container", name="b", cgroup="/p/b", container="b")
    part = with_pod_sum(rows_of_pod, [inside[0], MemoryGroup(memcg, told, blind.folder, ())])
    top = next(row for row in part if row.tool == "kubectl top pod")
    assert (top.bytes, top.note) == (700_000, "at least, 1 of 2 containers")
    none = with_pod_sum(rows_of_pod, inside[1:])
    assert not [row for row in none if row.tool == "kubectl top pod"]


def test_the_tightest_limit_may_be_the_parents() -> None:
    groups = tree()
    own = tightest_limit(groups.by_path["/pod/a"], groups)
    above = tightest_limit(groups.by_path["/pod/a/inner"], groups)
    assert own is not None
    assert above is not None
    assert (own[0], own[1].path) == (above[0], above[1].path) == (1000, "/pod/a")
    assert tightest_limit(groups.by_path["/pod"], groups) is None
    assert unread_limits(groups.by_path["/pod"], groups) == ()


def test_whose_limit_was_not_read() -> None:
    text = b"why: junk\n" + TREE.partition(b"\n")[2].replace(b"memory.max\n1000", b"memory.max\nx")
    groups = tree(text)
    inner = groups.by_path["/pod/a/inner"]
    assert [place.path for place in unread_limits(inner, groups)] == ["/pod/a"]
    assert tightest_limit(inner, groups) is None


def test_rows_that_are_missing_are_named() -> None:
    text = V2.replace(b"memory.swap.current\n5000", b"memory.swap.current\nx")
    group = tree(text.replace(b"memory.events\nmax 9", b"memory.events\n?")).by_path["/c"]
    assert list(unseen_files(group)) == []  # both have their reason
    assert {unread.path: unread.why for unread in group.memcg.unread} == {
        "/sys/fs/cgroup/c/memory.swap.current": "malformed",
        "/sys/fs/cgroup/c/memory.events": "malformed",
    }
    assert missing_rows(group, group.memcg.unread) == ("container_memory_swap", "memory.events max")


# --- processes -------------------------------------------------------------------------


def process(pid: int, rss_pages: int, flags: int = 0) -> Process:
    return Process(pid, "p", "S", 1, flags, 0, 0, 0, 0, 1, 1, 0, rss_pages)


PROCESSES = Processes({1: process(1, 10), 2: process(2, 30), 3: process(3, 20, 0x00200000)}, ())
STATUS = b"Name:\tp\nPid:\t%d\nVmRSS:\t%d kB\nRssAnon:\t%d kB\nRssFile:\t%d kB\nRssShmem:\t0 kB\n"
ROLLUP = b"Rss: %d kB\nPss: %d kB\n" + b"".join(
    name + b": 0 kB\n"
    for name in (b"Private_Clean", b"Private_Dirty", b"Shared_Clean", b"Shared_Dirty",
                 b"Anonymous", b"Swap")
)  # fmt: skip


def test_resident_memory_counts_shared_pages_for_each() -> None:
    statuses = ProcessStatuses(
        {pid: parse(STATUS % (pid, 100, 60, 40)) for pid in (1, 2)}, ()
    )  # fmt: skip
    shares = {pid: parse_smaps_rollup(ROLLUP % (100, 50)) for pid in (1, 2)}
    resident = resident_of([1, 2, 99], statuses, PROCESSES, 4096, shares)
    assert resident is not None
    assert (resident.processes, resident.missing) == (2, 1)
    assert resident.bytes == 200 << 10
    assert resident.by_kind == {"anon": 120 << 10, "file": 80 << 10, "shmem": 0}
    assert resident.times_counted == pytest.approx(2.0)
    (part,) = process_numbers(resident)
    assert (part.bytes, part.note) == (200 << 10, "at least, 2 of 3 processes")
    whole = resident_of([1, 2], statuses, PROCESSES, 4096, shares)
    res, pss = process_numbers(whole)
    assert (res.bytes, pss.bytes, res.note) == (200 << 10, 100 << 10, "")
    assert sum(part.bytes for part in res.inputs) == res.bytes


def test_shares_of_some_of_them_are_no_row_of_the_table() -> None:
    shares = {1: parse_smaps_rollup(ROLLUP % (40, 10))}
    resident = resident_of([1, 2], Unread("/proc", "refused"), PROCESSES, 65536, shares)
    assert resident is not None
    assert resident.bytes == 40 * 65536
    assert resident.source == "rss in /proc/PID/stat"
    assert resident.times_counted == pytest.approx(4.0)
    assert [row.name for row in process_numbers(resident)] == ["RES, RSS"]


def test_nobody_seen_is_no_number() -> None:
    missing = Unread("/proc", "refused")
    assert resident_of([1], missing, missing, 4096, {}) is None
    assert process_numbers(None) == ()


def test_the_largest_are_asked_and_no_kernel_thread() -> None:
    assert largest_pids([1, 2, 3, 4], PROCESSES, 5) == [2, 1]
    assert largest_pids([1, 2, 3, 4], PROCESSES, 1) == [2]
