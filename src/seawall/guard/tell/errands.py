# SPDX-License-Identifier: Apache-2.0
"""The aide's side: takes requests, starts a child for each, and ends it when it takes too long.

Messages to containers and commands after a kill wait for a place when all are taken.  It holds
no file of the guard and does nothing itself that can wait for a disk; but at the start it reads
what the guard executes (``held_files``), and where no child can be had for a line to the kernel's
log it writes that itself.

While the node is short nothing is forked: a line to the kernel's log it writes itself, and a
termination message is written by a spare, a child that was forked beforehand
(``tell/spare_children.py``).  What there is no spare for waits until memory is back, at most
``SHORT_MOST_SECONDS``; the collector's file and the look for rivals are left to the next time.  A
new configuration is read all the same: it may disarm.
"""

import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

from seawall import resident_files
from seawall.guard.config_watch import watch_way
from seawall.guard.order_files import QUARANTINE_MOST_BYTES, read_object
from seawall.guard.tell import (
    job_output,
    kill_command,
    rivals,
    self_test_child,
    termination,
    textfile,
)
from seawall.guard.tell.child import COMMANDS, COMPANIONS, LIMITS, Child, be_gentle, ending, parsed
from seawall.guard.tell.late_thaw import LateThaw
from seawall.guard.tell.own_log import log, say
from seawall.guard.tell.own_programs import become_companion, become_reader, give_away
from seawall.guard.tell.spare_children import KINDS as SPARED
from seawall.guard.tell.spare_children import SpareChildren, awaited
from seawall.guard.tell.waiting_requests import KINDS as WAITS
from seawall.guard.tell.waiting_requests import WaitingRequests
from seawall.guard.watcher_channel import DATAGRAM_MOST_BYTES
from seawall.proc import process_rights

_ANSWER_MOST: Final = 32 << 10
_POLL_SECONDS: Final = 0.5
_FAILURES_MOST: Final = 20
SHORT_MOST_SECONDS: Final = 15.0
"""So long the owner's commands and messages wait for memory, where there is no spare for them."""
_LEFT_OUT: Final = ("textfile", "rivals")
"""Asked for again anyway."""


class Errands:
    """Where things are, so that tests need no machine."""

    def __init__(
        self, *, proc: str = "/proc", kubelet: tuple[str, ...] = termination.KUBELET,
        configs: tuple[str, ...] = termination.CONFIGS, kmsg: str = "/dev/kmsg",
        roots: tuple[str, ...] = ("", "/proc/1/root"), watcher_fds: list[int] | None = None,
        recorder_fds: list[int] | None = None, config_fd: int = -1,
    ) -> None:  # fmt: skip
        self.proc = proc
        self.places = termination.MessagePlaces(kubelet, configs, roots)
        self.kmsg = kmsg
        self.config_fd = config_fd
        """The guard's inotify descriptor, or -1: whoever reads the file watches the way to it."""
        self.companion_fds = {"watcher": watcher_fds or [], "recorder": recorder_fds or []}
        """Ends of pairs, one for each that is to come; -1 once it is given."""

    def does(self, request: dict[str, Any]) -> Callable[[], dict[str, Any]] | None:
        """What a child has to do; None: nobody knows that request."""
        what = request.get("do")
        if what == "termination_message":
            return lambda: termination.write(request, self.places)
        if what == "job_output":
            return lambda: job_output.write(request)
        if what == "job_command":
            return lambda: _job_command(request)
        if what == "textfile":
            return lambda: textfile.write(request)
        if what == "rivals":
            return lambda: {"rivals": rivals.find(self.proc, request.get("scope", ()))}
        if what == "quarantine":
            return lambda: kept_list(str(request.get("path")))
        if what == "kmsg":
            return lambda: kmsg(request, self.kmsg)
        return None


