# SPDX-License-Identifier: Apache-2.0
"""The table of groups: charge each tick, limits every ten seconds, what a full one does.

cgroup v2: memory.current, memory.max, memory.events, memory.pressure
(Documentation/admin-guide/cgroup-v2.rst); v1: memory.usage_in_bytes, memory.limit_in_bytes,
memory.failcnt (cgroup-v1/memory.rst).

What was swapped out is in no charge: memory.swap.current of v2, which counts a page that was
read back as long as its place is kept, so that it stands in memory.current too
(mem_cgroup_swapin_uncharge_swap in mm/memcontrol.c); v1: memory.memsw.usage_in_bytes less the
charge, each page once.
"""

import errno
import os
from typing import Final

from seawall.actions.orders import Mounts
from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.details import below, rows
from seawall.guard.sense.files import GONE, first_bytes, number_of, open_quietly
from seawall.guard.sense.group_folder import Folder
from seawall.guard.sense.group_pressure import GroupPressure
from seawall.guard.sense.member import (
    GroupMember,
    Names,
    is_populated,
    limiter_of,
    plain,
    read_limit,
    read_promises,
    unswappable_of,
)
from seawall.guard.sense.protected_cache import protected_cache
from seawall.guard.sense.tree import GroupTree
from seawall.guard.sense.users import gather_users, sum_users, swapped_of
from seawall.guard.tick_facts import NOT_TOLD, Group

_LIMITS_SECONDS: Final = 10.0
_YOUNG_SECONDS: Final = 30.0
"""A runtime writes limits and promises just after it made the folder."""
_AT_LIMIT: Final = 0.99
_NEAR_LIMIT: Final = 0.9
_MATTERS_SHARE: Final = 64
"""Of all memory: smaller groups' pressure is not read in a shortage of the node."""
_EMPTIED_BYTES: Final = 16 << 20
_CHARGE_BYTES: Final = 24


