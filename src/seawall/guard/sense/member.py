# SPDX-License-Identifier: Apache-2.0
"""What is kept for one group between ticks: open files, anchors of rates."""

import errno
import os
from typing import Final

from seawall.actions.orders import Mounts
from seawall.cgroup_paths import place_of
from seawall.guard.sense.files import first_bytes, open_quietly
from seawall.guard.sense.group_folder import Folder
from seawall.guard.sense.group_pressure import GroupPressure
from seawall.guard.sense.tick_vmstat import Rate
from seawall.guard.sense.trend import Anchors
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM, Group, UserSlice

_RANKS: Final = {"BestEffort": BEST_EFFORT, "Burstable": BURSTABLE, "Guaranteed": GUARANTEED}
UNLIMITED_BYTES: Final = 1 << 62
"""v1 prints the largest whole number of pages for no limit."""


class GroupMember:
    """One workload's files; closed when it goes."""

    __slots__ = (
        "anchors", "apart", "at_limit_since", "certain_anchors", "charge_fd", "claims_round",
        "events_fd", "events_path", "first_limit", "folder", "group", "hits", "is_delegated",
        "is_empty", "is_idle", "is_new", "kernel_kills", "pressure", "swap_fd", "swap_most",
        "tells_request", "told_progress", "user_rate",
    )  # fmt: skip

    def __init__(self, folder: Folder, now: float, charge_path: str, unknown: str = "") -> None:
        """``unknown``: why nobody touches it before the watcher has told who it is."""
        self.folder = folder
        kind = UserSlice if folder.is_user_slice else Group
        self.group = group = kind(folder.path, folder.inode)
        self.apart: list[Group] = []
        """Of a user: containers and jobs below, whose memory is charged here too."""
        place = place_of(folder.path)
        self.is_delegated = place.is_delegated
        self.tells_request = place.tells_request
        self.first_limit: int | None = None
        """Its own limit when it was first seen to have one."""
        group.pod = "" if place.is_delegated else place.pod_uid or ""
        group.protected_by = unknown
        group.started_seconds = now
        group.class_rank = _RANKS.get(place.qos or "", SYSTEM)
        if place.kind == "container" and (not place.qos or place.is_delegated):
            group.class_rank = BURSTABLE
        self.charge_fd = open_quietly(charge_path)
        self.events_fd = self.swap_fd = -1
        self.events_path = ""
        """Of the file behind it."""
        self.pressure: GroupPressure | None = None
        self.anchors = Anchors(now, 0.0)
        self.certain_anchors = Anchors(now, 0.0)
        self.hits = Rate()
        self.user_rate = Rate()
        self.told_progress: float | None = None
        """CPUs in user mode as the watcher counted them; None: it was not asked lately."""
        self.is_idle = True
        """Its charge did not move in the last tick."""
        self.is_new = True
        self.is_empty = False
        self.swap_most: int | None = None
        """So much of it may be in swap, its own or the lowest above it; None: no limit."""
        self.at_limit_since = 0.0
        self.kernel_kills = 0
        """At its limit, as they were last seen."""
        self.claims_round = 0

    def forget_unread(self) -> None:
        """Files that are opened when they are needed, and could not be, are tried again then."""
        if self.events_fd < 0:
            self.events_path = ""
        if self.pressure is not None and self.pressure.problem:
            self.pressure.close()
            self.pressure = None

    def forget_counts(self) -> None:
        """Its memory is not counted now: what there was is not known, and no growth later."""
        if self.swap_fd >= 0:
            os.close(self.swap_fd)
            self.swap_fd = -2
        os.close(self.charge_fd)
        self.charge_fd = -1
        self.is_new = True
        group = self.group
        group.charge_bytes, group.swapped_bytes, group.swap_cached_bytes = 0, None, 0
        group.charge_slope, group.gives_back_bytes = 0.0, None

    def settle_limit(self) -> None:
        """The lowest of its own and those above."""
        limiter = limiter_of(self.folder)
        self.group.limit_bytes = limiter.limit if limiter is not None else None

    def close(self) -> None:
        """Give all descriptors back."""
        for fd in (self.charge_fd, self.events_fd, self.swap_fd):
            if fd >= 0:
                os.close(fd)
        self.charge_fd = self.events_fd = self.swap_fd = -1
        self.events_path = ""
        if self.pressure is not None:
            self.pressure.close()
            self.pressure = None


