# SPDX-License-Identifier: Apache-2.0
"""The watcher's one reader: a child that reads and asks what may hang, while the watcher goes on.

What lies behind another process's mmap_lock, on a disk, or takes half a second on a large node, is
read by it alone; /proc/meminfo, cgroups and the tracer's buffers the watcher reads itself.

It has two lanes (``proc/serving_child.py``):

files
    Files and folders that may block (``host/blocking.py``).  Deadline 0.2 s, of a kernel's lock
    2 s.  The watcher waits: names and roles of new workloads are worth so much.
probes
    Sockets of packet rings, files and mappings of drivers (``host/slow_probes.py``).  Deadline:
    the probe's own and half a second.  Nobody waits: the answer is told at a later look
    (``deferred_host.py``).

Queue: one question a lane; what else is wanted waits in the watcher, the cheap probes first, and
between two answers the lane rests (``DeferredHost``).  Priority: a file does not wait for a probe,
for each lane has a thread of its own.

A question that is not answered in time costs the reader.  It is killed and not waited for (a task
in state D ends when it wakes), the answer is "could not see" with its reason, and a spare that was
forked beforehand takes its place at once.  What the other lane was asked meanwhile is asked again,
twice at most.  While the node is short nothing is forked (``may_fork``): whoever allocates there
may be the one who starts the kernel's OOM killer.
Lost ones are bounded: of files, ``expendable`` refuses a kind of which five were lost in five
minutes; and while ``HANGING_MOST`` readers that were killed have not ended, there is no new one.

Reader and spare are forked before the watcher imports what it judges by, so that they hold half as
much (PSS of 6 MB, not 11); a later spare is as large as that.  What the probes of a watcher need is
imported before: a spare that begins on a node that is short reads no file for it.

The reader outlives a watcher that is killed, for a moment, and takes away what that traced with;
of a reader that hangs just then the next watcher does it, at its start.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from seawall import own_process
from seawall.host.host import JSON, Unread
from seawall.host.live import LiveHost
from seawall.host.page_trace.keeper import sweep_after
from seawall.host.slow_probes import SLOW_PROBES
from seawall.proc import process_rights
from seawall.proc.own_name import take_role
from seawall.proc.pipe_frames import PipeFrame
from seawall.proc.serving_child import ChildDied, ServingChild, TooManyHang

HANGING_MOST: Final = 8
ASKED_AGAIN_MOST: Final = 2
_ANSWER_MOST_BYTES: Final = 16 << 20
_NO_ANSWER: Final = "a process did not let go, or no time"
_NAME: Final = "seawall-reader"
SPARE_NAME: Final = "seawall-spare"
"""Of the spare, in ``ps``."""

Answers = Callable[[str, str], JSON]
"""(probe, argument) -> its answer; may raise OSError, and may hang."""


class Question(NamedTuple):
    """What a probe is asked: its name and its argument."""

    probe: str
    argument: str


class WatcherReader:
    """Owner of the reader: the lane ``probes``, and by ``host`` the lane ``files``."""

    def __init__(self, answers: Answers | None = None) -> None:
        """``answers``: those of ``SLOW_PROBES`` where none are given."""
        self._answers = answers or _slow_probe
        self._watcher = os.getpid()
        self.child = ServingChild(
            _NAME, spare_name=SPARE_NAME, begin=_begin, end=self._sweep, hanging_most=HANGING_MOST
        )  # fmt: skip
        self._lane = self.child.lane(self._answer, _ANSWER_MOST_BYTES)
        self.host = LiveHost("/", reader=self.child)
        """This machine, as the watcher asks it."""
        self._asked: Question | None = None
        self._refusal: Unread | None = None
        self._seconds = self._until = 0.0
        self._again = 0
        self.losses = 0
        """Readers that a probe never answered."""

    @property
    def is_free(self) -> bool:
        """Whether a probe may be asked now."""
        return self._asked is None

    def start(self) -> None:
        """Fork reader and spare now rather than when memory is short; it may not be possible."""
        with suppress(OSError, TooManyHang):
            self.child.start()
            self.child.prepare()

    def ask(self, question: Question, seconds: float) -> bool:
        """Whether it was free; ``take`` tells what came of it."""
        if self._asked is not None:
            return False
        self._asked, self._seconds, self._again = question, seconds, 0
        self._send()
        return True

    def take(self) -> tuple[Question, JSON | Unread] | None:
        """The answer, when it is there or its time is over; never waits."""
        asked = self._asked
        if asked is None:
            return None
        told = self._refusal or self._received(asked)
        if told is None:
            return None
        self._asked = self._refusal = None
        return asked, told

    def close(self) -> None:
        """End the reader; safe to call twice."""
        self._asked = self._refusal = None
        self.child.end()

    def _send(self) -> None:
        assert self._asked is not None  # noqa: S101 - whoever calls has set it
        probe = self._asked.probe
        self._until = time.monotonic() + self._seconds
        try:
            self._lane.send(json.dumps(self._asked).encode())
        except TooManyHang as problem:
            self._refusal = Unread(probe, "no_answer", f"not asked: {problem}")
        except (OSError, ChildDied) as problem:
            self._refusal = Unread(probe, "failed", f"not asked: {problem}")

    def _received(self, asked: Question) -> JSON | Unread | None:
        if self._lane.is_lost:
            self._again += 1
            if self._again > ASKED_AGAIN_MOST:
                return Unread(asked.probe, "no_answer", "its reader was lost to other questions")
            self._send()
            return None
        try:
            frame = self._lane.receive()
        except ChildDied:
            return Unread(asked.probe, "failed", "the reader that was asked died")
        if frame is not None:
            return _told(asked, frame)
        if time.monotonic() < self._until:
            return None
        self.losses += 1
        self.child.give_up()
        return Unread(asked.probe, "no_answer", _NO_ANSWER)

    def _answer(self, question: bytes) -> bytes:
        """In the reader."""
        told: dict[str, JSON] = {}
        try:
            told["answer"] = self._answers(*json.loads(question))
        except Exception as error:  # noqa: BLE001 - whatever it is, the watcher goes on
            told = {"error": f"{type(error).__name__}: {error}"[:200]}
        return json.dumps(told).encode()

    def _sweep(self) -> None:
        """In the reader, at its end."""
        sweep_after(self._watcher)


def import_probes() -> None:
    """What a watcher asks, before reader and spare are forked."""
    from seawall.host import driver_files, driver_mappings  # noqa: F401, PLC0415 - watchers alone
    from seawall.host.packet_rings import maps, ring_sockets  # noqa: F401, PLC0415


def _slow_probe(probe: str, argument: str) -> JSON:
    return SLOW_PROBES[probe].answer(argument)


def _begin() -> None:
    import fcntl  # noqa: F401, PLC0415 - a lane may fork a second reader, which must import nothing

    take_role("reader")
    be_first()
    process_rights.keep_only("reader")


def be_first() -> None:
    """A child's answers are evidence, and are wanted most where nothing else gets on."""
    own_process.lock()
    own_process.go_first()


def _told(asked: Question, frame: PipeFrame) -> JSON | Unread:
    try:
        told = json.loads(frame.body)
    except ValueError:
        return Unread(asked.probe, "failed", "the reader told nonsense")
    if "error" in told:
        return Unread("", "failed", str(told["error"]))
    answer: JSON = told["answer"]
    return answer
