# SPDX-License-Identifier: Apache-2.0
"""``seawall numbers``: one container's memory as each tool shows it, and why they differ."""

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.cgroup_memory.memory_parts import parts_of
from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.node_memory.kubelet_view import KubeletView
from seawall.accounts.numbers.tool_numbers import (
    KUBECTL,
    missing_rows,
    tightest_limit,
    tool_counts,
    tool_numbers,
    unread_limits,
    unseen_files,
    with_pod_sum,
)
from seawall.accounts.numbers.tool_numbers_node import free_numbers, kubelet_gap, node_numbers
from seawall.accounts.numbers.tool_numbers_processes import (
    Resident,
    largest_pids,
    process_numbers,
    resident_of,
)
from seawall.accounts.numbers.tool_numbers_slurm import slurm_numbers
from seawall.accounts.workloads import Workload, Workloads
from seawall.cli.named_workload import lookup_problem, named_workload
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import Head, SourceVerb
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.cgroup_tree import one_number
from seawall.readings.kernel import Kernel
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import Meminfo
from seawall.readings.mountinfo import parse as parse_mounts
from seawall.readings.process import Processes
from seawall.readings.process_extra import SmapsRollup, parse_smaps_rollup
from seawall.readings.process_status import ProcessStatuses
from seawall.readings.reading import read_as, read_each_as
from seawall.sources.source import Source
from seawall.views.numbers_page import NodePage, NumbersPage, WorkloadPage
from seawall.views.terminal import Console

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen: shares of other users' processes."""
ASKED_FOR_SHARES: Final = 64
"""Processes whose smaps_rollup is read, largest first: each takes its mmap_lock."""
_CHARGE_BATCH: Final = 64
"""Pages that a processor charges ahead; statistics lag behind by as many."""
_KERNEL_LINES: Final = frozenset(
    {"anonymous", "unmapped anonymous", "tmpfs and shared", "page cache", "buffers", "swap cache",
     "free", "per-cpu lists"}
)  # fmt: skip
"""Lines of the ledger that are no kernel memory."""

