# SPDX-License-Identifier: Apache-2.0
"""Facts of one tick: the node, and the groups that the judge could act on.

Filled by ``guard/sense`` (counters, every tick) and by what the watcher tells (claims, names,
classes).  Bytes and seconds.  None: not known, which is never zero.
"""

from typing import NamedTuple

BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM = 0, 1, 2, 3
"""Kubernetes' order, least wanted first; SYSTEM is what belongs to no pod or container."""
NOT_TOLD = "who it is was not told yet"
"""Of ``Group.protected_by``, for a minute at most.  Names and roles come from the watcher; a
storage daemon must not be taken for anybody."""
UNREAD_SHARE = 0.5
"""Of a charge whose parts were not read, so much is expected back."""


class Node(NamedTuple):
    """The node's memory at one tick, in bytes; None: not known."""

    seconds: float
    """Monotonic."""
    total_bytes: int
    """MemTotal less the hugetlb pool; 0: the node's memory could not be read in this tick, and what
    hangs on it says nothing."""
    free_bytes: int
    headroom_bytes: int
    """What programs can still have before reclaim hurts: free pages over the low watermark,
    and what can really be given back (clean page cache that no program maps, part of the
    reclaimable slab, swap at its real cost)."""
    swap_bytes: int
    """Of it, what only swap gives: others' memory goes there first."""
    swap_used_bytes: int
    """SwapTotal less SwapFree."""
    comparable_bytes: int
    """To compare two moments: it falls by what somebody took, and by nothing else.  The headroom
    with all pages of files, mapped or not yet written as well, with swap at its first price
    (memory that zram does not compress makes room there worth less), and as if the node had its
    first size (a balloon or a larger hugetlb pool takes memory that no program has)."""
    slope_bytes_per_second: float
    """How fast the headroom shrinks, of the last second or two; below zero: it grows."""
    residual_bytes: int | None
    """Uncounted memory; the ledger's, brought up to date by this tick's meminfo."""
    residual_grown_bytes: int
    """Over the base that it had when nothing was growing; 0 when it is not known."""
    residual_slope_bytes_per_second: float
    unexplained_growth_bytes: int
    """Of ``residual_grown_bytes``, what no claim explains (bound and estimate explain nothing)."""
    is_low: bool
    """Free pages of a zone that matters are under its low watermark."""
    is_min: bool
    """Under the min watermark: allocations wait."""
    stalls_per_second: float
    """allocstall: direct reclaim of the whole node (not of a cgroup at its limit)."""
    protected_stall: float
    """0 to 1: the worst share of the last interval in which a group that is protected stood
    still (PSI ``full``; estimated from its major faults where there is no PSI)."""
    late_seconds: float
    """By how much the guard itself woke up late."""
    own_major_faults: int
    """Of the guard, since the last tick: its own canary."""
    kernel_kills: int
    """vmstat oom_kill since the last tick."""
    exits: int
    """Groups that disappeared or emptied since the last tick."""
    claims_seconds: float | None
    """How old the watcher's claims are; None: there is no watcher."""
    mem_total_bytes: int = 0
    """MemTotal, the hugetlb pool with it; 0: not told."""

    @property
    def is_seen(self) -> bool:
        """Whether the node's memory could be read in this tick."""
        return self.total_bytes > 0

    @property
    def capacity_bytes(self) -> int:
        """By which the kubelet writes oom_score_adj (``MemoryCapacity``, cAdvisor's MemTotal)."""
        return self.mem_total_bytes or self.total_bytes

    @property
    def memory_bytes(self) -> int:
        """The headroom in bytes without what only swap gives."""
        return self.headroom_bytes - self.swap_bytes


class Outside(NamedTuple):
    """Uncounted memory of a group, as the watcher told."""

    certain_bytes: int
    """By exact and netted traced evidence."""
    likely_bytes: int
    most_bytes: int
    sources: str
    """In words: ``packet rings (PACKET_DIAG), traced page frames``."""


NOTHING_OUTSIDE = Outside(0, 0, 0, "")