class Names:
    """Where the files of a cgroup are, by version."""

    __slots__ = ("charge", "limit", "memory", "swap", "unified", "version")

    def __init__(self, mounts: Mounts) -> None:
        self.memory = mounts.memory
        self.version = mounts.version
        self.unified = mounts.memory if mounts.version == 2 else _used(mounts.unified)
        self.charge = "memory.current" if mounts.version == 2 else "memory.usage_in_bytes"
        is_v2 = mounts.version == 2
        self.swap = "memory.swap.current" if is_v2 else "memory.memsw.usage_in_bytes"
        self.limit = "memory.max" if mounts.version == 2 else "memory.limit_in_bytes"

    def of(self, path: str, name: str) -> str:
        """A file in the tree that counts memory."""
        return f"{self.memory}{path if path != '/' else ''}/{name}"

    def pressure(self, path: str) -> str:
        """Its memory.pressure, on v2 or a hybrid host; empty: there is none."""
        if not self.unified:
            return ""
        return f"{self.unified}{path if path != '/' else ''}/memory.pressure"


def _used(mount: str | None) -> str | None:
    """A v2 tree beside v1's has nothing to tell when nobody made a cgroup in it."""
    try:
        return mount if mount and os.stat(mount).st_nlink > 2 else None
    except OSError:
        return None


def read_limit(folder: Folder, names: Names) -> int:
    """Its own limit into ``folder.limit``.  The error's number where it could not be opened just
    now; it is not tried again unless ``limit_fd`` is -1.  Where the controller was switched off
    (``switched.py``) there is none.
    """
    if folder.limit_fd == -1:
        fd = open_quietly(names.of(folder.path, names.limit))
        folder.limit_fd = fd if fd >= 0 else -2
        if fd < 0:
            return -fd
    if folder.limit_fd < 0:
        return 0
    try:
        text = os.pread(folder.limit_fd, 32, 0)
        value = None if text.startswith(b"max") else int(text)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENODEV:
            os.close(folder.limit_fd)
            folder.limit_fd, folder.limit = -2, None
        return 0
    folder.limit = value if value is not None and value < UNLIMITED_BYTES else None
    return 0


def limiter_of(folder: Folder) -> Folder | None:
    """Whose limit is the lowest of its own and those above; the upper one where equal, as of a
    pod and its one container: it holds what the container holds and more, and is full first.
    """
    found: Folder | None = None
    at: Folder | None = folder
    while at is not None:
        if at.limit is not None and (found is None or at.limit <= (found.limit or 0)):
            found = at
        at = at.above
    return found


def read_promises(member: GroupMember, names: Names, *, has_swap: bool) -> None:
    """memory.min and memory.low as its request, and how much of it may be in swap; v2.

    Below a user's manager its own user writes them: a wish (decision 0022), to which the kernel
    gives no more than the cgroups above have.
    """
    _forget_stale(member)
    if names.version != 2:
        return
    group = member.group
    if group.request_bytes is None and not member.is_delegated:
        files = (names.of(group.path, "memory.min"), names.of(group.path, "memory.low"))
        group.request_bytes = max(plain(path, UNLIMITED_BYTES) for path in files) or None
    if has_swap and not member.folder.is_user_slice:  # its parts are asked
        member.swap_most = _swap_most(member.folder, names)


def _forget_stale(member: GroupMember) -> None:
    """A resize in place (Kubernetes 1.33) raises the limit of what runs, and its oom_score_adj
    stays that of the start (kubernetes#130657, runc#4669): what it asks for now nobody tells.

    A limit that was lowered may be our own clamp, and bounds the promise by itself.
    """
    limit, group = member.folder.limit, member.group
    if member.first_limit is None:
        member.first_limit = limit
    elif limit is not None and limit > member.first_limit and member.tells_request:
        group.request_bytes = None
        if group.adj is not None and group.adj > 0:
            group.adj = None


def _swap_most(folder: Folder, names: Names) -> int | None:
    """A kubelet's LimitedSwap sets it for containers, MemorySwapMax= for units and slices."""
    least: int | None = None
    at: Folder | None = folder
    while at is not None:
        text = (first_bytes(names.of(at.path, "memory.swap.max"), 32) or b"").strip()
        if text.isdigit():
            least = int(text) if least is None else min(least, int(text))
        at = at.above
    return least


def unswappable_of(member: GroupMember, charge: int) -> int:
    """Of ``charge``, what finds no place in swap."""
    if member.swap_most is None:
        return 0
    room = max(0, member.swap_most - (member.group.swapped_bytes or 0))
    return max(0, charge - room)


def plain(path: str, most: int = 0) -> int:
    """The one number of a file that is read once in a while, ``most`` for ``max``; 0 where it
    cannot be read.
    """
    text = (first_bytes(path, 32) or b"").strip()
    if text == b"max":
        return most
    return int(text) if text.isdigit() else 0


def is_populated(path: str, names: Names) -> bool:
    """Whether it has processes, of its own (v1) or below (v2)."""
    if names.version == 2:
        events = first_bytes(names.of(path, "cgroup.events"), 256)
        return events is None or b"populated 0" not in events
    return first_bytes(names.of(path, "cgroup.procs"), 16) != b""
