"""A trace summed by workload: culprits beside innocents, on hosts written down by hand."""

import json
from typing import Any

import pytest
from tests.case_host import parse_case

from seawall.accounts.claims.claims import Claims
from seawall.accounts.tracing.trace_rows import TracedRow, TraceSum
from seawall.accounts.tracing.traced_memory import Traced
from seawall.host.host import JSON, Unread
from seawall.host.overlay_host import OverlayHost
from seawall.readings.finished_trace import PROBE
from seawall.readings.snapshot import Snapshot

MIB = 1 << 20
ID = "8f3c" * 16
POD = f"/kubepods/burstable/pod11111111-2222-4333-8444-555555555555/{ID}"
RING = ["packet_set_ring", "packet_setsockopt", "__sys_setsockopt", "do_syscall_64"]
SENDER = ["skb_page_frag_refill", "tcp_sendmsg_locked", "tcp_sendmsg", "do_syscall_64"]
VMALLOC = ["__vmalloc_area_node", "__vmalloc_node_range", "vzalloc", "bpf_map_area_alloc"]
WORKER = ["mlx5_alloc_buf [mlx5_core]", "process_one_work", "worker_thread", "kthread"]

MEMINFO = """MemTotal:       8388608 kB
MemFree:        {free} kB
AnonPages:      1048576 kB
Slab:            204800 kB
KernelStack:      16384 kB
PageTables:       20480 kB
Percpu:            8192 kB
VmallocUsed:      65536 kB
KReclaimable:    102400 kB
SReclaimable:    102400 kB
Buffers:        0 kB
Cached:         0 kB
SwapCached:     0 kB
Active:         0 kB
Inactive:       0 kB
Unevictable:    0 kB
Shmem:          0 kB
"""
V1 = """=== /proc/1/mountinfo
30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""
V2 = """=== /proc/1/mountinfo
30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
cpuset cpu io memory pids
"""
FREE_KB = 6291456


def task(tid: int, comm: str, cgroups: list[str], **other: JSON) -> dict[str, Any]:
    return {
        "tid": tid, "tgid": tid, "comm": comm, "start_ticks": 5, "is_kernel_thread": False,
        "cgroups": cgroups, "cgroup_inode": 100, "known_by": "proc", "alive": True, **other,
    }  # fmt: skip


def held(
    task: int, stack: int, pages: int, least: int | None = None, most: int | None = None
) -> dict[str, Any]:
    least = pages if least is None else least
    most = pages if most is None else most
    return {
        "task": task, "stack": stack, "pages": pages, "least_pages": least, "most_pages": most,
        "mapped_pages": 0,
    }  # fmt: skip


def trace(**parts: Any) -> dict[str, Any]:
    return {
        "seconds": 10.0, "page_size": 4096, "mechanism": "ring", "events": 1000, "lost_events": 0,
        "sampled_one_in": 1, "notes": [], "free_list_pages": 0, "buffer_bytes": 0, "stacks": [],
        "tasks": [], "held": [], "gross": [], "kprobes": [], **parts,
    }  # fmt: skip


def snapshot(
    answer: JSON | Unread, tree: str, cgroups: str = "", *, grown: int | None = 1024 * MIB,
    release: str = "6.1.0",
) -> Snapshot:  # fmt: skip
    """A host after a trace, in which the residual grew by so much."""
    text = "why: a trace\n=== /proc/meminfo\n" + MEMINFO.format(free=FREE_KB)
    text += f"=== /proc/sys/kernel/osrelease\n{release}\n" + tree + cgroups
    host = parse_case(text.encode()).rounds[0]
    known: dict[str, JSON] = {}
    if grown is not None:
        known = {"residual_bytes": residual(host) - grown, "error_bytes": 0}
    told = answer if isinstance(answer, Unread) else {"trace": answer, "before": known}
    return Snapshot(OverlayHost(host, {PROBE: told}))


def residual(host: Any) -> int:
    from seawall.accounts.node_memory.ledger import Ledger

    ledger = Snapshot(host).get(Ledger)
    assert not isinstance(ledger, Unread)
    return ledger.residual_bytes


def traced(found: Snapshot) -> TraceSum:
    topic = found.get(Traced)
    assert not isinstance(topic, Unread)
    return topic.sum


def rows(found: Snapshot) -> dict[str, TracedRow]:
    return {row.holder: row for row in traced(found).rows}


def group(path: str, *, version: int = 1) -> str:
    home = "/sys/fs/cgroup/memory" if version == 1 else "/sys/fs/cgroup"
    return f"=== {home}{path}/cgroup.procs\n"


TREE_V1 = V1 + group("/") + group("/iperf") + group(POD)
CULPRIT = task(4711, "rings", ["9:name=systemd:/wrong", f"4:memory:{POD}", "0::/other"])
INNOCENT = task(4712, "iperf3", ["4:memory:/iperf", "0::/other"])


def test_a_culprit_is_named_beside_an_innocent_that_churns() -> None:
    answer = trace(
        stacks=[RING, SENDER], tasks=[CULPRIT, INNOCENT],
        held=[held(0, 0, 65536), held(1, 1, 20, least=0, most=9000)],
        gross=[{"task": 0, "pages": 65536}, {"task": 1, "pages": 1_175_552}],
    )  # fmt: skip
    found = snapshot(answer, TREE_V1)
    by_holder = rows(found)
    culprit = by_holder[f"container:{ID[:12]}"]
    assert (culprit.bytes, culprit.least_bytes, culprit.most_bytes) == (256 * MIB,) * 3
    assert (culprit.kind, culprit.what, culprit.cgroup) == ("ring", "packet ring", POD)
    assert culprit.cgroup_inode == 100
    assert [(p.pid, p.name, p.is_alive) for p in culprit.processes] == [(4711, "rings", True)]
    innocent = by_holder["/iperf"]
    assert (innocent.bytes, innocent.least_bytes) == (80 << 10, 0)
    # 4,592 MiB went through its hands: that is told, and is nobody's claim.
    assert traced(found).given_back == (("/iperf", 1_175_552 * 4096 - (80 << 10)),)
    (first, *_) = traced(found).by_stack
    assert (first.bytes, first.frames[0], first.workloads) == (
        256 * MIB, "packet_set_ring", (culprit.holder,),
    )  # fmt: skip


def test_the_claim_says_who_what_and_how_it_is_known() -> None:
    answer = trace(stacks=[RING], tasks=[CULPRIT], held=[held(0, 0, 65536)])
    claims = snapshot(answer, TREE_V1).get(Claims)
    assert not isinstance(claims, Unread)
    (claim,) = [claim for claim in claims.claims if claim.confidence == "traced"]
    assert (claim.workload, claim.cgroup) == (f"container:{ID[:12]}", POD)
    assert (claim.bytes, claim.kind, claim.within) == (256 * MIB, "ring", "residual")
    assert not claim.is_counted
    assert "packet_set_ring < packet_setsockopt" in claim.source
    assert "rings (pid 4711)" in claim.source


def test_on_v2_the_unified_hierarchy_is_meant_even_beside_v1_lines() -> None:
    both = task(4711, "rings", ["4:memory:/wrong", f"0::{POD}"])
    tree = V2 + group("/", version=2) + group(POD, version=2)
    answer = trace(stacks=[RING], tasks=[both], held=[held(0, 0, 256)])
    assert rows(snapshot(answer, tree))[f"container:{ID[:12]}"].bytes == MIB


def test_kernel_threads_are_never_a_workload() -> None:
    thread = task(90, "kworker/u8:1", ["4:memory:/", "0::/"], is_kernel_thread=True)
    answer = trace(stacks=[WORKER], tasks=[thread], held=[held(0, 0, 2560)])
    found = snapshot(answer, TREE_V1)
    (row,) = traced(found).rows
    assert (row.workload, row.cgroup, row.driver) == (None, None, "mlx5_core")
    assert row.holder == "the kernel's own threads"
    assert row.bytes == 10 * MIB


def test_what_a_line_of_the_ledger_has_is_left_out() -> None:
    answer = trace(
        stacks=[VMALLOC, ["pcpu_alloc_pages", "pcpu_alloc"], RING], tasks=[CULPRIT],
        held=[held(0, 0, 5120), held(0, 1, 256), held(0, 2, 512)],
    )  # fmt: skip
    found = traced(snapshot(answer, TREE_V1))
    assert [row.bytes for row in found.rows] == [2 * MIB]
    assert found.counted == {"vmalloc": 20 * MIB, "percpu": MIB}
    assert [stack.frames[0] for stack in found.by_stack] == ["packet_set_ring"]


def test_one_that_exited_and_one_it_forked_are_one_holder() -> None:
    parent = task(4711, "rings", [f"4:memory:{POD}"], known_by="fork", alive=False)
    child = task(5000, "rings-child", [f"4:memory:{POD}"], start_ticks=None)
    answer = trace(
        stacks=[RING], tasks=[parent, child], held=[held(0, 0, 40960), held(1, 0, 2560)],
    )  # fmt: skip
    (row,) = traced(snapshot(answer, TREE_V1)).rows
    assert row.bytes == 170 * MIB
    assert [(p.pid, p.is_alive) for p in row.processes] == [(4711, False), (5000, True)]


@pytest.mark.parametrize("suffix", ["", " (deleted)"])
def test_a_container_whose_cgroup_is_gone_is_still_named(suffix: str) -> None:
    gone = task(4711, "rings", [f"0::{POD}{suffix}"], alive=False)
    answer = trace(stacks=[RING], tasks=[gone], held=[held(0, 0, 25600)])
    tree = V2 + group("/", version=2) + group("/kubepods", version=2)
    found = snapshot(answer, tree)
    (row,) = traced(found).rows
    assert row.holder == f"container:{ID[:12]} (gone)"
    assert (row.workload, row.cgroup, row.is_gone) == (f"container:{ID[:12]}", POD, True)
    claims = found.get(Claims)
    assert not isinstance(claims, Unread)
    assert any("gone" in claim.missing for claim in claims.claims)


def test_a_task_below_its_container_belongs_to_the_container() -> None:
    inner = task(1, "a", [f"4:memory:{POD}/inner/deep"], cgroup_inode=333)
    own = task(2, "b", [f"4:memory:{POD}"])
    answer = trace(
        stacks=[RING], tasks=[inner, own], held=[held(0, 0, 256), held(1, 0, 256)],
    )  # fmt: skip
    (row,) = traced(snapshot(answer, TREE_V1)).rows
    assert (row.cgroup, row.bytes, row.is_gone, row.cgroup_inode) == (POD, 2 * MIB, False, 100)


def test_two_cgroups_that_had_a_path_one_after_the_other_are_two_holders() -> None:
    old = task(1, "a", ["4:memory:/iperf"], cgroup_inode=100, alive=False)
    new = task(2, "a", ["4:memory:/iperf"], cgroup_inode=200)
    answer = trace(stacks=[RING], tasks=[old, new], held=[held(0, 0, 512), held(1, 0, 256)])
    found = traced(snapshot(answer, TREE_V1)).rows
    assert [(row.cgroup_inode, row.bytes) for row in found] == [(100, 2 * MIB), (200, MIB)]


@pytest.mark.parametrize("cgroups", [[], ["4:cpu:/a"], ["nonsense"], ["4:memory:/../x"]])
def test_without_a_known_cgroup_the_process_is_told_and_no_workload(cgroups: list[str]) -> None:
    lost = task(77, "ra\nw", cgroups, known_by=None, cgroup_inode=None)
    answer = trace(stacks=[RING], tasks=[lost], held=[held(0, 0, 256)])
    (row,) = traced(snapshot(answer, TREE_V1)).rows
    assert row.workload is None
    assert "pid 77" in row.holder


def test_pages_of_64_kib() -> None:
    answer = trace(
        page_size=65536, stacks=[RING], tasks=[CULPRIT], held=[held(0, 0, 100, 90, 110)],
    )  # fmt: skip
    (row,) = traced(snapshot(answer, TREE_V1)).rows
    assert (row.least_bytes, row.bytes, row.most_bytes) == (5898240, 6553600, 7208960)


def test_claims_together_are_no_more_than_the_residual_grew_by() -> None:
    answer = trace(
        stacks=[RING, SENDER], tasks=[CULPRIT, INNOCENT],
        held=[held(0, 0, 25600), held(1, 1, 102400, least=0, most=102400)],
    )  # fmt: skip
    found = snapshot(answer, TREE_V1, grown=100 * MIB)
    sums = traced(found)
    error = sums.error_bytes
    by_holder = rows(found)
    # 100 MiB are certain of the culprit; the sender can have what the error leaves.
    assert by_holder[f"container:{ID[:12]}"].bytes == 100 * MIB
    assert by_holder["/iperf"].bytes <= error < 80 * MIB  # no zoneinfo here: a wide one
    # Somebody may have given back as much meanwhile: all that was traced is possible.
    assert by_holder["/iperf"].most_bytes == 400 * MIB
    assert sums.capped is not None
    assert (sums.capped.traced_bytes, sums.capped.most_bytes) == (500 * MIB, 100 * MIB + error)


def test_a_residual_that_shrank_leaves_nothing_but_its_error() -> None:
    answer = trace(stacks=[RING], tasks=[CULPRIT], held=[held(0, 0, 25600)])
    sums = traced(snapshot(answer, TREE_V1, grown=-500 * MIB))
    assert sum(row.bytes for row in sums.rows) <= sums.error_bytes
    assert sums.growth_bytes == -500 * MIB


def test_without_a_ledger_before_it_nothing_caps() -> None:
    answer = trace(stacks=[RING], tasks=[CULPRIT], held=[held(0, 0, 25600)])
    sums = traced(snapshot(answer, TREE_V1, grown=None))
    assert (sums.growth_bytes, sums.capped) == (None, None)
    assert [row.bytes for row in sums.rows] == [100 * MIB]


def test_what_a_driver_was_seen_to_take_is_the_same_bytes_and_an_upper_bound() -> None:
    nvidia = ["nv_alloc_pages [nvidia]", "rm_ioctl [nvidia]"]
    probes = [{"driver": "nvidia", "task": 0, "pages": 5120, "freed_pages": 1024}]
    both = trace(stacks=[nvidia], tasks=[CULPRIT], held=[held(0, 0, 2560)], kprobes=probes)
    (row,) = traced(snapshot(both, TREE_V1)).rows
    assert (row.driver, row.bytes, row.most_bytes) == ("nvidia", 10 * MIB, 16 * MIB)
    alone = trace(stacks=[nvidia], tasks=[CULPRIT], kprobes=probes)
    (row,) = traced(snapshot(alone, TREE_V1)).rows
    assert (row.least_bytes, row.bytes, row.kind) == (0, 16 * MIB, "surface")


def test_where_nobody_traced_there_is_nothing() -> None:
    host = parse_case(b"why: no trace\n").rounds[0]
    assert not traced(Snapshot(host)).has_trace


def test_a_refusal_is_no_trace_and_stays_readable() -> None:
    found = snapshot(Unread("page_trace", "refused", "locked down"), TREE_V1)
    assert not traced(found).has_trace


@pytest.mark.parametrize(
    "answer", [None, 5, [], {}, {"seconds": "x"}, json.loads('{"page_size": 1e99}')]
)
def test_a_malformed_answer_of_a_bundle_is_said_to_be_that(answer: JSON) -> None:
    from seawall.readings.finished_trace import FinishedTrace

    found = snapshot(answer, TREE_V1)
    value = found.get(FinishedTrace)
    assert isinstance(value, Unread)
    assert value.why == "malformed"
    assert not traced(found).has_trace