class Group:
    """One workload that could be acted on as a whole.  Reused from tick to tick.

    Which cgroups are groups: a container; a unit or cgroup that is in no container; never what
    a container made inside itself.
    """

    __slots__ = (
        "adj", "at_limit_seconds", "charge_bytes", "charge_slope", "class_rank", "events_max",
        "gives_back_bytes", "hopeless_why", "inode", "limit_bytes", "name", "outside",
        "outside_slope", "path", "pod", "processes", "progress_per_second", "protected_by",
        "request_bytes", "stall", "started_seconds", "swap_cached_bytes", "swapped_bytes",
    )  # fmt: skip

    def __init__(self, path: str, inode: int, name: str = "") -> None:
        self.path = path
        """Below the mount point."""
        self.inode = inode
        self.name = name or path
        self.pod = ""
        """The pod's uid, or empty: its containers go together where the policy says so."""
        self.charge_bytes = 0
        """memory.current, memory.usage_in_bytes."""
        self.swapped_bytes: int | None = None
        """What of it is in swap; None: not known."""
        self.swap_cached_bytes = 0
        """Of that, what may be in its charge as well: pages that were read back, whose place in
        swap is kept."""
        self.charge_slope = 0.0
        """Bytes a second, of what it took, in memory or in swap."""
        self.limit_bytes: int | None = None
        """Its own, or the lowest above it; None: none."""
        self.request_bytes: int | None = None
        """What it asked for: request, memory.min or memory.low; None: not known."""
        self.gives_back_bytes: int | None = None
        """What the end of it gives back of its charge: anonymous memory, shared memory that is
        its own, kernel memory; not page cache that can be dropped anyway.  None: not read."""
        self.outside = NOTHING_OUTSIDE
        self.outside_slope = 0.0
        """Of ``outside.certain_bytes``."""
        self.adj: int | None = None
        """oom_score_adj of its processes, the lowest; None: not known, or stale since a resize."""
        self.class_rank = SYSTEM
        self.protected_by = ""
        """Why it is never acted on; empty: it may be."""
        self.processes: int | None = None
        self.started_seconds = 0.0
        """Monotonic, when it was first seen."""
        # --- at its own limit ---
        self.at_limit_seconds = 0.0
        """So long its charge has been within a hundredth of its own limit."""
        self.events_max = 0.0
        """memory.events max, or failcnt: hits of the limit per second."""
        self.stall = 0.0
        """0 to 1: share of the last interval in which all of it stood still (PSI full, v2)."""
        self.progress_per_second: float | None = None
        """CPU seconds its processes spent in user mode, per second; None: not known."""
        self.hopeless_why = ""
        """The watcher's judgement that the kernel's OOM killer cannot end it, in words."""

    @property
    def taken_bytes(self) -> int:
        """The least that it took, in memory or in swap: going there makes nobody smaller."""
        return self.charge_bytes + self.only_in_swap_bytes

    @property
    def taken_at_most_bytes(self) -> int:
        """The most bytes that it took: its charge, and all its swap, where some may be in both."""
        return self.charge_bytes + (self.swapped_bytes or 0)

    @property
    def hard_bytes(self) -> int:
        """What only its end gives back, of its charge (a careful guess where it was not read) and
        in swap.
        """
        back = self.gives_back_bytes
        if back is None:
            back = int(self.charge_bytes * UNREAD_SHARE)
        return max(0, min(back, self.charge_bytes)) + self.only_in_swap_bytes

    @property
    def only_in_swap_bytes(self) -> int:
        """In swap and nowhere else, at least."""
        return (self.swapped_bytes or 0) - self.swap_cached_bytes


class UserSlice(Group):
    """All of one user as one workload (``user_slices``): the sum of ``parts``, and what else is
    charged to ``user-UID.slice``.  What is done is done to a part (docs/decisions/0048).
    """

    __slots__ = ("parts",)

    def __init__(self, path: str, inode: int, name: str = "") -> None:
        super().__init__(path, inode, name)
        self.parts: list[Group] = []
        """Sessions and units of the user; no containers, which are workloads of their own."""
