# SPDX-License-Identifier: Apache-2.0
"""Which cgroups are workloads, kept up to date without listing the tree in each tick.

``group_folder.py`` says which are.  A user makes as many cgroups below the own manager, and a
service below its unit, as there is room for.  They are counted by themselves, so that nobody hides
a pod behind them; a manager or unit with too many is taken as a whole, until it goes.

New and gone folders come from inotify.  As a backstop all are looked at in turn, some in each tick
and each once a minute; many take longer, and a round ends before the next begins.  A link count
says how many folders are in one (kernfs and tmpfs both keep it so: two more than there are), and
only one that does not agree is listed.
"""

import os
from typing import Final

from seawall.guard.inotify import (
    CREATED,
    DELETED,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    InotifyDescriptor,
)
from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.files import GONE
from seawall.guard.sense.group_folder import Folder

# Which folders of the tree are watched, and what it costs where some are not.
#
# ``fs.inotify.max_user_instances`` and ``max_user_watches`` are of all programs of root together,
# so others may have used them up.  What was refused is tried again in each round; a
# folder that went meanwhile is no refusal.

_REFUSED: Final = -2
_MINUTE: Final = 60.0


class Watches(InotifyDescriptor):
    """``folder.watch`` is its number; below zero: there is none."""

    __slots__ = ("_refused", "_why", "by_watch")

    def __init__(self) -> None:
        super().__init__()
        self.by_watch: dict[int, str] = {}
        """The folder's path."""
        self._refused = self._why = 0
        """Folders that are there and cannot be watched, and the last error's number."""

    def begin(self, folder: Folder, place: str) -> bool:
        """Watch ``folder``, which is at ``place``."""
        self.end(folder)
        number = self.watch(place)
        if number >= 0:
            folder.watch, self.by_watch[number] = number, folder.path
        elif self.is_open and -number not in GONE:
            folder.watch, self._why = _REFUSED, -number
            self._refused += 1
        return number >= 0

    def end(self, folder: Folder) -> None:
        """The kernel removes it with the folder; its IN_IGNORED then belongs to nobody."""
        if folder.watch >= 0:
            self.by_watch.pop(folder.watch, None)
        self._refused -= folder.watch == _REFUSED
        folder.watch = -1

    def words(self, folders: int, round_seconds: float) -> str:
        """What is seen late, and within how long; empty: nothing is.

        ``folders``: so many are looked at instead; ``round_seconds``: so long after one was looked
        at it is looked at again, at the latest.
        """
        found, which = self.problem, "new cgroups"
        if not found and self._refused:
            found = f"inotify: {os.strerror(self._why)}; raise fs.inotify.max_user_watches"
            which = f"new cgroups in {self._refused} folders"
        if not found:
            return ""
        minutes = max(1, -int(-round_seconds // _MINUTE))
        late = "a minute" if minutes == 1 else f"{minutes} minutes"
        return f"{found}; {which} are found within {late}: {folders} folders are looked at in turn"


FOLDERS_MOST: Final = 8192
"""Of the host's own; and of all users and units together."""
OF_A_USER_MOST: Final = 512
OF_A_UNIT_MOST: Final = 4096
"""A runtime may keep all pods of the node below its own unit."""
DEPTH_MOST: Final = 16
_LOOKED_AT_A_TICK: Final = 64
_RESCAN_SECONDS: Final = 60.0
_TICK_SECONDS: Final = 20.0
"""In deep peace (``tick_most_seconds``), where it was not measured to be longer."""
_LISTED_EVERY: Final = 10
"""Rescans: then every folder is listed whatever its link count says."""


class GroupTree:
    """All folders that lead to workloads, and those that are."""

    __slots__ = (
        "_delegated", "_found", "_inner", "_mount", "_of_users", "_rescan", "_rescans", "_tick",
        "_todo", "_was", "_whole", "folders", "new_folders", "problem", "removed_folders",
        "turned_units", "user_slices", "watches",
    )  # fmt: skip

    def __init__(self, mount: str, *, user_slices: bool = False) -> None:
        self._mount = mount
        self.user_slices = user_slices
        """Each user is one workload."""
        self.watches = Watches()
        self.folders: dict[str, Folder] = {}
        self._of_users: dict[str, int] = {}
        """How many are below each manager or unit."""
        self._delegated = 0
        """The sum of them."""
        self._whole: dict[str, None] = {}
        """Managers and units that are taken as a whole."""
        self._rescan = Cadence(_RESCAN_SECONDS)
        self._rescans = 0
        self._todo: list[str] = []
        """What is left of this round."""
        self._inner = 0
        """Folders that lead to others, when the round began."""
        self._was = self._tick = 0.0
        """When the last tick was, and how long before it the one before."""
        self.new_folders: list[Folder] = []
        """Workloads that are new; whoever reads it clears it."""
        self.removed_folders: list[Folder] = []
        self.turned_units: list[Folder] = []
        """Units whose first workload came, or whose last one went."""
        self.problem = self._found = ""
        """Of the last round and of this one; what was met in neither is over."""

    @property
    def blind(self) -> str:
        """What cannot be seen, in words."""
        # At worst one is the last of a short round, then of a long one, and new ones go first.
        ticks = -(-self._inner // _LOOKED_AT_A_TICK) + 1
        late = _RESCAN_SECONDS + ticks * max(_TICK_SECONDS, self._tick)
        found = self.problem or self.watches.words(self._inner, late)
        if not found and (whole := next(iter(self._whole), "")):
            most = _most_below(self.folders[whole])
            found = f"{self._mount}{whole}: more than {most} cgroups: taken as one"
        return found

    def open(self, now: float) -> None:
        """Walk all of it once."""
        self.watches.open()
        self._add("/", None)
        self._rescan.is_due(now, is_near=False)
        self._inner = sum(not folder.is_leaf for folder in self.folders.values())
        self._was = now

    def update(self, now: float) -> None:
        """Take in what came and went."""
        is_lost = False
        for watch, mask, name in self.watches.events():
            if mask & OVERFLOW:
                is_lost = True
            above = self.folders.get(self.watches.by_watch.get(watch, ""))
            if above is not None and mask & (CREATED | DELETED | MOVED_FROM | MOVED_TO):
                self._check(_join(above.path, os.fsdecode(name)), above)
        self._tick, self._was = now - self._was, now
        if is_lost:
            self._todo.clear()
            self._rescan.hurry()
        if not self._todo and self._rescan.is_due(now, is_near=False):
            is_lost |= self._begin_round()
        for _ in range(len(self._todo) if is_lost else min(_LOOKED_AT_A_TICK, len(self._todo))):
            self._look_again(self._todo.pop(), is_lost=is_lost)

    def _begin_round(self) -> bool:
        """True: inotify can be had from now on; what came before is found in this tick."""
        self._rescans += 1
        self.problem, self._found = self._found, ""
        self._todo = [path for path, folder in self.folders.items() if not folder.is_leaf]
        self._inner = len(self._todo)
        return not self.watches.is_open and self.watches.open()

    def check(self, path: str) -> None:
        """Whether this one is still there: somebody could not read its files."""
        folder = self.folders.get(path)
        if folder is not None:
            self._check(path, folder.above)

    def stat(self, path: str) -> os.stat_result | None:
        """Of a folder; None: it is not there."""
        try:
            return os.stat(self._mount + path)
        except OSError:
            return None

    # --- one folder -------------------------------------------------------------------------

    def _check(self, path: str, above: Folder | None) -> None:
        """What is there now counts, not the order of the events."""
        known, found = self.folders.get(path), self.stat(path)
        if known is not None and (found is None or found.st_ino != known.inode):
            self._remove(known)
            known = None
        if known is None and found is not None:
            self._add(path, above)

    def _look_again(self, path: str, *, is_lost: bool) -> None:
        folder, found = self.folders.get(path), self.stat(path)
        if folder is None or folder.is_leaf:
            return
        if found is None or found.st_ino != folder.inode:
            self._check(path, folder.above)
        elif (
            (folder.watch < 0 and self.watches.begin(folder, self._mount + path))
            or is_lost
            or found.st_nlink - 2 != len(folder.children)
            or self._rescans % _LISTED_EVERY == 0
        ):
            self._compare(folder)

    def _compare(self, folder: Folder) -> None:
        names = self._names(folder.path)
        for name in names:
            if folder.is_leaf:
                return  # it became too much on the way
            self._check(_join(folder.path, name), folder)
        for path in [path for path in folder.children if path.rpartition("/")[2] not in names]:
            self._check(path, folder)

    def _add(self, path: str, above: Folder | None) -> None:
        found = self.stat(path)
        if found is None or not self._has_room(path, above):
            return
        folder = Folder(path, found.st_ino, above, user_slices=self.user_slices)
        if folder.is_within_unit and folder.is_leaf and not self._is_charged(path):
            return  # of its unit, until a rescan finds that it is
        self.folders[path] = folder
        if folder.manager == path:
            self._of_users[path] = 0
        elif folder.manager:
            self._of_users[folder.manager] += 1
            self._delegated += 1
        if above is not None:
            above.children[path] = None
            self._settle(above)
        if not folder.is_leaf:
            self._add_below(folder)
        if path in self.folders:
            self._settle(folder)

    def _add_below(self, folder: Folder) -> None:
        # Watched first, listed then: what is made in between is seen twice, not never.
        self.watches.begin(folder, self._mount + folder.path)
        for name in self._names(folder.path):
            child = _join(folder.path, name)
            if child not in self.folders:
                self._add(child, folder)
            if folder.is_leaf or folder.path not in self.folders:
                break  # its manager is taken as a whole from here on

    def _has_room(self, path: str, above: Folder | None) -> bool:
        if path.count("/") > DEPTH_MOST:
            return self._is_too_much()
        if above is not None and (manager := self.folders.get(above.manager)) is not None:
            is_much = self._of_users[manager.path] >= _most_below(manager)
            if (is_much or self._delegated >= FOLDERS_MOST) and not manager.is_leaf:
                self._take_whole(manager)
            return not manager.is_leaf
        if len(self.folders) - self._delegated >= FOLDERS_MOST:
            return self._is_too_much()
        return True

    def _is_too_much(self) -> bool:
        self._found = f"{self._mount}: more than {FOLDERS_MOST} cgroups, or nested too deep"
        self.problem = self._found
        return False

    def _take_whole(self, manager: Folder) -> None:
        """Nothing below it is looked at any more."""
        manager.is_leaf = True
        self._whole[manager.path] = None
        self.watches.end(manager)
        for path in list(manager.children):
            if (child := self.folders.get(path)) is not None:
                self._remove(child)
        self._settle(manager)

    def _remove(self, folder: Folder) -> None:
        for path in list(folder.children):
            child = self.folders.get(path)
            if child is not None:
                self._remove(child)
        del self.folders[folder.path]
        if folder.manager == folder.path:
            del self._of_users[folder.path]
            self._whole.pop(folder.path, None)
        elif folder.manager:
            self._of_users[folder.manager] -= 1
            self._delegated -= 1
        self.watches.end(folder)
        if folder.limit_fd >= 0:
            os.close(folder.limit_fd)
            folder.limit_fd = -1
        if folder.is_group:
            folder.is_group = False
            self._say_gone(folder)
            self._note_inner(folder, -1)
        above = folder.above
        if above is not None:
            above.children.pop(folder.path, None)
            if above.path in self.folders:
                self._settle(above)

    def _settle(self, folder: Folder) -> None:
        """A plain cgroup stops being a workload when something is made in it."""
        is_single = folder.is_leaf or folder.is_unit or folder.is_user_slice
        is_group = is_single or (folder.is_plain and not folder.children)
        if is_group == folder.is_group or folder.path == "/":
            return
        folder.is_group = is_group
        if is_group:
            self.new_folders.append(folder)
        else:
            self._say_gone(folder)
        self._note_inner(folder, 1 if is_group else -1)

    def _note_inner(self, folder: Folder, change: int) -> None:
        if folder.is_within_unit and (unit := self.folders.get(folder.manager)) is not None:
            before, unit.inner = unit.inner, unit.inner + change
            if not before or not unit.inner:
                self.turned_units.append(unit)

    def _say_gone(self, folder: Folder) -> None:
        """One that came and went within one tick was never there."""
        if folder in self.new_folders:
            self.new_folders.remove(folder)
        else:
            self.removed_folders.append(folder)

    def _is_charged(self, path: str) -> bool:
        """Whether memory is counted there: v2 does only where the unit passed the controller on."""
        files = ("memory.current", "memory.usage_in_bytes")
        return any(self.stat(f"{path}/{name}") is not None for name in files)

    def _names(self, path: str) -> list[str]:
        try:
            with os.scandir(self._mount + path) as entries:
                return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []

    def close(self) -> None:
        """Give all descriptors back."""
        self.watches.close()
        for folder in self.folders.values():
            if folder.limit_fd >= 0:
                os.close(folder.limit_fd)
                folder.limit_fd = -1


def _join(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"


def _most_below(manager: Folder) -> int:
    return OF_A_UNIT_MOST if manager.is_unit else OF_A_USER_MOST
