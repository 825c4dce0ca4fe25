# SPDX-License-Identifier: Apache-2.0
"""Killed cgroups in which somebody still is: looked at from tick to tick until they are gone.

A large process is listed until its memory is freed, one that is stuck in the kernel until what it
waits for comes.  Who was forked while there was no freezer gets his signal here; whoever comes
later, a unit that begins again beside what is left of it, is nobody that was judged.
"""

import os
import signal
from typing import Final

from seawall.actions.cgroup_members import CUT, is_populated
from seawall.actions.mrelease_effects import Releases
from seawall.actions.orders import Order
from seawall.actions.pid_list import Gathered, Pids
from seawall.actions.signal_effects import SignalEffects, start_of
from seawall.actions.work import Refused, Work

MOST: Final = 16
SECONDS_MOST: Final = 60.0
FORKED_SECONDS: Final = 1.0
"""After the kill, where nothing stood still: who comes up to then was forked by them."""
LOOKS_MOST: Final = 128
"""So many get their signal again in one tick: of 8,000 that cannot die all would cost 0.4 s, and
pages that were never touched."""


class _One:
    __slots__ = (
        "_after",
        "_starts",
        "began",
        "fd",
        "may_have_forked",
        "order",
        "targets",
        "unseen",
    )

    def __init__(self, fd: int, work: Work, meant: Pids) -> None:
        self.fd = fd
        self.order: Order = work.order
        self.began = work.began
        self.may_have_forked = work.may_have_forked
        self.unseen = ""
        """Why somebody may be there whom nobody finds."""
        self.targets = Pids()
        self._starts = Gathered("Q")
        """When each of them started."""
        self._after = 0
        """Who was looked at last."""
        self._know(meant)

    def mean(self, pids: Pids) -> dict[int, str]:
        """These too; gives back whom it did not know, with their start times."""
        if not (new := pids - self.targets):
            return {}
        self._know(self.targets | new)
        return {pid: self.known_of(pid) for pid in new & self.targets}

    def known_of(self, pid: int) -> str:
        """As ``started`` tells it; empty: it is not meant."""
        if pid not in self.targets:
            return ""
        return str(self._starts.numbers()[self.targets.place(pid)])

    def next_of(self, left: Pids) -> dict[int, str]:
        """The processes that are looked at in this tick, at most ``LOOKS_MOST``, in turn."""
        turn: dict[int, str] = {}
        first = self.targets.place(self._after + 1)
        for place in range(len(self.targets)):
            pid = self.targets[(first + place) % len(self.targets)]
            if len(turn) == LOOKS_MOST:
                break
            if pid in left:
                turn[pid] = self.known_of(pid)
                self._after = pid
        return turn

    def forget_ended(self, pids: Pids) -> None:
        """Who is not listed may live all the same: the list may be cut."""
        gone = Pids(pid for pid in pids if start_of(pid) != self.known_of(pid))
        if gone:
            self._know(self.targets - gone)

    def _know(self, pids: Pids) -> None:
        """With the start times that are known, or that they have now."""
        known, starts = Gathered(), Gathered("Q")
        for pid in pids:
            if start := self.known_of(pid) or start_of(pid):
                known.add(pid)
                starts.add(int(start))
        self.targets, self._starts = Pids(known.numbers()), starts


class Pursuits:
    """At most 16 at a time, each for a minute."""

    __slots__ = ("_ones", "_releases", "_signals", "_version")

    def __init__(self, signals: SignalEffects, releases: Releases, version: int) -> None:
        self._ones: list[_One] = []
        self._signals = signals
        self._releases = releases
        self._version = version

    @property
    def is_idle(self) -> bool:
        """Whether no killed cgroup is followed any more."""
        return not self._ones

    def take(self, folder: int, work: Work) -> None:
        """After a kill that left somebody; the oldest makes room."""
        if len(self._ones) >= MOST:
            os.close(self._ones.pop(0).fd)
        there = self._signals.members.read(folder, self._version)
        meant = there if work.may_have_forked else there & work.pids
        self._ones.append(_One(os.dup(folder), work, meant))

    def drop(self) -> None:
        """Follow nobody any more."""
        for one in self._ones:
            os.close(one.fd)
        self._ones.clear()

    def tend(self, now: float) -> list[str]:
        """What became of them, in words; a signal for who is there still."""
        words = []
        for one in list(self._ones):
            left = self._look(one, now)
            passed = now - one.began
            if not left:
                words.append(f"{one.order.target.name}: all are gone after {passed:.1f} s")
            elif passed > SECONDS_MOST:
                stuck = f"{left} killed processes are stuck in the kernel"
                words.append(f"{one.order.target.name}: {one.unseen or stuck}")
            else:
                continue
            self._ones.remove(one)
            os.close(one.fd)
        return words

    def _look(self, one: _One, now: float) -> int:
        members = self._signals.members
        try:
            there = self._signals.listed(one.fd, self._version)
            strangers, is_cut = members.strangers, members.is_cut
            is_forking = one.may_have_forked and now < one.began + FORKED_SECONDS
            new = one.mean(there) if is_forking else {}
            left = there & one.targets
            if left:
                left -= self._signal(one, one.next_of(left) | new)
            is_empty = not is_cut or is_populated(one.fd) is False
            one.unseen = "" if is_empty or left else CUT
            if left:
                self._releases.take(one.fd, self._version, members)
        except (Refused, OSError):
            return 1  # asked again until its time is over
        return len(left) + strangers or int(bool(one.unseen))

    def _signal(self, one: _One, only: dict[int, str]) -> Pids:
        """Gives back who of them is there no more."""
        work = Work(one.order)
        there = self._signals.send(one.fd, self._version, signal.SIGKILL, work, only=only)
        gone = Pids(only) - there
        one.forget_ended(gone)
        return gone
