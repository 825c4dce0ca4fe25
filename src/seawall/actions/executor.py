# SPDX-License-Identifier: Apache-2.0
"""The one place where something is done to a workload: an Order in, an Outcome out.

``Executor`` does it, ``Observer`` has the same methods and does nothing.  After ``prepare`` neither
opens what it could have opened before, forks, imports, or keeps anything without a bound.
"""

import os
import time
from typing import Final

from seawall.actions import descriptor_reserve
from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.clamp_effects import Clamps
from seawall.actions.freeze_effects import Freezes, Tell, wait_frozen
from seawall.actions.identity import Identity, cgroups_of
from seawall.actions.journal import Change, Journal
from seawall.actions.kill_effects import KillEffects
from seawall.actions.mrelease_effects import Releases
from seawall.actions.orders import Mounts, Order, Outcome, Target
from seawall.actions.pursuit import Pursuits
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.signal_journal import SignalJournal
from seawall.actions.terminate_effects import terminate
from seawall.actions.trees import Trees
from seawall.actions.undo import undo
from seawall.actions.work import Refused, Work, refusal

LOOK_SECONDS: Final = 10.0
"""Between two looks whether the journal is still there, while nothing is in force."""
WORDS_MOST: Final = 32
"""Sentences of ``tend`` that wait to be told."""


