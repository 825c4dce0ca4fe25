# SPDX-License-Identifier: Apache-2.0
"""The same cgroup in another tree: the freezer's on v1, the unified one of a hybrid host.

A path is no proof there: systemd's units share ``/`` of the freezer, and a cgroup of the same
path may hold others.  So it counts as the same only when no process is in it that is not in the
one that was judged; one that is too large to be looked through never does.
"""

import os

from seawall.actions.identity import FOLDER, open_folder
from seawall.actions.orders import Mounts
from seawall.actions.pid_list import Pids
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.work import Refused

LOOKS = 3


class Trees:
    """Open mount points beside the memory tree."""

    __slots__ = ("_freezer", "_members", "_signals", "_unified", "mounts")

    def __init__(self, mounts: Mounts, signals: SignalEffects) -> None:
        """A twin in which somebody is whom no signal may reach is none."""
        self.mounts = mounts
        self._members = signals.members
        self._signals = signals
        self._freezer = -1
        self._unified = -1

    def prepare(self) -> None:
        """Open what is there; what cannot be opened is not there."""
        if self.mounts.version == 1:
            self._freezer = _open(self.mounts.freezer)
            self._unified = _open(self.mounts.unified)

    def freezer(self, path: str, folder: int) -> int | None:
        """Descriptor of its folder in the v1 freezer tree; ``folder``: in the memory tree."""
        return self._twin(self._freezer, path, folder)

    def unified(self, path: str, folder: int) -> int | None:
        """Of its folder in the v2 tree of a hybrid host."""
        return self._twin(self._unified, path, folder)

    def _twin(self, tree: int, path: str, folder: int) -> int | None:
        if tree < 0:
            return None
        try:
            fd = open_folder(tree, path)
        except Refused:
            return None
        if self._holds_only(fd, folder):
            return fd
        os.close(fd)
        return None

    def _holds_only(self, fd: int, folder: int) -> bool:
        """Nobody is in the twin who is not in ``folder``; and somebody is.

        The twin is read first: a child that is forked in between stands in the second list.
        One that ends in between looks foreign, but not in every look.
        """
        foreign: Pids | None = None
        for _ in range(LOOKS):
            # As v2 reads it: what is asked is whether anybody stands in one list only.
            there = self._members.read(fd, 2)
            strangers, is_cut = self._members.strangers, self._members.is_cut
            here = self._members.read(folder, 2)
            if is_cut or self._signals.has_spared(there) or not (there or strangers):
                return False
            others = there - here
            foreign = others if foreign is None else foreign & others
            if not foreign:
                return strangers <= self._members.strangers
        return False


def _open(mount: str | None) -> int:
    try:
        return os.open(mount, FOLDER) if mount else -1
    except OSError:
        return -1
