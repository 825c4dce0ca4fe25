# SPDX-License-Identifier: Apache-2.0
"""Asking about many containers, any of which may hold up whoever asks it.

A worker, forked for it, answers one question after the other.  When one takes long (a FUSE
whose server is silent, a cgroup that is throttled or frozen) the worker is set aside and
another goes on with the next, so that a hung one costs only itself; past its deadline it is
killed and left behind.  Workers die with their parent and hold none of its descriptors.
"""

import gc
import json
import os
import select
import time
from collections.abc import Callable, Sequence
from errno import EINVAL, EIO
from typing import Final, Generic, TypeVar

from seawall.host.expendable import unread_for
from seawall.host.host import JSON, Why
from seawall.proc.forked_child import ForkedChild, bury
from seawall.proc.parent_death import die_with_parent
from seawall.proc.pipe_frames import FrameParts, write_frame

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 0.03
_ASIDE_MOST: Final = 32
_GRACE_SECONDS: Final = 0.02  # for the killed to die; one in state D may take for ever
_ANSWER_MOST: Final = 1 << 20


def problem(why: Why, words: str) -> dict[str, JSON]:
    """What stands where an answer should: {"problem": [why, words]}."""
    return {"problem": [why, words]}


def problem_of(code: int) -> dict[str, JSON]:
    """The same for an errno."""
    unread = unread_for("", code)
    return problem(unread.why, unread.detail)


def ask_apart(
    questions: Sequence[T],
    answer: Callable[[T], JSON],
    *,
    each_seconds: float,
    all_seconds: float,
) -> list[JSON]:
    """An answer or a ``problem`` for each, in order.

    ``answer`` runs in another process; an OSError becomes the problem that it stands for.
    Only for a process with one thread.
    """
    crew = _Crew(questions, answer, each_seconds, time.monotonic() + all_seconds)
    try:
        return crew.answers()
    finally:
        crew.close()


class _Worker:
    """A forked process that answers from question ``at`` on."""

    def __init__(self, at: int, work: Callable[[int, int], None]) -> None:
        self.at = at
        self.since = time.monotonic()
        self.child = ForkedChild(lambda to: work(at, to))
        self._parts = FrameParts(_ANSWER_MOST)

    def records(self) -> list[bytes] | None:
        """Answers that have come; None at the end of it."""
        if not self._parts.read(self.child.fd):
            return None
        found = []
        while (frame := self._parts.take()) is not None:
            found.append(frame.body)
        return found


class _Crew(Generic[T]):
    """The worker in front, those set aside, and the answers so far."""

    def __init__(
        self,
        questions: Sequence[T],
        answer: Callable[[T], JSON],
        each_seconds: float,
        until: float,
    ) -> None:
        self._questions = questions
        self._answer = answer
        self._each = each_seconds
        self._until = until
        self._told: dict[int, JSON] = {}
        self._next = 0
        self._front: _Worker | None = None
        self._aside: list[_Worker] = []
        self._parent = os.getpid()

    def answers(self) -> list[JSON]:
        count = len(self._questions)
        while len(self._told) < count and time.monotonic() < self._until:
            if self._front is None and self._next < count and len(self._aside) < _ASIDE_MOST:
                self._front = _Worker(self._next, self._work)
            self._listen()
            self._give_up()
        rest = problem("not_reached", "the time for all containers together was over")
        return [self._told.get(number, rest) for number in range(count)]

    def close(self) -> None:
        """End whoever is left."""
        for worker in (*self._aside, *((self._front,) if self._front else ())):
            worker.child.give_up()
        self._aside, self._front = [], None
        _bury()

    def _listen(self) -> None:
        """Take what comes, until something must be given up."""
        workers = [*self._aside, *((self._front,) if self._front else ())]
        ends = [self._until, *(one.since + self._each for one in self._aside)]
        if self._front:
            ends.append(self._front.since + self._patience())
        poll = select.poll()
        for worker in workers:
            poll.register(worker.child.fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(max(1, 1000 * (min(ends) - time.monotonic())))}
        for worker in workers:
            if worker.child.fd in ready:
                self._take(worker)

    def _patience(self) -> float:
        return _PATIENCE_SECONDS if len(self._aside) < _ASIDE_MOST else self._each

    def _take(self, worker: _Worker) -> None:
        records = worker.records()
        for record in records or ():
            self._told[worker.at] = json.loads(record)
            worker.at += 1
            worker.since = time.monotonic()
            if worker is self._front:
                self._next = worker.at
            else:
                self._end(worker)  # the next one has its own already
                return
        if records is None:
            if worker.at < len(self._questions):
                self._told[worker.at] = problem("no_answer", "whoever asked it was killed there")
            self._next = max(self._next, worker.at + 1)
            self._end(worker)

    def _give_up(self) -> None:
        """On whoever had its time; the one in front may go on aside."""
        now = time.monotonic()
        if self._front and now > self._front.since + self._patience():
            self._aside.append(self._front)
            self._next = self._front.at + 1
            self._front = None
        for worker in [one for one in self._aside if now > one.since + self._each]:
            words = f"it held up whoever asked for more than {self._each:g} s"
            self._told[worker.at] = problem("no_answer", words)
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        worker.child.give_up()
        if worker is self._front:
            self._front = None
        else:
            self._aside.remove(worker)

    def _work(self, first: int, to: int) -> None:
        """A worker's whole life."""
        die_with_parent(self._parent)
        gc.disable()  # it would touch every page, and each becomes a copy
        for question in self._questions[first:]:
            try:
                told = self._answer(question)
            except OSError as error:
                told = problem_of(error.errno or EIO)
            except ValueError:
                told = problem_of(EINVAL)
            data = json.dumps(told).encode()
            if len(data) > _ANSWER_MOST:
                data = json.dumps(problem("too_big", "the answer is over a MiB")).encode()
            write_frame(to, data)


def _bury() -> None:
    """Reap the dead, of earlier calls too."""
    until = time.monotonic() + _GRACE_SECONDS
    while bury() and time.monotonic() < until:
        time.sleep(0.001)
