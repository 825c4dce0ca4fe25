# SPDX-License-Identifier: Apache-2.0
"""SIGKILL to a whole cgroup and all below it, in the way that this kernel offers.

``cgroup.kill`` (v2, 5.14; on a hybrid host through the unified tree) takes all at once.  Else it
is made to stand still, every process is signalled, and it is thawed whatever happened: v1 lets
nobody die who is frozen.  Where there is no freezer, SIGKILL in rounds: who is signalled forks
no more, and each round takes those that were forked in the one before.  After ``cgroup.kill`` too:
it passes over a process whose main thread has ended while others live (seen on 6.18).  A Slurm job
and a session are killed one by one: ``cgroup.kill`` knows no exception for slurmstepd and sshd.
"""

import os
import signal
import time
from typing import Final

from seawall.actions import cgroup_files
from seawall.actions.cgroup_members import CUT, GaveUp
from seawall.actions.freeze_effects import Freezes, is_frozen, thaw_all, wait_frozen
from seawall.actions.mrelease_effects import Releases
from seawall.actions.pid_list import Pids
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.spared import spared_in
from seawall.actions.trees import Trees
from seawall.actions.work import Refused, Work, refusal

KILL_SECONDS: Final = 0.2
"""So long a kill is waited for; who is there still is looked after from ``tend``."""
RELEASE_SECONDS: Final = 0.02
"""Who is there after that is helped by process_mrelease, and signalled behind ``cgroup.kill``."""
WAIT_LEAST: Final = 0.001
WAIT_MOST: Final = 0.01