class GroupTable:
    """All workloads by path; ``by_path`` is what the judge sees."""

    __slots__ = (
        "_again", "_had_swap", "_limits", "_unknown", "_was", "by_path", "exits", "is_quiet",
        "members", "names", "problem", "protected_bytes", "swap_problem", "tree",
        "unswappable_bytes",
    )  # fmt: skip

    def __init__(
        self, mounts: Mounts, *, are_told: bool = True, user_slices: bool = False
    ) -> None:  # fmt: skip
        """``are_told``: a watcher tells who they are.  ``user_slices``: each user is one."""
        self._unknown = NOT_TOLD if are_told else ""
        self.names = Names(mounts)
        self.tree = GroupTree(mounts.memory, user_slices=user_slices)
        self.by_path: dict[str, Group] = {}
        self.members: dict[str, GroupMember] = {}
        self._limits = Cadence(_LIMITS_SECONDS)
        self._again = Cadence(_LIMITS_SECONDS, _LIMITS_SECONDS)
        self._was = 0.0
        self._had_swap = True  # those that ``open`` finds are asked
        self.exits = 0
        """Groups that went or emptied in the last tick."""
        self.is_quiet = True
        """Nobody is close to a limit."""
        self.unswappable_bytes = 0
        self.protected_bytes = 0
        """Page cache that memory.min keeps from reclaim."""
        self.problem = ""
        self.swap_problem = ""

    def open(self, now: float) -> None:
        """Find all that are there."""
        self.tree.open(now)
        self._take_in(now, has_swap=True)

    def look(
        self, now: float, total_bytes: int, *, is_near: bool, has_swap: bool,
        swap_cached: int | None = None,
    ) -> None:  # fmt: skip
        """One tick.  ``swap_cached``: the node's, where anything moved in swap since the last."""
        if swap_cached and self.names.version == 1:
            swap_cached = 0
        self.tree.update(now)
        if has_swap and not self._had_swap:  # swapon: nobody was asked before
            for member in self.members.values():
                read_promises(member, self.names, has_swap=True)
        self._had_swap = has_swap
        self.exits = self._take_in(now, has_swap=has_swap)
        if self._again.is_due(now, is_near=is_near):
            self._open_again(has_swap=has_swap)
        self._read_charges(now, swap_cached)
        if self._limits.is_due(now, is_near=is_near):
            self._read_limits(now, has_swap=has_swap)
            self.protected_bytes = protected_cache(self.tree, self.names)
        self._look_at_full(now, total_bytes // _MATTERS_SHARE if is_near else total_bytes)
        self._was = now

    # --- who is there -----------------------------------------------------------------------

    def _take_in(self, now: float, *, has_swap: bool) -> int:
        tree, gone = self.tree, 0
        is_same = not (tree.removed_folders or tree.new_folders or tree.turned_units)
        for folder in tree.removed_folders:
            member = self.members.pop(folder.path, None)
            if member is not None:
                member.close()
                self.by_path.pop(folder.path, None)
                gone += not member.is_empty
        tree.removed_folders.clear()
        for folder in tree.new_folders:
            charge = self.names.of(folder.path, self.names.charge)
            member = GroupMember(folder, now, charge, self._unknown)
            if member.charge_fd < 0:
                self._miss(charge, -member.charge_fd)
            self.members[folder.path] = member
            if not folder.is_part:
                self.by_path[folder.path] = member.group
            read_promises(member, self.names, has_swap=has_swap)
            self._read_limit_of(member)
        tree.new_folders.clear()
        _show_or_hide_units(tree, self.members, self.by_path)
        if tree.user_slices and not is_same:
            gather_users(self.members)
        return gone

    def _miss(self, name: str, number: int) -> None:
        # ENOENT: no memory is counted there; one that went meanwhile is told by the tree.
        if number not in GONE and not self.problem:
            self.problem = f"{name}: {os.strerror(number)}; raise LimitNOFILE to 65536"

    def _open_again(self, *, has_swap: bool) -> None:
        """What could not be opened: descriptors were short, or a folder was looked at before the
        one above it had its controller.
        """
        names = self.names
        self.problem = self.swap_problem = ""
        for member in self.members.values():
            folder = member.folder
            is_partly = member.charge_fd < 0 or folder.limit_fd < 0
            if member.charge_fd < 0:
                name = names.of(folder.path, names.charge)
                member.charge_fd = open_quietly(name)
                if member.charge_fd < 0:
                    self._miss(name, -member.charge_fd)
                    self.tree.check(folder.path)
            if is_partly and member.charge_fd >= 0:
                read_promises(member, names, has_swap=has_swap)
            if member.swap_fd == -2 and member.charge_fd >= 0:
                self._open_swap(member)
            member.forget_unread()
        for folder in self.tree.folders.values():
            if folder.limit_fd == -2:
                folder.limit_fd = -1
                self._open_limit(folder)

    def _open_limit(self, folder: Folder) -> None:
        if number := read_limit(folder, self.names):
            self._miss(self.names.of(folder.path, self.names.limit), number)

    # --- each tick --------------------------------------------------------------------------

    def _read_charges(self, now: float, swap_cached: int | None) -> None:
        """The hot loop: one system call a group, and little more for one that did not move."""
        pread, unswappable, lost = os.pread, 0, list[GroupMember]()
        for member in self.members.values():
            if member.folder.inner:
                continue
            try:
                charge = int(pread(member.charge_fd, _CHARGE_BYTES, 0))
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno == errno.ENODEV:
                    lost.append(member)
                continue
            if member.apart:
                charge = max(0, charge - sum(group.charge_bytes for group in member.apart))
            if member.swap_most is not None:
                unswappable += unswappable_of(member, charge)
            if swap_cached is not None:
                self._moved(member, charge, now, self._swapped(member, charge), swap_cached)
            elif not member.is_idle or charge != member.group.charge_bytes:
                group = member.group
                self._moved(member, charge, now, group.swapped_bytes, group.swap_cached_bytes)
        self.unswappable_bytes = unswappable
        if self.tree.user_slices:
            sum_users(self.members)
        _release_lost(lost, self.tree, self.names)

    def _moved(
        self, member: GroupMember, charge: int, now: float, swapped: int | None, swap_cached: int
    ) -> None:  # fmt: skip
        group = member.group
        cached = min(swapped or 0, swap_cached)
        taken = charge + (swapped or 0) - cached
        if member.is_new:
            # What it had when it was first seen is no growth.
            member.anchors.restart(now, taken)
            member.is_new = False
        elif member.is_idle:
            # Nothing happened up to the last tick, so the slope begins there.
            member.anchors.restart(self._was, group.taken_bytes)
        slope = member.anchors.slope(now, taken)
        member.is_idle = slope == 0.0 and charge == group.charge_bytes
        if charge < group.charge_bytes // 2 and group.charge_bytes > _EMPTIED_BYTES:
            self._check_empty(member)
        elif member.is_empty and charge > group.charge_bytes:
            member.is_empty = False
        group.charge_bytes, group.charge_slope = charge, slope
        group.swapped_bytes, group.swap_cached_bytes = swapped, cached

    def _swapped(self, member: GroupMember, charge: int) -> int | None:
        """What of it is in swap; None: this kernel does not count it."""
        if member.swap_fd == -1:
            self._open_swap(member)
        found = number_of(member.swap_fd) if member.swap_fd >= 0 else None
        if found is None:
            return None
        if self.names.version == 2:
            return max(0, found - swapped_of(member.apart)) if member.apart else found
        for group in member.apart:
            found -= group.taken_at_most_bytes
        return max(0, found - charge)

    def _open_swap(self, member: GroupMember) -> None:
        name = self.names.of(member.folder.path, self.names.swap)
        fd = open_quietly(name)
        member.swap_fd = fd if fd >= 0 else -2
        if fd >= 0 or member.folder.path == "/" or self.swap_problem:
            return
        remedy = "raise LimitNOFILE to 65536"
        if -fd in GONE:
            remedy = "a kernel with CONFIG_MEMCG_SWAP, booted without swapaccount=0, would tell"
        self.swap_problem = (
            f"{name}: {os.strerror(-fd)}: who has how much in swap is not known, and who is "
            f"swapped out seems to shrink; {remedy}"
        )

    def _check_empty(self, member: GroupMember) -> None:
        is_empty = not is_populated(member.folder.path, self.names)
        if is_empty and not member.is_empty:
            self.exits += 1
        member.is_empty = is_empty

    # --- limits -----------------------------------------------------------------------------

    def _read_limits(self, now: float, *, has_swap: bool) -> None:
        for folder in self.tree.folders.values():
            read_limit(folder, self.names)
        for member in self.members.values():
            member.settle_limit()
            if now - member.group.started_seconds < _YOUNG_SECONDS:
                read_promises(member, self.names, has_swap=has_swap)

    def _read_limit_of(self, member: GroupMember) -> None:
        above = member.folder
        while above is not None and above.limit_fd == -1:
            self._open_limit(above)
            if above.above is None:
                break
            above = above.above
        member.settle_limit()

    def _look_at_full(self, now: float, matters: int) -> None:
        self.is_quiet = True
        for member in self.members.values():
            if member.folder.inner:
                continue
            group = member.group
            limit = group.limit_bytes
            is_close = limit is not None and group.charge_bytes >= limit * _NEAR_LIMIT
            if not is_close and member.at_limit_since == 0.0:
                if group.charge_bytes >= matters:
                    self._read_stall(member, now)
                elif group.stall:
                    group.stall = 0.0
                continue
            self.is_quiet = False
            self._read_stall(member, now)
            hits, kills = _hits_and_kills(member, self.names)
            group.events_max = member.hits.per_second(hits, now)
            if kills is not None and kills != member.kernel_kills:
                # The kernel ends what is in it: what stands still from here on is another story.
                member.kernel_kills, member.at_limit_since = kills, 0.0
            if limit is not None and group.charge_bytes >= limit * _AT_LIMIT:
                member.at_limit_since = member.at_limit_since or now
                group.at_limit_seconds = now - member.at_limit_since
            else:
                member.at_limit_since = group.at_limit_seconds = 0.0
                if not is_close:
                    group.events_max = 0.0

    def _read_stall(self, member: GroupMember, now: float) -> None:
        if member.pressure is None:
            path = self.names.pressure(member.folder.path)
            if not path:
                return
            member.pressure = GroupPressure(path)
            member.pressure.open()
        member.group.stall = member.pressure.full_share(now) or 0.0

    def close(self) -> None:
        """Give all descriptors back."""
        for member in self.members.values():
            member.close()
        self.tree.close()


# The memory controller is switched off below a cgroup, or off and on again.
#
# ``-memory`` in cgroup.subtree_control (admin-guide/cgroup-v2.rst) takes the files of the cgroups
# below away and leaves their folders; ``+memory`` makes new files in the same folders, with limits
# and promises as of a new cgroup.  A file that was opened before answers ENODEV from then on, as
# one of a folder that is gone does.  As long as nobody counts, nothing is known: what was counted
# last would look like a workload that stands still, and its limit like one that still holds.


def _release_lost(lost: list[GroupMember], tree: GroupTree, names: Names) -> None:
    """Of those whose charge answers ENODEV: the tree forgets who is gone, and the others' files
    are opened again later.
    """
    for member in lost:
        folder = member.folder
        tree.check(folder.path)
        if tree.folders.get(folder.path) is folder:
            member.forget_counts()
            read_limit(folder, names)
            member.settle_limit()


# How often the limit that holds for a group was hit, and what the kernel's OOM killer ended in it.
#
# v2 counts ``max`` where the limit was and for all above it, ``oom_kill`` where the victim was and
# for all above it (memory.events; before 5.2, and with memory_localevents, none for those above).
# v1 counts both only where they happen: memory.failcnt, memory.memsw.failcnt (it refuses first
# where both limits are one), memory.oom_control (4.13; 5.2 to 5.6 for all above too).

_FOLDERS_MOST: Final = 256


def _hits_and_kills(member: GroupMember, names: Names) -> tuple[int | None, int | None]:
    """Since the groups were made; None: this kernel does not tell."""
    own = member.folder.path
    place = limiter_of(member.folder) or member.folder
    file = names.of(place.path, "memory.events" if names.version == 2 else "memory.failcnt")
    if member.events_path != file:
        if member.events_fd >= 0:
            os.close(member.events_fd)
        member.events_fd, member.events_path = open_quietly(file), file
        member.hits.was = None  # another counter
    if member.events_fd < 0:
        return None, None
    if names.version == 1:
        return _v1_hits(member.events_fd, names, own, place.path), _v1_kills(names, own)
    try:
        events = os.pread(member.events_fd, 512, 0)
    except OSError:
        # Of one above it, whose controller was switched off and on again: other files.
        os.close(member.events_fd)
        member.events_fd = -1
        return None, None
    inside = events
    if place is not member.folder:
        inside = first_bytes(names.of(own, "memory.events"), 512) or b""
    return rows(events).get(b"max"), rows(inside).get(b"oom_kill")


def _v1_hits(fd: int, names: Names, own: str, place: str) -> int | None:
    hits = number_of(fd)
    if hits is None:
        return None
    files = ["memory.memsw.failcnt"] if place == own else ["memory.memsw.failcnt", "memory.failcnt"]
    return hits + sum(plain(names.of(own, name)) for name in files)


def _v1_kills(names: Names, own: str) -> int | None:
    total: int | None = None
    for count, folder in enumerate(below(names.of(own, "").rstrip("/"))):
        text = first_bytes(f"{folder}/memory.oom_control", 256) or b""
        kills = rows(text).get(b"oom_kill")
        if kills is not None:
            total = (total or 0) + kills
        if count >= _FOLDERS_MOST:
            break
    return total


# A unit is no group as long as others' are below it, and is told about all the same.
#
# The watcher tells once who somebody is: a unit that was forgotten meanwhile would come back
# without its role, and nobody would protect it.


def _show_or_hide_units(
    tree: GroupTree, members: dict[str, GroupMember], by_path: dict[str, Group]
) -> None:
    """Of the units that turned since the last tick: what the judge sees."""
    for unit in tree.turned_units:
        member = members.get(unit.path)
        if member is None or member.folder is not unit:
            continue
        if unit.is_part:
            continue
        if unit.inner:
            by_path.pop(unit.path, None)
            member.at_limit_since = member.group.at_limit_seconds = 0.0
        else:
            by_path[unit.path] = member.group
            member.is_new = True
    tree.turned_units.clear()