class Desk:
    """What the aide's loop holds: its end of the channel, its children, requests that wait."""

    def __init__(self, end: socket.socket, errands: Errands) -> None:
        self.end = end
        self._errands = errands
        self.children: list[Child] = []
        self.waiting = WaitingRequests()
        self.late_thaw = LateThaw()
        self.spares = SpareChildren(self._run)
        self._short_until = 0.0
        """Until then nothing is forked; 0: the node is not short."""

    def take(self, request: dict[str, Any]) -> None:
        """Start a child for it, or answer why not."""
        kind = str(request.get("do"))
        if kind == "say":
            say(request)
        elif kind == "ping":
            self.answer(kind, "", {})
        elif kind == "hold":
            self.answer(kind, "", {"problem": resident_files.hold(os.getppid())})
        elif kind == "frozen":
            self.late_thaw.watch(request)
        elif kind == "short":
            is_short = request.get("is_short") is True
            self._short_until = time.monotonic() + SHORT_MOST_SECONDS if is_short else 0.0
        elif kind in COMPANIONS:
            self._end_others(kind)
        if self.is_short and kind in _LEFT_OUT:
            return
        if kind not in LIMITS or (self._is_full(kind) and self.waiting.put(kind, request)):
            return
        self._begin(kind, request)

    @property
    def is_short(self) -> bool:
        """The guard said so, and that was not long ago."""
        return time.monotonic() < self._short_until

    def tend(self) -> None:
        """Who waits gets a place that became free; where none ever will be, that is answered.  In
        peace spares are forked.
        """
        if not self._short_until:
            self.spares.prepare()
        for kind in WAITS if self.waiting else ():
            while not self._is_full(kind) and (request := self.waiting.take(kind)) is not None:
                self._begin(kind, request)

    def _is_full(self, kind: str) -> bool:
        """All places are taken, and one of them at least will be free again."""
        if self.is_short and kind in WAITS and not self.spares.has(kind):
            return True
        same = self._same(kind)
        return len(same) >= LIMITS[kind][0] and not all(child.is_given_up for child in same)

    def _same(self, kind: str) -> list[Child]:
        return [child for child in self.children if child.kind == kind]

    def _begin(self, kind: str, request: dict[str, Any]) -> None:
        most, same = LIMITS[kind][0], self._same(kind)
        decision = str(request.get("decision", ""))[:64]
        stuck = len([child for child in same if child.is_given_up])
        what = "do not end" if stuck else "still run"
        what += f", {len(self.waiting)} wait" if kind in WAITS and self._is_full(kind) else ""
        words: dict[str, Any] = {"problem": f"{most} of these {what}: not started",
                                 "is_busy": not stuck}  # fmt: skip
        try:
            if len(same) < most:
                self.children.append(self._start(kind, decision, request))
                return
        except OSError as error:
            words = {"problem": f"not started: {error.strerror}"}
        if kind == "kmsg" and not stuck:
            # A serial console may hold us up: better late errands than a decision without a line.
            words = kmsg(request, self._errands.kmsg)
        self.answer(kind, decision, words)

    def _end_others(self, kind: str) -> None:
        """One that is to be replaced may hang: it would keep the tracer or the file, locked."""
        for child in self._same(kind):
            child.end()

    def _start(self, kind: str, decision: str, request: dict[str, Any]) -> Child:
        """OSError: there is no memory for it, or none shall be taken now."""
        if (spare := self.spares.take(kind, request)) is not None:
            return Child(kind, spare.pid, spare.answers, decision)
        if self.is_short and kind in (*SPARED, "kmsg"):
            raise OSError(errno.EAGAIN, "no process is forked while the node is short")
        ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            pid = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        if not pid:
            self._run(kind, request, theirs)
        os.close(theirs)
        if kind in COMPANIONS:
            give_away(self._errands.companion_fds[kind], request)
        return Child(kind, pid, ours, decision)

    def _run(self, kind: str, asked: dict[str, Any] | int, answers: int) -> NoReturn:
        """What the child of one request does; it never returns.  ``asked``: the request, or where
        it is to come from.
        """
        status = 70
        is_spare = isinstance(asked, int)
        kept, request = (asked, {}) if isinstance(asked, int) else (answers, asked)
        try:
            if not is_spare:
                be_gentle(kind)
            if kind == "config" and self._errands.config_fd >= 0:
                watch_way(self._errands.config_fd, str(request.get("path")))
            if kind in process_rights.JOBS:
                process_rights.keep_only(kind)
            if kind not in COMPANIONS:  # they exec; a copy of an end would hide that it was closed
                _close_others(kept, answers)
            if is_spare:
                request = awaited(kept)
                be_gentle(kind)
            self._do(kind, request, answers)
            status = 0
        finally:
            os._exit(status)

    def _do(self, kind: str, request: dict[str, Any], answers: int) -> None:
        if kind in COMMANDS:
            kill_command.oversee(request, answers)
        elif kind == "config":
            become_reader(request, answers)
        elif kind in COMPANIONS:
            become_companion(kind, self._errands.companion_fds[kind], request)
        elif kind == "self_test_child":
            self_test_child.serve(request, answers)
        elif (job := self._errands.does(request)) is not None:
            os.write(answers, _fitting(json.dumps(job()).encode()))

    def answer(self, kind: str, decision: str, words: dict[str, Any]) -> None:
        """To the guard, who may not listen."""
        data = json.dumps({"did": kind, "decision": decision, **words}).encode()
        try:
            self.end.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            return

    def hear(self, child: Child) -> None:
        """What a child has said so far; a self-test child says its pid and stays."""
        try:
            said = os.read(child.answers, _ANSWER_MOST)
        except BlockingIOError:
            return
        child.said = (child.said + said)[:_ANSWER_MOST]
        if child.kind == "self_test_child" and not child.is_heard:
            child.is_heard = True
            nothing = {"pid": 0, "problem": "it ended before it said its pid"}
            self.answer(child.kind, child.decision, parsed(child.said) or nothing)

    def reap(self, now: float) -> None:
        """Children that ended, or that should have.  One that nobody can kill, for it waits for a
        disk, stays and counts: else every try would leave another one, until no task is left.
        """
        for child in list(self.children):
            if now >= child.deadline:
                child.end()
            status = child.ended()
            if status is None:
                if now >= child.deadline + 1.0 and not child.is_given_up:
                    child.is_given_up = True
                    self._tell(child, {"problem": "took too long and does not end"})
                continue
            self.hear(child)
            os.close(child.answers)
            self.children.remove(child)
            if not child.is_given_up:
                self._tell(child, ending(child, status, now))

    def _tell(self, child: Child, words: dict[str, Any]) -> None:
        if child.kind != "self_test_child":
            self.answer(child.kind, child.decision, words)

    def thaw(self, now: float, *, is_gone: bool = False) -> None:
        """What the guard should have thawed by now."""
        for words in self.late_thaw.tend(now, is_gone=is_gone):
            say({"words": words})

    def close(self) -> None:
        """End all children, for the guard is gone, and thaw what it left frozen."""
        self.thaw(float("inf"), is_gone=True)
        for child in self.children:
            child.end()
        self.spares.close()
        if self.waiting:
            log(f"seawall guard's aide: {len(self.waiting)} errands were not begun: it ends")