_A_FILE: Final = "the file: every kernel that counts memory has it"
_PROVIDE: Final = {
    "refused": "root on the host, or CAP_SYS_PTRACE",
    "not_captured": "the machine itself: a bundle does not hold it",
    "no_answer": "nothing: an address space that stays locked is evidence by itself",
    "not_reached": "a longer --timeout",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall numbers`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="namespace/pod[/container], a container id, pid:N, unit:NAME, slurm:JOB[.STEP] or a "
        "cgroup path; without one, the node",
    )  # fmt: skip
    parser.add_argument("--node", action="store_true", help="the node's numbers: same as '/'")
    parser.add_argument("--bytes", action="store_true", help="formulas in bytes, not rounded")


class NumbersVerb(SourceVerb[NumbersPage]):
    """The node's numbers, or those of one workload."""

    name = "numbers"

    def page(self) -> NumbersPage:
        """UsageProblem for a workload that is not there, or of which nothing is counted."""
        is_node, workload = self.arguments.node, self.arguments.workload
        if is_node and workload not in (None, "/"):
            raise UsageProblem("--node is about the whole machine: name a WORKLOAD or say --node")
        source, missed = self.source, _Missed([], [])
        is_node = is_node or workload in (None, "/")
        about = _node(source) if is_node else _about(source, workload, missed)
        return _page(source, about, missed)

    def text(self, page: NumbersPage, paper: Console) -> Iterable[str]:
        from seawall.views.numbers_text import lines  # noqa: PLC0415 - text alone

        return lines(page.about, paper, exact=self.arguments.bytes)

    def document(self, top: Head, page: NumbersPage) -> Head:
        from seawall.views.documents.numbers_document import numbers_document  # noqa: PLC0415 - JSON alone

        return numbers_document(top, page)


run = NumbersVerb.run


class _Missed(NamedTuple):
    """What the verb asked for itself and did not get."""

    shares: list[Unread]
    """smaps_rollup of processes."""
    files: list[Unread]
    """Of the cgroup, those above it and those in it."""


def _page(source: Source, about: WorkloadPage | NodePage, missed: _Missed) -> NumbersPage:
    rows = unread_rows([source.first], missed.files)
    absent = [one for one in missed.files if one.why in ("absent", "vanished")]
    rows += [NotSeen(one.path, one.detail or one.why, _A_FILE) for one in absent]
    if shares := missed.shares:
        what = f"how often shared pages are counted: {shares[0].path}"
        if len(shares) > 1:
            what += f" and {len(shares) - 1} more"
        words = shares[0].detail or shares[0].why
        rows.append(NotSeen(what, words, _PROVIDE.get(shares[0].why, "look again")))
    return NumbersPage(about=about, unseen=tuple(rows), bundle_notes=source.notes)


def _node(source: Source) -> NodePage:
    meminfo, view = source.first.get(Meminfo), source.first.get(KubeletView)
    if isinstance(meminfo, Unread):
        raise UsageProblem(f"{meminfo.path}: {meminfo.detail or meminfo.why}")
    full = source.first.get(FullLedger)
    ledger = None if isinstance(full, Unread) else full.ledger
    kernel = None
    if ledger is not None:
        kernel = sum(line.bytes for line in ledger.lines if line.name not in _KERNEL_LINES)
    return NodePage(
        meminfo=meminfo,
        numbers=node_numbers(meminfo, view, source.first.get(Memcgs)),
        gap=kubelet_gap(meminfo, view),
        kernel_bytes=kernel,
        residual_bytes=None if ledger is None else ledger.residual_bytes,
        residual_error_bytes=0 if ledger is None else ledger.residual_error_bytes,
    )


def _about(source: Source, text: str, missed: _Missed) -> WorkloadPage | NodePage:
    workload, groups = _named(source, text)
    if workload.kind == "root":
        return _node(source)
    return _workload(source, workload, groups, missed)


def _workload(
    source: Source, workload: Workload, groups: MemoryGroups, missed: _Missed
) -> WorkloadPage:
    containers = _containers(source, workload, groups) if workload.kind == "pod" else []
    group = groups.by_path.get(workload.cgroup)
    if group is not None and workload.step:
        group = replace(group, workload=workload)
    if group is None and len(containers) == 1:
        group, containers = containers[0], []  # a report of the container's files alone
    if group is None or group.memcg.usage is None:
        raise _nothing_counted(source, workload, groups, containers)
    resident = _resident(source, group, missed.shares)
    unread = unread_limits(group, groups)
    numbers = (*tool_numbers(group), *process_numbers(resident))
    if workload.slurm is not None:
        numbers = (*numbers, *slurm_numbers(group, resident))
    if containers:
        numbers = with_pod_sum(numbers, containers)
    files = _files_of(source, group, groups, containers)
    missed.files.extend(files)
    gone = missing_rows(group, files)
    if containers and not any(row.tool == KUBECTL for row in numbers):
        gone = (*gone, KUBECTL)
    limit = tightest_limit(group, groups)
    meminfo = source.first.get(Meminfo)
    return WorkloadPage(
        group=group,
        slurm=workload.slurm,
        kind=workload.kind if group.workload is None else group.workload.kind,
        parts=parts_of(group.memcg),
        limit=limit and limit[0],
        limit_of=_name_of(source, limit[1]) if limit else "",
        limits_unread=tuple(place.name for place in unread),
        numbers=numbers,
        counts=tool_counts(group),
        missing=gone,
        stock_bytes=_stock_bytes(source),
        resident=resident,
        inside=() if isinstance(meminfo, Unread) else tuple(free_numbers(meminfo)),
        has_lxcfs=_has_lxcfs(source, group),
        containers=tuple(containers),
    )


def _name_of(source: Source, place: MemoryGroup) -> str:
    """A step's own, where the workload is its job."""
    workloads = source.first.get(Workloads)
    part = None if isinstance(workloads, Unread) else workloads.job_parts.get(place.path)
    return place.name if part is None else part.name


def _nothing_counted(
    source: Source, workload: Workload, groups: MemoryGroups, containers: list[MemoryGroup]
) -> UsageProblem:
    """With the file that should tell, and why it does not."""
    name = "memory.usage_in_bytes" if groups.version == 1 else "memory.current"
    path = f"{groups.mount_point.rstrip('/')}{workload.cgroup}/{name}"
    answer = read_as(source.first.host, path, one_number)
    words = f"{workload.name}: its memory is not known: {path}: "
    words += (answer.detail or answer.why) if isinstance(answer, Unread) else "read too late"
    inside = ", ".join(one.name for one in containers)
    return UsageProblem(words + (f"; in it: {inside}" if inside else ""))


def _files_of(
    source: Source, group: MemoryGroup, groups: MemoryGroups, containers: Iterable[MemoryGroup]
) -> list[Unread]:
    """What could not be read of it, and what matters of those above it and in it."""
    files = list(_unread_files(source, group, unseen_files(group)))
    for place in groups.above(group.path):
        files += _unread_files(source, place, [place.limit_file])
    for place in containers:
        files += _unread_files(source, place, (place.limit_file, place.file("memory.stat")))
    return files


def _unread_files(source: Source, place: MemoryGroup, wanted: Iterable[str]) -> Iterator[Unread]:
    """What of its files could not be read; a wanted one that gave nothing is asked why."""
    yield from place.memcg.unread
    for path in sorted(set(unseen_files(place)).intersection(wanted)):
        answer = source.first.host.read(path)
        if not isinstance(answer, Unread):
            yield Unread(path, "malformed", "no counter in it")
        elif answer.why not in ("absent", "vanished") or not path.endswith("/memory.swap.current"):
            yield answer


def _stock_bytes(source: Source) -> int:
    kernel = source.first.get(Kernel)
    if isinstance(kernel, Unread):
        return 0
    return _CHARGE_BATCH * (kernel.cpus_online or 1) * kernel.page_size


def _named(source: Source, text: str) -> tuple[Workload, MemoryGroups]:
    workload = named_workload(source, text, takes_parts=True)
    groups = source.first.get(MemoryGroups)
    if isinstance(groups, Unread):
        raise lookup_problem(groups)
    return workload, groups


def _containers(source: Source, pod: Workload, groups: MemoryGroups) -> list[MemoryGroup]:
    workloads = source.first.get(Workloads)
    known = {} if isinstance(workloads, Unread) else workloads.by_cgroup
    inside = [
        groups.by_path[path]
        for path, one in known.items()
        if one.kind == "container" and path in groups.by_path
        and path.startswith(pod.cgroup.rstrip("/") + "/")
    ]  # fmt: skip
    return sorted(inside, key=lambda group: group.name)


def _resident(source: Source, group: MemoryGroup, missed: list[Unread]) -> Resident | None:
    kernel, processes = source.first.get(Kernel), source.first.get(Processes)
    if isinstance(kernel, Unread) or not group.pids:
        return None
    asked = largest_pids(group.pids, processes, ASKED_FOR_SHARES)
    files = [f"/proc/{pid}/smaps_rollup" for pid in asked]
    shares: dict[int, SmapsRollup] = {}
    answers = read_each_as(source.first.host, files, parse_smaps_rollup)
    for pid, rollup in zip(asked, answers, strict=True):
        if not isinstance(rollup, Unread):
            shares[pid] = rollup
        elif rollup.why not in ("absent", "vanished"):
            missed.append(rollup)
    statuses = source.first.get(ProcessStatuses)
    return resident_of(group.pids, statuses, processes, kernel.page_size, shares)


def _has_lxcfs(source: Source, group: MemoryGroup) -> bool | None:
    """By the mounts of one of its processes."""
    for pid in (group.pids or ())[:1]:
        mounts = read_as(source.first.host, f"/proc/{pid}/mountinfo", parse_mounts)
        if not isinstance(mounts, Unread):
            return any(
                mount.mount_point == "/proc/meminfo" and "lxcfs" in mount.fs_type
                for mount in mounts.mounts
            )
    return None