class KillEffects:
    """Kills; gives back whether every process was signalled."""

    __slots__ = ("_freezes", "_releases", "_signals", "_trees", "seconds")

    def __init__(
        self, signals: SignalEffects, trees: Trees, freezes: Freezes, releases: Releases
    ) -> None:
        self._signals = signals
        self._trees = trees
        self._freezes = freezes
        self._releases = releases
        self.seconds = KILL_SECONDS

    def kill(self, folder: int, work: Work) -> bool:
        """``folder``: of the memory tree, identity checked.  OSError or Refused: nothing done.

        Where one by one did not find all, the answer is no.
        """
        version = self._trees.mounts.version
        is_whole = False
        if spared_in(folder) is None:
            is_whole = self._at_once(folder, work) if version == 2 else self._hybrid(folder, work)
        if not is_whole:
            self._one_by_one(folder, version, work)
        try:
            work.left = self._until_empty(folder, version, work, is_whole)
        except OSError as problem:
            # All was signalled; that nobody can be seen is no reason to forget them.
            work.left = 1
            work.say(f"who is left cannot be seen: {refusal(problem)}")
        if work.unseen:
            work.say(work.unseen)
            # Who is found in the next second is one of them.
            work.may_have_forked = work.may_have_forked or not is_whole
        elif not work.pids and not work.more and not work.left and not work.unsignalled:
            work.say("nobody is in it")
        return not work.unsignalled and (is_whole or not work.unseen)

    # --- cgroup.kill ---------------------------------------------------------------------

    def _at_once(self, folder: int, work: Work) -> bool:
        there, members = self._signals.listed(folder, 2), self._signals.members
        if not (there or members.strangers or members.unseen(folder, there)):
            return True
        return self._write_kill(folder, there, work)

    def _hybrid(self, folder: int, work: Work) -> bool:
        """In the unified tree; whole when all of the memory tree's are there."""
        twin = self._trees.unified(work.order.target.path, folder)
        if twin is None:
            return False
        try:
            there = self._signals.listed(folder, 1)
            is_cut = self._signals.members.is_cut
            whole = not is_cut and there <= self._signals.members.read(twin, 2)
            if not self._write_kill(twin, there, work) or not whole:
                return False
        finally:
            os.close(twin)
        self._wake(folder, work)
        return True

    def _wake(self, folder: int, work: Work) -> None:
        """Who was frozen by somebody in v1's own freezer does not die before it is thawed."""
        twin = self._trees.freezer(work.order.target.path, folder)
        if twin is None:
            return
        try:
            _thaw_for_good((twin, 1), work)
        except OSError as problem:
            work.say(f"it is frozen, and could not be thawed: {refusal(problem)}")
        finally:
            os.close(twin)

    def _write_kill(self, folder: int, there: Pids, work: Work) -> bool:
        work.touch()
        try:
            is_done = cgroup_files.write(folder, "cgroup.kill", "1")
        except OSError as problem:  # EOPNOTSUPP: threaded
            work.say(f"cgroup.kill: {refusal(problem)}")
            return False
        if is_done:
            work.pids |= there
            work.more = self._signals.members.strangers or int(not there)
            # In whichever tree: on a hybrid host it was frozen in that of v1, where nobody dies.
            path = work.order.target.path
            for held in [h for h in self._freezes.active if h.path == path]:
                self._freezes.thaw(held)
        return is_done

    # --- one by one ----------------------------------------------------------------------

    def _one_by_one(self, folder: int, version: int, work: Work) -> None:
        if version == 2:
            self._frozen(folder, (folder, 2), work)
            return
        twin = self._trees.freezer(work.order.target.path, folder)
        if twin is None:
            work.may_have_forked = True
            self._signals.send(folder, version, signal.SIGKILL, work)
            return
        try:
            self._frozen(folder, (twin, 1), work)
        finally:
            os.close(twin)

    def _frozen(self, folder: int, place: tuple[int, int], work: Work) -> None:
        """Stand still, signal, thaw; ``place``: where it is frozen, (descriptor, version)."""
        is_ours = self._freeze(place, work)
        work.may_have_forked = not is_ours and not is_frozen(*place)
        is_all = False
        try:
            self._signals.send(folder, self._trees.mounts.version, signal.SIGKILL, work)
            is_all = not work.unsignalled and not work.unseen
        finally:
            if is_ours and not self._thaw(place):
                work.may_have_forked = True  # somebody thawed it before all were signalled
        # v2 lets the frozen die.  Nobody of v1 who runs on here is not dying.
        if place[1] == 1 and is_all:
            _thaw_for_good(place, work)
        elif is_frozen(*place):
            work.say("left frozen, as somebody else froze it and not all could be signalled")

    def _freeze(self, place: tuple[int, int], work: Work) -> bool:
        try:
            is_ours = self._freezes.freeze(place, self._absolute(work, place[1]), work)
        except (Refused, OSError):
            return False  # rounds do it too
        if is_ours:
            wait_frozen(*place)
        return is_ours

    def _thaw(self, place: tuple[int, int]) -> bool:
        held = self._freezes.find(os.fstat(place[0]).st_ino, place[1])
        return held is not None and self._freezes.thaw(held)

    def _absolute(self, work: Work, version: int) -> str:
        mounts = self._trees.mounts
        tree = mounts.freezer if version == 1 else mounts.unified
        return f"{tree or mounts.memory}{work.order.target.path}"

    # --- until nobody is there --------------------------------------------------------------

    def _until_empty(self, folder: int, version: int, work: Work, is_whole: bool) -> int:  # noqa: FBT001 - as told by at_once
        """How many are there at the deadline."""
        began = time.monotonic()
        pause = WAIT_LEAST
        is_sure = not is_whole
        while True:
            there = self._signals.members.read(folder, version)
            work.unseen = self._signals.members.unseen(folder, there)
            left = len(there) + self._signals.members.strangers or int(bool(work.unseen))
            passed = time.monotonic() - began
            is_slow = passed >= min(RELEASE_SECONDS, self.seconds)
            if left and is_slow:
                self._releases.take(folder, version, self._signals.members)
            if is_whole and not there <= work.pids:
                work.may_have_forked = True  # by one that cgroup.kill passed over
            if not left or passed >= self.seconds:
                work.may_have_forked = work.may_have_forked or (left > 0 and not is_sure)
                return left
            time.sleep(pause)
            pause = min(2 * pause, WAIT_MOST)
            if there and not is_whole:
                self._signals.send(folder, version, signal.SIGKILL, work)
            elif there and is_slow:
                is_sure = self._send_again(folder, version, work)

    def _send_again(self, folder: int, version: int, work: Work) -> bool:
        """Behind ``cgroup.kill``; whether all were signalled.  That one may not be is no problem of
        the kill: the kernel, which asks nobody whose they are, has done it mostly.
        """
        again = Work(work.order)
        self._signals.send(folder, version, signal.SIGKILL, again)
        work.may_have_forked = work.may_have_forked or not again.pids <= work.pids
        work.pids |= again.pids
        return not again.unsignalled and not again.unseen


def _thaw_for_good(place: tuple[int, int], work: Work) -> None:
    """v1, and all of it is dying: whoever froze it."""
    try:
        thaw_all(place[0])
    except GaveUp:
        work.say(CUT)
    if is_frozen(*place):
        work.say("a cgroup above it was frozen by somebody else: they die once it is thawed")