def _close_others(*kept: int) -> None:
    """Of the aide's descriptors, all but these and the standard ones."""
    low, high = min(kept), max(kept)
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, kill_command.FDS_MOST)


def _fitting(answer: bytes) -> bytes:
    """What a datagram takes; a cut document would say nothing."""
    if len(answer) <= _ANSWER_MOST:
        return answer
    words = f"the answer of {len(answer)} bytes is longer than the {_ANSWER_MOST} that can be told"
    return json.dumps({"problem": words}).encode()


def serve(end: socket.socket, errands: Errands) -> int:
    """Until the guard's end is closed; the exit status."""
    desk = Desk(end, errands)
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    end.setblocking(True)
    failures = 0
    while failures < _FAILURES_MOST:
        try:
            if not one_round(desk, wake):
                break
            failures = 0
        except (OSError, ValueError, LookupError, TypeError) as error:
            failures += 1
            log(f"seawall guard's aide: {error}")
    desk.close()
    return 0 if failures < _FAILURES_MOST else 70


def one_round(desk: Desk, wake: int) -> bool:
    """Wait for something and do it; False: the guard is gone."""
    ready = _wait(desk.end, desk, wake)
    for child in desk.children:
        if child.answers in ready:
            desk.hear(child)
    if desk.end.fileno() in ready:
        try:
            data = desk.end.recv(DATAGRAM_MOST_BYTES)
        except ConnectionResetError:  # it ended with answers not taken; its last requests are next
            return True
        if not data:
            return False
        request = parsed(data)
        if request:
            desk.take(request)
    desk.reap(time.monotonic())
    desk.tend()
    desk.thaw(time.monotonic())
    return True


def _wait(end: socket.socket, desk: Desk, wake: int) -> set[int]:
    """Whoever has something to say; ends of stuck children are looked for now and then."""
    said = [child.answers for child in desk.children if not child.is_heard]
    has_deadline = any(child.deadline < float("inf") for child in desk.children)
    has_deadline = has_deadline or desk.late_thaw.is_waiting or desk.is_short
    seconds = _POLL_SECONDS if has_deadline else None
    ready = set(select.select([end.fileno(), wake, *said], [], [], seconds)[0])
    if wake in ready:
        os.read(wake, 512)
    return ready


def kmsg(request: dict[str, Any], path: str) -> dict[str, Any]:
    """A line for the kernel's log.  Whoever writes there may have to print what others left for
    a serial console, and wait for it: the guard must not.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(fd, str(request.get("record", "")).encode("ascii", "replace"))
        finally:
            os.close(fd)
    except OSError as error:
        return {"problem": f"{path}: {error.strerror}"}
    return {"problem": ""}


def _job_command(request: dict[str, Any]) -> dict[str, Any]:
    from seawall.guard.tell import job_commands  # noqa: PLC0415 - in the child only, for its size

    return job_commands.run(request)


def kept_list(path: str) -> dict[str, Any]:
    """The node's list of pods in quarantine, as the agent left it on the disk."""
    try:
        return {"found": read_object(path, QUARANTINE_MOST_BYTES), "problem": ""}
    except FileNotFoundError:
        return {"problem": ""}
    except OSError as error:
        return {"problem": f"{path} is not read: {error.strerror}"}
    except ValueError as error:
        return {"problem": f"{path} is ignored: {error}"}
