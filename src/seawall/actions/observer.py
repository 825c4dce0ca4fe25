# SPDX-License-Identifier: Apache-2.0
"""In place of ``Executor`` where nothing may be done: the same methods, and what would happen."""

import os

from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.clamp_effects import before_and_after
from seawall.actions.identity import Identity, cgroups_of
from seawall.actions.journal import Journal
from seawall.actions.orders import Mounts, Order, Outcome
from seawall.actions.work import Refused, Work, refusal


class Observer:
    """The same methods; looks whether it could be done, and does nothing."""

    __slots__ = ("_identity", "_members", "mounts", "words")

    def __init__(self, mounts: Mounts, scope: tuple[str, ...], journal: Journal) -> None:
        self.mounts = mounts
        self.words: list[str] = []
        self._identity = Identity(scope)
        self._members = CgroupMembers()
        del journal  # nothing is changed

    def prepare(self) -> None:
        """Open the memory tree.  OSError when there is none."""
        self._identity.prepare(self.mounts, cgroups_of("self"))

    def rehearse(self) -> None:
        """As with ``Executor``; there is nothing that must not fail."""

    def rule(self, scope: tuple[str, ...], freeze_seconds: float) -> None:
        """Other settings, after a reload."""
        self._identity.scope = scope
        del freeze_seconds

    def allow(self, path: str) -> None:
        """One cgroup beside the scope."""
        self._identity.exactly = path

    def perform(self, order: Order) -> Outcome:
        """What would have been done: ``is_done`` when nothing would have stood in its way."""
        work = Work(order)
        is_done = order.step in ("thaw", "unclamp")
        try:
            if not is_done:
                folder = self._identity.open(order.target)
                try:
                    if order.step == "clamp":
                        before_and_after(folder, order, self.mounts.version, self._members)
                    work.pids = self._members.read(folder, self.mounts.version)
                finally:
                    os.close(folder)
                is_done = True
        except Refused as refused:
            work.say(str(refused))
        except OSError as problem:
            work.say(refusal(problem))
        return work.outcome(is_done)._replace(is_observed=True)

    def tend(self, now: float) -> None:
        """An observer has nothing under way."""

    def undo_all(self) -> list[str]:
        """An empty list: an observer changed nothing, so there is nothing to undo."""
        return []
