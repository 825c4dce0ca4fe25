# SPDX-License-Identifier: Apache-2.0
"""A child that answers questions for as long as its owner lives, and may hang at any of them.

It has one lane or several.  A lane is a pipe there and a pipe back, served by a thread of its own
in the child: a question on one does not wait for that on another.  A question that is not answered
in time costs the whole child: it is killed and left behind, and the next question gets a new one,
so that on another lane a question may be lost by no fault of its own (``Lane.is_lost``).

While ``hanging_most`` that were given up have not ended, no more are forked: each is a task that
nobody can end, and holds memory.

An owner that must not fork on a node that is short of memory has a spare forked beforehand
(``prepare``), and says when (``may_fork``): the spare takes the place of a child that is lost, and
without one there is none to be asked until then.
"""

import _thread
import errno
import os
import select
import sys
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from seawall.proc.forked_child import ForkedChild, bury
from seawall.proc.own_name import take_name
from seawall.proc.pipe_frames import FrameParts, PipeFrame, packed, write_frame

HANGING_MOST: Final = 64
"""For a verb, which ends soon and has bounds of its own."""
ANSWER_MOST_BYTES: Final = 1 << 32
_END_LOOK_SECONDS: Final = 2.0
_SWITCH_SECONDS: Final = 0.0001
"""So long a lane that computes keeps the others from a system call's answer; Python's own 5 ms
would be 25 for each small file.
"""
_STACK_BYTES: Final = 1 << 20

Answer = Callable[[bytes], bytes]
"""Of a question; may hang.  OSError is told by its errno, ValueError as EINVAL."""


class ChildDied(Exception):
    """It ended by itself, or said what no child of ours says."""


class TooManyHang(Exception):
    """So many hang that there is no child to be asked."""


class _Forked(NamedTuple):
    """A child, and for each lane our ends of its pipes: to it, and back."""

    child: ForkedChild
    ends: list[tuple[int, int]]

    @property
    def has_ended(self) -> bool:
        """What it writes nothing to can only tell its end."""
        return bool(select.select((self.child.fd,), (), (), 0)[0])


class ServingChild:
    """Owner of at most one child, forked at the first question or by ``start``; and of a spare.

    spare_name: of a spare, until it is asked for the first time.
    keep:   descriptors that the answers need, when the child is forked.
    begin:  what the child does first; ``end``: and last, when its owner has ended, however it did.
    """

    def __init__(
        self, name: str = "", *, spare_name: str = "", keep: Callable[[], Iterable[int]] = tuple,
        begin: Callable[[], None] | None = None, end: Callable[[], None] | None = None,
        hanging_most: int = HANGING_MOST,
    ) -> None:  # fmt: skip
        self._name, self._spare_name = name, spare_name or name
        self._keep, self._begin, self._end = keep, begin, end
        self._hanging_most = hanging_most
        self._child: ForkedChild | None = None
        self._spare: _Forked | None = None
        self._lanes: list[Lane] = []
        self.may_fork = True
        """False: the node is short of memory; only a spare takes the place of a child."""
        self.number = 0
        """Of the child; each new one has the next."""

    def lane(self, answer: Answer, most_bytes: int = ANSWER_MOST_BYTES) -> "Lane":
        """One more; before the child is forked.  ``most_bytes``: of an answer."""
        lane = Lane(self, answer, most_bytes)
        self._lanes.append(lane)
        return lane

    @property
    def is_running(self) -> bool:
        """Whether a child waits for the next question; else it is forked then."""
        return self._child is not None and self._child.is_ours

    @property
    def pid(self) -> int:
        """Of the child; 0: there is none."""
        return self._child.pid if self._child is not None and self.is_running else 0

    def start(self) -> None:
        """Have a child now rather than when memory is short; TooManyHang, or OSError."""
        hanging = bury()
        if self.is_running:
            return
        if self._spare is not None and self._spare.has_ended:
            self._end_spare()
        if self._spare is None:
            if hanging >= self._hanging_most:
                raise TooManyHang(f"{hanging} children that were asked before hang")
            if not self.may_fork:
                raise TooManyHang("no child is left, and none is forked while memory is short")
        taken, self._spare = self._spare or self._fork(self._name), None
        self._child = taken.child
        for lane, ends in zip(self._lanes, taken.ends, strict=True):
            lane.take(*ends)
        self.number += 1

    def prepare(self) -> None:
        """Fork a spare where there is none; OSError."""
        if self._spare is not None and self._spare.has_ended:
            self._end_spare()
        if self._spare is None and self.may_fork and bury() < self._hanging_most:
            self._spare = self._fork(self._spare_name)

    @property
    def spare_pid(self) -> int:
        """0: there is none."""
        return self._spare.child.pid if self._spare is not None else 0

    def _fork(self, name: str) -> _Forked:
        pipes = [(*os.pipe2(os.O_CLOEXEC), *os.pipe2(os.O_CLOEXEC)) for _ in self._lanes]
        inside = [(questions, answers) for questions, _, _, answers in pipes]
        ends = [(to, back) for _, to, back, _ in pipes]
        try:
            child = ForkedChild(
                lambda _: self._live(inside, name), [*sum(inside, ()), *self._keep()], name=name,
                begin=self._begin, survives=self._end is not None,
            )  # fmt: skip
        except OSError:
            for fd in sum(ends, ()):
                os.close(fd)
            raise
        finally:
            for fd in sum(inside, ()):
                os.close(fd)
        for to, _ in ends:
            os.set_blocking(to, False)
        return _Forked(child, ends)

    def give_up(self) -> None:
        """Kill the child without waiting for it; safe to call twice."""
        if self._child is not None:
            for lane in self._lanes:
                lane.close()
            self._child.give_up()
        self._child = None

    def end(self) -> None:
        """As ``give_up``, and the spare too."""
        self.give_up()
        self._end_spare()

    def _end_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None and spare.child.is_ours:
            for fd in sum(spare.ends, ()):
                os.close(fd)
            spare.child.give_up()

    def _live(self, pipes: list[tuple[int, int]], name: str) -> None:
        """The child's whole life: the first lane is served by its first thread."""
        owner = os.getppid()
        if name != self._name:
            for lane in self._lanes:
                lane.answer = self._named(lane.answer)
        if len(pipes) > 1:
            sys.setswitchinterval(_SWITCH_SECONDS)
            _thread.stack_size(_STACK_BYTES)
        for lane, (questions, answers) in zip(self._lanes[1:], pipes[1:], strict=True):
            _thread.start_new_thread(_serve_thread, (questions, answers, lane.answer))
        try:
            _serve(*pipes[0], self._lanes[0].answer, owner if self._end else 0)
        finally:
            if self._end is not None:
                self._end()

    def _named(self, answer: Answer) -> Answer:
        """In a spare, which is one no more with its first question."""

        def answered(question: bytes) -> bytes:
            if self._name != self._spare_name:
                self._spare_name = self._name
                take_name(self._name)
            return answer(question)

        return answered


