# SPDX-License-Identifier: Apache-2.0
"""A signal to every process of a cgroup and all below it, and to no other.

By pidfd (pidfd_open since 5.3, pidfd_send_signal since 5.1): the list is read, each is opened,
the list is read again, and only who stands in it still gets the signal.  A number that came
again for somebody else between the two is thereby left alone; one that comes again later does
not matter to a pidfd.  Older kernels: by number, start time compared at the last moment.
"""

import errno
import os
import signal
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal

from seawall.actions import descriptor_reserve
from seawall.actions.cgroup_members import CUT, CgroupMembers, started
from seawall.actions.pid_list import Gathered, Pids
from seawall.actions.work import Refused, Work

BATCH: Final = 4_096
"""Descriptors at a time, or start times: each reads the lists once more."""
_NO_PIDFD: Final = (errno.ENOSYS, errno.EPERM)


class SignalEffects:
    """Sends to all but those whom no order may reach."""

    __slots__ = ("_never", "has_pidfd", "members")

    def __init__(self, members: CgroupMembers, never: Collection[int]) -> None:
        """``never``: process ids; one that comes again is somebody else's."""
        self.members = members
        self._never = {pid: start_of(pid) for pid in never} | {1: "", os.getpid(): ""}
        self.has_pidfd = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")

    def listed(self, folder: int, version: int) -> Pids:
        """Who is in it; Refused when that is us or the first process of all."""
        pids = self.members.read(folder, version)
        if self.has_spared(pids):
            raise Refused("the guard itself, or process 1, is in it")
        return pids

    def has_spared(self, pids: Pids) -> bool:
        """Whether one of them is never to be reached."""
        found = [pid for pid in self._never if pid in pids]
        return any(not self._never[pid] or start_of(pid) == self._never[pid] for pid in found)

    def send(
        self, folder: int, version: int, number: int, work: Work,
        only: Mapping[int, str] | None = None,
    ) -> Pids:  # fmt: skip
        """One pass; gives back who was listed.  Who was signalled is added to ``work.pids``.

        ``only``: nobody but these, process id and start time, is meant.
        """
        pids = self.listed(folder, version)
        work.unseen = CUT if self.members.is_cut else ""
        pids = _meant(pids, only)
        if self.members.strangers:
            work.unsignalled += self.members.strangers
            work.say(
                f"{self.members.strangers} processes are of another pid namespace and cannot be "
                "signalled from here: give the guard the host's (hostPID)"
            )
        at = 0
        while at < len(pids):
            batch = Batch()
            at = self._open(pids, at, batch)
            if batch:
                there = batch.pids() & self.members.read(folder, version)
                self._send_batch(batch, _meant(there, only), number, work)
            elif at < len(pids):
                times = Batch("Q")
                for place in range(at, min(at + BATCH, len(pids))):
                    pid = pids[place]
                    times.add(pid, int((only[pid] if only else start_of(pid)) or 0))
                at += BATCH
                self._by_number(times, (folder, version), number, work)
        return pids

    def rehearse(self, tree: int, version: int, work: Work) -> None:
        """All lists of the tree, and signal 0 to ourselves."""
        self.members.read(tree, version)
        ours = os.getpid()
        batch = Batch()
        self._open(Pids((ours,)), 0, batch)
        self._send_batch(batch, Pids((ours,)), 0, work)
        times = Batch("Q")
        times.add(ours, int(start_of(ours) or 0))
        self._by_number(times, (tree, version), 0, work)

    def _open(self, pids: Pids, at: int, batch: "Batch") -> int:
        """As many from ``at`` on as there is room for; the place of who was not tried."""
        kept = descriptor_reserve.keep(descriptor_reserve.READING)
        try:
            while self.has_pidfd and at < len(pids) and len(batch) < BATCH:
                try:
                    batch.add(pids[at], os.pidfd_open(pids[at]))
                except OSError as problem:
                    if problem.errno in descriptor_reserve.FULL:
                        break
                    if problem.errno in _NO_PIDFD:
                        self.has_pidfd = False
                        break
                at += 1  # opened, or gone meanwhile
        finally:
            descriptor_reserve.let_go(kept)
        return at

    def _send_batch(self, batch: "Batch", there: Pids, number: int, work: Work) -> None:
        work.touch()
        reached = Gathered()
        for pid, fd in batch:
            try:
                if pid in there:
                    signal.pidfd_send_signal(fd, number)
                    reached.add(pid)
            except ProcessLookupError:
                pass
            except OSError as problem:
                self._fail(problem, work)
            finally:
                os.close(fd)
        work.pids |= Pids(reached.numbers())

    def _by_number(self, times: "Batch", place: tuple[int, int], number: int, work: Work) -> None:
        """``times``: when each started; 0: it is gone."""
        there = times.pids() & self.members.read(*place)
        work.touch()
        reached = Gathered()
        for pid, time in times:
            if pid not in there or not time or start_of(pid) != str(time):
                continue
            try:
                os.kill(pid, number)
                reached.add(pid)
            except ProcessLookupError:
                pass
            except OSError as problem:
                self._fail(problem, work)
        work.pids |= Pids(reached.numbers())

    def _fail(self, problem: OSError, work: Work) -> None:
        if problem.errno == errno.ENOSYS:  # 5.3 can be built without it; the next pass does it
            self.has_pidfd = False
            return
        work.unsignalled += 1
        words = f"a process could not be signalled: {os.strerror(problem.errno or 0)}"
        if problem.errno == errno.EPERM:
            words += ": CAP_KILL is lacking, or a security module forbids it"
        work.say(words)


class Batch:
    """Processes in order, each with its pidfd, or (``Q``) with the ticks at which it started."""

    __slots__ = ("_numbers", "_pids")

    def __init__(self, code: Literal["I", "Q"] = "I") -> None:
        self._pids, self._numbers = Gathered(), Gathered(code)

    def add(self, pid: int, number: int) -> None:
        """Append a process; ``number``: its pidfd or its start time, as the batch was made for."""
        self._pids.add(pid)
        self._numbers.add(number)

    def pids(self) -> Pids:
        """The process ids alone, without pidfds or start times."""
        return Pids(self._pids.numbers())

    def __len__(self) -> int:
        return len(self._pids)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._pids.numbers(), self._numbers.numbers(), strict=True)


def _meant(pids: Pids, only: Mapping[int, str] | None) -> Pids:
    """Asked once more when they are open: a number that came again in between is not meant."""
    if only is None:
        return pids
    return Pids(pid for pid in pids if pid in only and start_of(pid) == only[pid])


def start_of(pid: int) -> str:
    """As ``started`` tells it; empty: it is gone."""
    try:
        return started(pid)
    except (OSError, IndexError):
        return ""