class Executor:
    """Acts.  One order at a time; each checks identity first."""

    __slots__ = (
        "_clamps", "_killing", "_kills", "_limits", "_look_due", "_own", "_pursuits", "_releases",
        "_releasing", "_signals", "_spare", "_trees", "freezes", "identity", "journal", "mounts",
        "signal_journal", "words",
    )  # fmt: skip

    def __init__(
        self,
        mounts: Mounts,
        scope: tuple[str, ...],
        journal: Journal,
        *,
        freeze_seconds: float = 2.0,
        never: frozenset[int] = frozenset(),
        own_cgroup: str = "/",
        tell: Tell | None = None,
    ) -> None:
        """``never``: process ids that no order may reach (watcher, aide), beside our own and 1.
        ``own_cgroup``: in the memory tree, where /proc/self/cgroup does not tell it.
        ``tell``: of each freeze, before it, whoever thaws it should we not.
        """
        self.mounts = mounts
        self.words: list[str] = []
        """What ``tend`` did, for the teller, who empties it."""
        self.journal = journal
        self._own = own_cgroup
        self._look_due = 0.0
        self._killing = ""
        """The last decision that killed somebody."""
        self.identity = Identity(scope)
        self._releasing = Background()
        self._limits = Background()
        self._signals = SignalEffects(CgroupMembers(), never)
        self._releases = Releases(self._releasing)
        self._trees = Trees(mounts, self._signals)
        self.freezes = Freezes(journal, freeze_seconds, tell)
        self._clamps = Clamps(journal, self._limits)
        self._kills = KillEffects(self._signals, self._trees, self.freezes, self._releases)
        self._pursuits = Pursuits(self._signals, self._releases, mounts.version)
        self._spare: list[int] = []
        self.signal_journal = SignalJournal(journal, mounts.memory)

    # --- before ready ----------------------------------------------------------------------

    def prepare(self) -> None:
        """After the aide's fork, before memory is locked.  OSError when there is no tree."""
        self.identity.prepare(self.mounts, cgroups_of("self"), self._own)
        self._trees.prepare()
        try:  # noqa: SIM105 - contextlib and what it imports are 0.5 MB
            self.journal.open()
        except OSError:
            pass  # then nothing is frozen or clamped, and says so
        self._releasing.start()
        self._limits.start()
        self._keep_spare()

    def rehearse(self) -> None:
        """Walk the ways once without effect, so that their pages are there."""
        order = Order("rehearsal", "kill", Target("/", 0, "rehearsal"), "self_test")
        self.perform(order)
        self.perform(order._replace(target=Target("/seawall-is-not-there", 0, "rehearsal")))
        self._signals.rehearse(self.identity.tree, self.mounts.version, Work(order))
        noted = self.signal_journal.note(order._replace(why="rehearsal"))
        if noted is not None:
            self.signal_journal.forget(noted)
        # Where cgroup.kill does it, the first freeze would be the journal's first line.
        number = self.journal.begin(Change("freeze2", "/seawall-is-not-there", 0, "0", "1", ""))
        if number is not None:
            self.journal.end(number)
        self.tend(time.monotonic())

    def rule(self, scope: tuple[str, ...], freeze_seconds: float) -> None:
        """Other settings, after a reload."""
        self.identity.scope = scope
        self.freezes.seconds = freeze_seconds

    def allow(self, path: str) -> None:
        """One cgroup beside the scope, exactly this one: the self-test's."""
        self.identity.exactly = path

    # --- in the loop -----------------------------------------------------------------------

    def perform(self, order: Order) -> Outcome:
        """Do it, or say why not; never raises what the machine answers."""
        work = Work(order)
        is_done = False
        descriptor_reserve.let_go(self._spare)
        try:
            is_done = self._do(order, work)
        except Refused as refused:
            work.say(str(refused))
        except OSError as problem:
            work.say(refusal(problem))
        finally:
            self._keep_spare()
        return work.outcome(is_done)

    def tend(self, now: float) -> None:
        """Each tick: thaw what is over its time, look after killed ones that are still there,
        notice limits that somebody else changed.  ``now``: monotonic.
        """
        if now >= self._look_due:
            self._look_due = now + LOOK_SECONDS
            self.journal.keep()
        if self.journal.news:
            self._say(self.journal.news)
            self.journal.news = ""
        if self._is_idle:
            return
        descriptor_reserve.let_go(self._spare)
        for held in [h for h in self.freezes.active if now >= h.deadline]:
            try:
                self.freezes.thaw(held)
                self._say(f"{held.path}: thawed, its time of standing still was over")
            except OSError as problem:
                self._say(f"{held.path}: could not be thawed: {refusal(problem)}")
        for text in (*self._clamps.tend(), *self._pursuits.tend(now)):
            self._say(text)
        self._releases.tend(now)
        self._keep_spare()

    @property
    def _is_idle(self) -> bool:
        """Nothing is in force and nobody is looked after."""
        is_held = self.freezes.active or self._clamps.active
        return not is_held and self._pursuits.is_idle and self._releases.is_idle

    def undo_all(self) -> list[str]:
        """Put back everything that is in force, in words, and follow nobody any more; before an
        orderly end, and when nothing may be done from now on.
        """
        words: list[str] = []
        late: set[int] = set()
        self.signal_journal.settle()
        descriptor_reserve.let_go(self._spare)
        self._pursuits.drop()
        for held in list(self.freezes.active):
            try:
                words += [f"{held.path}: thawed"] if self.freezes.thaw(held) else []
            except OSError as problem:
                words.append(f"{held.path}: {refusal(problem)}")
        for clamp in list(self._clamps.active):
            try:
                why = self._clamps.unclamp(clamp)
                words.append(f"{clamp.path}: {why or f'memory.max is {clamp.old} again'}")
            except OSError as problem:
                words.append(f"{clamp.path}: {refusal(problem)}")
            except Refused as refused:
                late.add(clamp.number)  # whoever reads the journal next puts it back
                words.append(f"{clamp.path}: {refused}")
        try:
            words += undo(self.journal, late) if self.journal.is_open else []
        except OSError as problem:
            words.append(f"{self.journal.path}: {refusal(problem)}")
        self._keep_spare()
        return words

    # --- steps -----------------------------------------------------------------------------

    def _do(self, order: Order, work: Work) -> bool:
        if order.step == "thaw":
            return self._thaw(order, work)
        if order.step == "unclamp":
            return self._unclamp(order, work)
        folder = self.identity.open(order.target)
        number = self.signal_journal.note(order)
        try:
            return self._do_to(folder, order, work)
        finally:
            os.close(folder)
            if number is not None and not (work.pids or work.more):
                self.signal_journal.forget(number)

    def _do_to(self, folder: int, order: Order, work: Work) -> bool:
        if order.step == "freeze":
            return self._freeze(folder, work)
        if order.step == "terminate":
            return terminate(folder, work, self._signals, self._trees, self.freezes)
        if order.step == "clamp":
            return self._clamps.clamp(folder, self.mounts, work, self._signals.members)
        self._killing = order.decision
        try:
            return self._kills.kill(folder, work)
        finally:
            if work.first is not None and work.left:
                self._pursuits.take(folder, work)

    def _freeze(self, folder: int, work: Work) -> bool:
        self._signals.listed(folder, self.mounts.version)  # not ourselves
        path = work.order.target.path
        place, tree = (folder, 2), self.mounts.memory
        twin = None
        if self.mounts.version == 1:
            twin, place, tree = self._twin(path, folder)
        try:
            if not self.freezes.freeze(place, f"{tree}{path}", work):
                return False
            if not wait_frozen(*place):
                work.say("some of it is in the kernel and stands still when it comes back")
        finally:
            if twin is not None:
                os.close(twin)
        return True

    def _twin(self, path: str, folder: int) -> tuple[int, tuple[int, int], str]:
        """(descriptor, place, tree) of the v1 freezer, else of the unified tree."""
        fd = self._trees.freezer(path, folder)
        if fd is not None:
            return fd, (fd, 1), self.mounts.freezer or ""
        fd = self._trees.unified(path, folder)
        if fd is not None:
            return fd, (fd, 2), self.mounts.unified or ""
        raise Refused(
            "no freezer has a cgroup of that path with the same processes, or it is too large to "
            "be looked through"
        )

    def _thaw(self, order: Order, work: Work) -> bool:
        for held in [h for h in self.freezes.active if h.path == order.target.path]:
            work.touch()
            if not self.freezes.thaw(held):
                work.say("somebody thawed it before, or it is gone")
            return True
        if order.decision == self._killing:
            return True  # the kill of the same decision has thawed it
        raise Refused("no freeze of ours is in force there")

    def _unclamp(self, order: Order, work: Work) -> bool:
        held = self._clamps.find(order.target.inode)
        if held is None or held.path != order.target.path:
            raise Refused("no limit of ours is in force there")
        work.old_value = held.new
        work.touch()
        if why := self._clamps.unclamp(held):
            raise Refused(why)
        return True

    # --- small things ----------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if len(self.words) < WORDS_MOST:
            self.words.append(text)

    def _keep_spare(self) -> None:
        descriptor_reserve.keep(descriptor_reserve.SPARE, self._spare)