class Lane:
    """Questions of one kind to a ``ServingChild``."""

    def __init__(self, child: ServingChild, answer: Answer, most_bytes: int) -> None:
        self.child = child
        self._most_bytes = most_bytes
        self.answer = answer
        self._to = self._back = -1
        self._owner = 0
        self._parts = FrameParts(most_bytes)
        self._sent_to = 0

    def ask(self, question: bytes, seconds: float) -> PipeFrame | None:
        """Its answer; None: there is none in time, and the child is given up.  ChildDied,
        TooManyHang, OSError where none can be forked.

        ``seconds``: until it begins; what is begun goes on as long as a part comes each second.
        """
        self.child.start()
        try:
            frame = self._answer(seconds) if self._put(question, seconds) else None
        except (BrokenPipeError, EOFError, ValueError) as error:
            self.child.give_up()
            raise ChildDied(str(error)) from error
        if frame is None:
            self.child.give_up()
        return frame

    def send(self, question: bytes) -> None:
        """Without waiting for the answer (``receive``): one at a time, and at most 64 KiB."""
        self.child.start()
        try:
            os.write(self._to, packed(question))
        except OSError as error:
            self.child.give_up()
            raise ChildDied(str(error)) from error
        self._sent_to = self.child.number

    @property
    def is_lost(self) -> bool:
        """The child to which the last question was sent is gone, for a question on another lane."""
        return not self.child.is_running or self.child.number != self._sent_to

    def receive(self) -> PipeFrame | None:
        """What has come to the question that was sent; None: not all of it yet.  ChildDied."""
        try:
            is_open = True
            while is_open and select.select((self._back,), (), (), 0)[0]:
                is_open = self._parts.read(self._back)
            frame = self._parts.take()
        except (OSError, ValueError) as error:
            self.child.give_up()
            raise ChildDied(str(error)) from error
        if frame is None and not is_open:
            self.child.give_up()
            raise ChildDied
        return frame

    def take(self, to: int, back: int) -> None:
        """Our ends of the pipes of a child that serves from now on."""
        self._to, self._back = to, back
        self._owner, self._parts = os.getpid(), FrameParts(self._most_bytes)

    def close(self) -> None:
        """Let go of our ends."""
        if self._to >= 0 and self._owner == os.getpid():
            os.close(self._to)
            os.close(self._back)
        self._to = self._back = -1

    def _put(self, question: bytes, seconds: float) -> bool:
        """The pipe takes 64 KiB at once; more only as fast as the child reads."""
        poll = select.poll()
        poll.register(self._to, select.POLLOUT)
        view = memoryview(packed(question))
        while view:
            if not poll.poll(seconds * 1000):
                return False
            view = view[os.write(self._to, view) :]
        return True

    def _answer(self, seconds: float) -> PipeFrame | None:
        poll = select.poll()
        poll.register(self._back, select.POLLIN)
        while (frame := self._parts.take()) is None:
            wait = max(seconds, 1.0) if self._parts.is_begun else seconds
            if not poll.poll(wait * 1000):
                return None
            if not self._parts.read(self._back):
                raise EOFError
        return frame


def _serve_thread(questions: int, answers: int, answer: Answer) -> None:
    try:
        _serve(questions, answers, answer)
    except BaseException:  # noqa: BLE001 - as where the first thread ends: whoever asks hears of it
        os._exit(1)


def _serve(questions: int, answers: int, answer: Answer, owner: int = 0) -> None:
    """One lane in the child, until its owner has closed it.  ``owner``: look whether it lives, for
    another child of it may hold the pipe too; 0: the pipe tells.
    """
    parts = FrameParts()
    while (question := _question(questions, parts, owner)) is not None:
        code, body = 0, b""
        try:
            body = answer(question)
        except OSError as error:
            code = error.errno or errno.EIO
        except ValueError:
            code = errno.EINVAL  # a NUL in a name
        try:
            write_frame(answers, body, code)
        except BrokenPipeError:
            return


def _question(questions: int, parts: FrameParts, owner: int) -> bytes | None:
    """The next one; None: there will be none."""
    poll = select.poll()
    poll.register(questions, select.POLLIN)
    while (frame := parts.take()) is None:
        while owner and not poll.poll(_END_LOOK_SECONDS * 1000):
            if os.getppid() != owner:
                return None
        if not parts.read(questions):
            return None
    return frame.body
