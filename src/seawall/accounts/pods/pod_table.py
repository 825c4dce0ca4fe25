# SPDX-License-Identifier: Apache-2.0
"""What each workload holds: the numbers behind ``seawall pods``.

A parent's counters hold its children's.  So that nothing is counted twice, only leaves have
a share in the total: workloads with processes of their own.  One that also has workloads
below it (a kind node, a user's manager) counts there with what is left without them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from seawall.accounts.cgroup_memory.memory_numbers import droppable, held_bytes, working_set
from seawall.accounts.claims.shadow_charge import ChargeOverrun
from seawall.accounts.limits.limit_hits import refusals
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.reading import UNLIMITED, Unlimited

_LEFT_BEHIND_BYTES: Final = 1 << 20
"""An empty cgroup with less than this has no row: its last pages are on the way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHolding:
    """Bytes; None where this kernel does not tell, or it could not be read."""

    charge: int | None
    """memory.current, memory.usage_in_bytes."""
    working_set: int | None
    """Charge less inactive file pages: what the kubelet ranks by."""
    anon: int | None
    """Anonymous memory; v1 total_rss."""
    file: int | None
    """Page cache with tmpfs and shared memory in it, as the kernel counts it."""
    cache: int | None
    """``file`` without tmpfs and shared memory."""
    reclaimable: int | None
    """Clean file pages on the LRU lists: reclaim takes them without writing anything."""
    dirty: int | None
    """Dirty and under writeback."""
    shmem: int | None
    """Tmpfs and shared memory."""
    kernel: int | None
    """Kernel memory charged to it; on v2 before 5.18 the sum of its parts."""
    swap: int | None
    """Swapped out."""
    uncounted: int | None = None
    """Held and not charged, most likely (pod_outside.py); None where nobody asked, or where none
    was seen and a source was refused."""
    uncounted_least: int | None = None
    """The least of that."""
    uncounted_most: int | None = None
    """The most of that."""
    shadow_charge: int | None = None
    """``charge`` and ``uncounted``."""

    def less(self, others: Iterable["PodHolding"]) -> "PodHolding":
        """Without what the others hold; never below zero, for they are read moments apart."""
        rows = list(others)
        values: dict[str, int | None] = {}
        for field in fields(self):
            parts = [getattr(row, field.name) for row in rows]
            mine = getattr(self, field.name)
            known = mine is not None and None not in parts
            values[field.name] = max(0, mine - sum(parts)) if known else None
        return PodHolding(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How far a workload is from the limit that binds it, its own or one above it."""

    distance: int
    """limit - charge, in bytes; below zero when the limit was lowered."""
    grows: int
    """limit - what cannot be dropped: how much anonymous memory still fits."""
    limit: int
    cgroup: str
    """Whose limit it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodKills:
    """OOM kills in a workload's cgroup and below it (pod_kills.py)."""

    counted: int | None = None
    """By the counters of the cgroups that are there; None where none of them counts."""
    gone: int | None = None
    """By the kernel's log, of cgroups below that are gone and that ``counted`` lacks."""
    counts_gone: bool = False
    """Whether those of cgroups that are gone would be known."""
    in_window: int | None = None
    """In the last ``window_seconds``; None without a window."""
    window_seconds: float | None = None
    last_seconds_ago: float | None = None
    """The newest one of the kernel's log, as far back as that goes."""

    @property
    def total(self) -> int | None:
        """All that is known of."""
        return _sum(self.counted, self.gone or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """One workload in the table of ``seawall pods``: its memory, its room, its OOM kills."""

    workload: Workload
    memcg: Memcg
    whole: PodHolding
    """With everything below it, as the kernel counts."""
    own: PodHolding
    """Without the leaves below it; the same as ``whole`` where there are none."""
    is_leaf: bool
    """Counts in totals; its numbers leave out the leaves below it."""
    nested: int
    """How many leaves lie below it."""
    processes: int | None
    """In it and below it; None when the cgroups' processes could not be read."""
    room: Room | Unlimited | None
    """UNLIMITED: no limit up to the root.  None: a limit or usage could not be read."""
    overrun: ChargeOverrun | None = None
    """Of its own limit, when its uncounted memory is added (pod_outside.py)."""
    undivided: int = 0
    """Bytes held outside charges by a parent as a whole: whose in it they are is not known."""
    kills: PodKills | None = None
    """None where nobody asked: then ``oom_kills`` is the cgroup's own counter."""

    @property
    def oom_kills(self) -> int | None:
        """Since it began, and in cgroups below it."""
        return self.memcg.oom_kill if self.kills is None else self.kills.total

    @property
    def limit(self) -> int | Unlimited | None:
        """The workload's own memory limit in bytes, apart from limits of the cgroups above it."""
        return self.memcg.limit

    @property
    def pressure(self) -> float | None:
        """Share of the last 10 s in which some task waited for memory; v2 only."""
        stall = self.memcg.memory_pressure
        return None if stall is None else stall.some.avg10

    @property
    def limit_hits(self) -> int | None:
        """How often its limit stopped a charge, since it began."""
        return refusals(self.memcg) if self.memcg.version == 1 else self.memcg.events.get("max")


@dataclass(frozen=True, slots=True)
class PodTable:
    """The topic: every workload whose memory is counted, the root left out."""

    rows: tuple[PodRow, ...]
    version: int
    parents_own: int | None
    """Bytes charged to parents alone: of removed cgroups, or shared by several children."""
    root_own: int | None
    """Bytes charged to the root itself, by processes in no other cgroup.  v1 only."""
    unread: tuple[Unread, ...]
    elsewhere: PodKills | None = None
    """Kills of the kernel's log that belong to no row: of cgroups that are gone whole."""


def account(workloads: Workloads, memcgs: Memcgs, cgroups: Cgroups) -> PodTable:
    """Join workloads with their memory."""
    known = {path: w for path, w in workloads.by_cgroup.items() if path in memcgs.by_path}
    own_count = _processes(workloads, known, cgroups)
    tree = _Tree(known, memcgs, own_count)
    rows = tuple(tree.row(path) for path in known if path != "/")
    uncounted = tuple(
        Unread(path, "absent", "the memory controller is off here")
        for path, w in workloads.by_cgroup.items()
        if path not in known and w.kind == "container"
    )
    parents_own = _parents_own(rows, memcgs)
    return PodTable(rows, memcgs.version, parents_own, _root_own(memcgs), uncounted)


class _Tree:
    """Which workload lies below which."""

    def __init__(
        self, known: Mapping[str, Workload], memcgs: Memcgs, own_count: Mapping[str, int] | None
    ) -> None:
        self._known = known
        self._memcgs = memcgs
        self._own_count = own_count
        self._parents = {
            above for path in known if path != "/" for above in _above(path) if above in known
        }
        self._whole = {path: _holding(memcgs.by_path[path]) for path in known}
        self._leaves = {path for path in known if self._is_leaf(path)}
        self._below: dict[str, list[str]] = {}
        for leaf in self._leaves:
            for above in _above(leaf):
                self._below.setdefault(above, []).append(leaf)

    def row(self, path: str) -> PodRow:
        memcg = self._memcgs.by_path[path]
        below = self._below.get(path, [])
        whole = self._whole[path]
        own = whole
        if below and memcg.hierarchical:
            own = whole.less(self._whole[leaf] for leaf in self._outermost(path, below))
        return PodRow(
            workload=self._known[path], memcg=memcg, whole=whole, own=own,
            is_leaf=path in self._leaves, nested=len(below), processes=self._count(path, below),
            room=_room(path, self._memcgs),
        )  # fmt: skip

    def _is_leaf(self, path: str) -> bool:
        kind = self._known[path].kind
        if path == "/":
            return False
        if kind in ("container", "unit") or (self._own_count or {}).get(path):
            return True
        charge = self._whole[path].charge or 0
        return kind == "cgroup" and path not in self._parents and charge >= _LEFT_BEHIND_BYTES

    def _outermost(self, path: str, below: list[str]) -> Iterator[str]:
        """Leaves below ``path`` with no other leaf in between."""
        for leaf in below:
            between = (above for above in _above(leaf) if len(above) > len(path))
            if not any(above in self._leaves for above in between):
                yield leaf

    def _count(self, path: str, below: list[str]) -> int | None:
        """A process belongs to exactly one workload; what is no leaf has none of its own."""
        if self._own_count is None:
            return None
        return self._own_count.get(path, 0) + sum(self._own_count.get(leaf, 0) for leaf in below)


def _processes(
    workloads: Workloads, known: Mapping[str, Workload], cgroups: Cgroups
) -> dict[str, int] | None:
    """How many processes each of ``known`` has itself.  Where memory is not counted
    separately, they are charged to the one above.
    """
    if not cgroups.pids:
        return None
    found: dict[str, int] = {}
    for owner in workloads.by_pid.values():
        path = owner.cgroup
        while path not in known and path:
            path = path.rpartition("/")[0]
        found[path] = found.get(path, 0) + 1
    return found


def _above(path: str) -> Iterator[str]:
    """The ancestors, nearest first, without the root."""
    while (path := path.rpartition("/")[0]) != "":
        yield path


def _holding(memcg: Memcg) -> PodHolding:
    clean, dirty = droppable(memcg), _sum(memcg.dirty, memcg.writeback)
    cache = memcg.file
    if cache is not None and memcg.shmem is not None:
        cache = max(0, cache - memcg.shmem)
    return PodHolding(
        charge=memcg.usage,
        working_set=working_set(memcg),
        anon=memcg.anon,
        file=memcg.file,
        cache=cache,
        reclaimable=None if clean is None else max(0, clean - (dirty or 0)),
        dirty=dirty,
        shmem=memcg.shmem,
        kernel=_kernel(memcg),
        swap=memcg.swap_usage,
    )


def _sum(*parts: int | None) -> int | None:
    """Of those that are known; None when none is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _kernel(memcg: Memcg) -> int | None:
    """Before 5.18 v2 has no sum: then its parts, which miss some small ones."""
    if memcg.kernel is not None or memcg.version == 1:
        return memcg.kernel
    return _sum(
        memcg.slab_reclaimable, memcg.slab_unreclaimable, memcg.kernel_stack, memcg.page_tables,
        memcg.percpu, memcg.vmalloc,
    )  # fmt: skip


def _room(path: str, memcgs: Memcgs) -> Room | Unlimited | None:
    """The tightest of its own limit and those above it."""
    found: list[Room] = []
    for above in (path, *_above(path)):
        memcg = memcgs.by_path.get(above)
        if memcg is None:
            continue
        if memcg.limit is None or memcg.usage is None:
            return None
        if not isinstance(memcg.limit, Unlimited):
            kept = held_bytes(memcg)
            grows = memcg.limit - (memcg.usage if kept is None else kept)
            distance = memcg.limit - memcg.usage
            found.append(Room(distance=distance, grows=grows, limit=memcg.limit, cgroup=above))
    return min(found, key=lambda room: room.grows) if found else UNLIMITED


def _parents_own(rows: tuple[PodRow, ...], memcgs: Memcgs) -> int | None:
    """What the topmost cgroups hold less what their leaves hold."""
    tops = [m for path, m in memcgs.by_path.items() if path.count("/") == 1 and path != "/"]
    charges = [memcg.usage for memcg in tops]
    shares = [row.own.charge for row in rows if row.is_leaf]
    if None in charges or None in shares or not all(memcg.hierarchical for memcg in tops):
        return None
    return max(0, sum(filter(None, charges)) - sum(filter(None, shares)))


def _root_own(memcgs: Memcgs) -> int | None:
    """The keys without ``total_`` are the cgroup's own."""
    root = memcgs.by_path.get("/") if memcgs.version == 1 else None
    return None if root is None else _sum(root.stat.get("rss"), root.stat.get("cache"))
