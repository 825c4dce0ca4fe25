# SPDX-License-Identifier: Apache-2.0
"""Which folders of the tree are watched, and what it costs where some are not.

``fs.inotify.max_user_instances`` and ``max_user_watches`` are of all programs of root together, so
others may have used them up.  What was refused is tried again in each round of ``tree.py``; a
folder that went meanwhile is no refusal.
"""

import os
from typing import Final

from seawall.guard.sense.files import GONE
from seawall.guard.sense.group_folder import Folder
from seawall.guard.sense.inotify import InotifyDescriptor

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
