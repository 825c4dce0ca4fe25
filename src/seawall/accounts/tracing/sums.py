# SPDX-License-Identifier: Apache-2.0
"""A trace summed: by workload and kind, by stack, and never more than uncounted memory holds.

Left out is what the ledger counts on a line (``page_kinds.py``).  Kernel threads take for
whoever gave them work, so theirs is nobody's.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from seawall.accounts.claim import RESIDUAL
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.tracing.caps import Part
from seawall.accounts.tracing.caps import capped as capped_parts
from seawall.accounts.tracing.page_kinds import (
    PageKind,
    deciding_frame,
    is_tracers_own,
    kind_of_stack,
)
from seawall.accounts.tracing.task_workloads import TaskOwner, TaskWorkloads
from seawall.accounts.tracing.trace_rows import (
    Capped,
    StackSum,
    TracedProcess,
    TracedRow,
    TraceSum,
)
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.container_files import ContainerFiles
from seawall.readings.kernel import Kernel
from seawall.readings.page_trace import HeldPages, PageTrace, TracedTask
from seawall.readings.snapshot import Snapshot

KERNEL_THREADS: Final = "the kernel's own threads"
CACHES: Final = "caches that all share"
STACKS_MOST: Final = 50
GIVEN_BACK_LEAST_BYTES: Final = 1 << 20
PROCESSES_MOST: Final = 20
FRAMES_MOST: Final = 12
_SHARED: Final = TaskOwner(CACHES, None, None)


@dataclass(frozen=True, slots=True)
class TraceInputs:
    """What else of the host a trace is read with."""

    places: TaskWorkloads
    lines: tuple[str, ...]
    """Of the ledger."""
    version: tuple[int, int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "TraceInputs":
        """As a moment of the host tells it."""
        ledger, kernel = snapshot.get(Ledger), snapshot.get(Kernel)
        return cls(
            TaskWorkloads(
                snapshot.get(Cgroups), snapshot.get(ContainerFiles), snapshot.get(Workloads)
            ),
            () if isinstance(ledger, Unread) else tuple(line.name for line in ledger.lines),
            (0, 0) if isinstance(kernel, Unread) else kernel.version,
        )


@dataclass(frozen=True, slots=True)
class UncountedGrowth:
    """How uncounted memory moved over the trace."""

    error_bytes: int = 0
    growth_bytes: int | None = None
    """From before to after; None: not known."""
    risen_bytes: int | None = None
    """From its lowest point to after; None: not known, and then nothing caps."""


@dataclass(slots=True)
class _Draft:
    """One row while it fills."""

    holding: TaskOwner
    inode: int | None
    taken: PageKind
    pages: int = 0
    least: int = 0
    most: int = 0
    mapped: int = 0
    is_doubted: bool = False
    by_task: Counter[int] = field(default_factory=Counter)
    by_stack: Counter[int] = field(default_factory=Counter)

    def add(self, part: HeldPages, *, is_doubted: bool) -> None:
        self.is_doubted = self.is_doubted or is_doubted
        self.pages += part.pages
        self.least += part.least_pages
        self.most += part.most_pages
        self.mapped += part.mapped_pages
        self.by_task[part.task] += part.pages
        self.by_stack[part.stack] += part.pages


def sum_trace(trace: PageTrace, sight: TraceInputs, window: UncountedGrowth) -> TraceSum:
    """Rows, stacks and what was left out of them."""
    size = trace.page_size
    takens = [
        None if is_tracers_own(stack) else kind_of_stack(stack, sight.lines, sight.version)
        for stack in trace.stacks
    ]
    holdings = [_holding(task, sight.places) for task in trace.tasks]
    inodes = _inodes(trace, holdings)
    drafts: dict[object, _Draft] = {}
    counted: Counter[str] = Counter()
    left: list[HeldPages] = []
    for part in trace.held:
        taken, holding, inode = takens[part.stack], holdings[part.task], inodes[part.task]
        if taken is None:
            continue
        if taken.line is not None and taken.kind != "surface":
            counted[taken.line] += part.pages * size
            continue
        left.append(part)
        if taken.is_nobodys:
            holding, inode = _SHARED, None
        key = holding.holder, holding.cgroup, inode, taken
        draft = drafts.setdefault(key, _Draft(holding, inode, taken))
        draft.add(part, is_doubted=_is_doubted(part, trace))
    _add_kprobes(trace, holdings, inodes, drafts)
    rows = sorted((_row(draft, trace) for draft in drafts.values()), key=lambda row: -row.bytes)
    capped = None
    if window.risen_bytes is not None:
        rows, capped = cap(rows, max(0, window.risen_bytes), window.error_bytes)
    return TraceSum(
        has_trace=True, seconds=trace.seconds, rows=tuple(rows), capped=capped,
        by_stack=tuple(_stacks(left, trace, holdings)), counted=dict(counted),
        given_back=tuple(_given_back(trace, holdings)),
        growth_bytes=window.growth_bytes, error_bytes=window.error_bytes,
        events=trace.events, lost_events=trace.lost_events,
        sampled_one_in=trace.sampled_one_in, mechanism=trace.mechanism, notes=trace.notes,
    )  # fmt: skip


def cap(
    rows: Sequence[TracedRow], risen_bytes: int, error_bytes: int
) -> tuple[list[TracedRow], Capped | None]:
    """Rows whose residual bytes add up to what has risen and its error at the most.

    The error is room for what is likely, and for nothing that is certain.
    """
    most_bytes = risen_bytes + error_bytes
    inside = [row for row in rows if row.within == RESIDUAL]
    parts = [
        Part(max(row.least_bytes, row.held_bytes), row.bytes, row.most_bytes) for row in inside
    ]
    cut = [row for row in rows if row.within != RESIDUAL]
    for row, part in zip(inside, capped_parts(parts, most_bytes, risen_bytes), strict=True):
        least = min(row.least_bytes, part.least)
        cut.append(replace(row, bytes=part.best, least_bytes=least, most_bytes=part.most))
    total = sum(row.bytes for row in inside)
    cut.sort(key=lambda row: -row.bytes)
    return cut, Capped(total, most_bytes) if total > most_bytes else None


def _is_doubted(part: HeldPages, trace: PageTrace) -> bool:
    """Whether lost events keep it from being certain."""
    return part.least_pages < part.pages and trace.lost_events > 0


def _holding(task: TracedTask, places: TaskWorkloads) -> TaskOwner:
    if task.is_kernel_thread:
        return TaskOwner(KERNEL_THREADS, None, None)
    found = places.holding(task.cgroups)
    if found is not None:
        return found
    return TaskOwner(f"a process of an unknown cgroup ({task.comm}, pid {task.tgid})", None, None)


def _inodes(trace: PageTrace, holdings: Sequence[TaskOwner]) -> list[int | None]:
    """Of each task's workload: its cgroup's, which tasks in cgroups below it do not tell.

    A path comes again; two cgroups that had it one after the other are two holders.
    """
    own: defaultdict[str | None, set[int]] = defaultdict(set)
    for task, holding in zip(trace.tasks, holdings, strict=True):
        if holding.is_own and task.cgroup_inode is not None:
            own[holding.cgroup].add(task.cgroup_inode)
    only = {cgroup: next(iter(inodes)) for cgroup, inodes in own.items() if len(inodes) == 1}
    return [
        task.cgroup_inode if holding.is_own else only.get(holding.cgroup)
        for task, holding in zip(trace.tasks, holdings, strict=True)
    ]


def _row(draft: _Draft, trace: PageTrace) -> TracedRow:
    holding, taken, size = draft.holding, draft.taken, trace.page_size
    stack: tuple[str, ...] = ()
    for number, _ in draft.by_stack.most_common(1):
        frames = trace.stacks[number]
        stack = frames[deciding_frame(frames) :][:FRAMES_MOST]
    pages = min(max(draft.pages, draft.least), max(draft.most, draft.least))
    return TracedRow(
        holder=holding.holder, workload=holding.workload, cgroup=holding.cgroup,
        cgroup_inode=draft.inode, is_gone=holding.is_gone, kind=taken.kind, what=taken.what,
        driver=taken.driver, within=taken.line or RESIDUAL, bytes=pages * size,
        least_bytes=draft.least * size if taken.is_certain else 0,
        most_bytes=max(draft.most, pages) * size,
        mapped_bytes=draft.mapped * size, processes=tuple(_processes(draft.by_task, trace)),
        stack=stack, is_doubted=draft.is_doubted, held_bytes=draft.least * size,
    )  # fmt: skip


def _processes(by_task: Counter[int], trace: PageTrace) -> Iterable[TracedProcess]:
    """Threads of a process together; the name is that of the thread that took most."""
    sums: Counter[int] = Counter()
    first: dict[int, TracedTask] = {}
    alive: dict[int, bool] = {}
    for number, pages in by_task.most_common():
        task = trace.tasks[number]
        sums[task.tgid] += pages * trace.page_size
        first.setdefault(task.tgid, task)
        alive[task.tgid] = alive.get(task.tgid, False) or task.alive
    for pid, held in sums.most_common(PROCESSES_MOST):
        yield TracedProcess(pid, first[pid].comm, held, alive[pid])


def _add_kprobes(
    trace: PageTrace,
    holdings: Sequence[TaskOwner],
    inodes: Sequence[int | None],
    drafts: dict[object, _Draft],
) -> None:
    """What a known driver itself was seen to take: an upper bound, for it keeps pools.

    Where its pages were traced too, these are the same bytes.
    """
    for probe in trace.kprobes:
        net = max(0, probe.pages - probe.freed_pages)
        holding = holdings[probe.task]
        same = [
            draft for draft in drafts.values()
            if draft.holding.holder == holding.holder and draft.taken.driver == probe.driver
        ]  # fmt: skip
        if same:
            same[0].most += max(0, net - sum(draft.most for draft in same))
        elif net:
            taken = PageKind("surface", "memory of the GPU driver", probe.driver)
            draft = _Draft(holding, inodes[probe.task], taken, pages=net, most=net)
            draft.by_task[probe.task] += net
            drafts[holding.holder, holding.cgroup, inodes[probe.task], taken] = draft


def _stacks(
    parts: Iterable[HeldPages], trace: PageTrace, holdings: Sequence[TaskOwner]
) -> Iterable[StackSum]:
    """Largest first; the small ones beyond STACKS_MOST are left out."""
    sums: Counter[tuple[str, ...]] = Counter()
    holders: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for part in parts:
        frames = trace.stacks[part.stack]
        if not part.pages:
            continue
        sums[frames] += part.pages * trace.page_size
        holders[frames][holdings[part.task].holder] += part.pages
    for frames, held in sums.most_common(STACKS_MOST):
        names = tuple(name for name, _ in holders[frames].most_common(10))
        yield StackSum(held, frames, names)


def _given_back(trace: PageTrace, holdings: Sequence[TaskOwner]) -> Iterable[tuple[str, int]]:
    """What was taken beyond what is still held, by holder."""
    sums: Counter[str] = Counter()
    for gross in trace.gross:
        sums[holdings[gross.task].holder] += gross.pages * trace.page_size
    for part in trace.held:
        sums[holdings[part.task].holder] -= part.pages * trace.page_size
    return [pair for pair in sums.most_common(10) if pair[1] >= GIVEN_BACK_LEAST_BYTES]
