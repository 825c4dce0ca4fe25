# SPDX-License-Identifier: Apache-2.0
"""A verb in a process of its own, so that the terminal comes back whatever it hangs on.

The worker stops asking when its time is over and says what it did not reach.  If one read
itself never returns (state D cannot be interrupted), the parent says which one, and leaves
the worker behind.
"""

import mmap
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

from seawall.host import own_code
from seawall.problems import OutputProblem

GRACE_SECONDS: Final = 2.0
SLOW_FACTOR: Final = 2.0
HUNG_SECONDS: Final = 10.0
"""One question open for so long has no answer; on a thrashing node 2 s are ordinary."""
INTERIM_SECONDS: Final = 10.0
"""Nobody waits longer for the first thing that is certain."""
SILENT_SECONDS: Final = 2.0
"""A worker that has said nothing for so long is at work, and whoever waits is told so."""
_LOOK_SECONDS: Final = 0.25
_INTERIM_BYTES: Final = 1 << 14
_LENGTH: Final = struct.Struct("=I")
_SLOT_BYTES: Final = 512
_SINCE: Final = struct.Struct("=d")


class Slot:
    """A few shared bytes: the question that the worker is asking right now, and since when."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOT_BYTES)

    def write(self, question: str) -> None:
        raw = question.encode("utf-8", "backslashreplace")[: _SLOT_BYTES - _SINCE.size - 1]
        _SINCE.pack_into(self._memory, 0, time.monotonic())
        self._memory[_SINCE.size : _SINCE.size + len(raw) + 1] = raw + b"\0"

    def clear(self) -> None:
        self._memory[_SINCE.size] = 0

    def read(self) -> str:
        """The open question; empty when there is none."""
        raw = self._memory[_SINCE.size :].split(b"\0", 1)[0]
        return raw.decode("utf-8", "replace")

    def age_seconds(self) -> float:
        """How long the question has been open; 0 without one."""
        since: float = _SINCE.unpack_from(self._memory)[0]
        return time.monotonic() - since if self.read() else 0.0


class Interim:
    """A screen of shared bytes: what the worker could already say, kept current by it.

    A worker that waits for a disk cannot speak; whoever watches it can.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _INTERIM_BYTES)

    def write(self, text: str) -> None:
        raw = text.encode("utf-8", "backslashreplace")[: _INTERIM_BYTES - _LENGTH.size]
        _LENGTH.pack_into(self._memory, 0, 0)  # half a text is none
        self._memory[_LENGTH.size : _LENGTH.size + len(raw)] = raw
        _LENGTH.pack_into(self._memory, 0, len(raw))

    def read(self) -> str:
        """Empty when nothing was written, or just now."""
        (length,) = _LENGTH.unpack_from(self._memory)
        return self._memory[_LENGTH.size : _LENGTH.size + length].decode("utf-8", "replace")


class WaitingLine(Protocol):
    """A line that is written over, on the terminal of whoever waits."""

    def tell(self, text: str) -> None:
        """Write ``text`` over what stood there."""

    def end(self) -> None:
        """Erase what stands there."""


def run_watched(
    work: Callable[[], int], timeout_seconds: float, hung: Callable[[bool], int], slot: Slot,
    interim: Interim | None = None, waiting: WaitingLine | None = None,
) -> int:  # fmt: skip
    """The exit status of ``work``, or of ``hung(has_spoken)`` when it was left behind.

    Where the worker said nothing for INTERIM_SECONDS, what stands in ``interim`` is printed;
    from SILENT_SECONDS on ``waiting`` tells what it asks.

    The worker writes into pipes and this process passes it on: a worker that cannot die must
    not hold the terminal, or the ssh connection, open.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    out, err = os.pipe(), os.pipe()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    pid = 0
    try:
        pid = os.fork()
        if not pid:
            os.dup2(out[1], 1)
            os.dup2(err[1], 2)
            for fd in (*out, *err):
                os.close(fd)
            work_and_exit(work)
        os.close(out[1])
        os.close(err[1])
        relay = _Relay({out[0]: 1, err[0]: 2}, slot, waiting)
        is_over = _wait(relay, timeout_seconds, slot, interim)
    except BaseException:
        if pid:
            os.kill(pid, signal.SIGKILL)  # nobody reads what it would still say
        raise
    if waiting is not None:
        waiting.end()
    if not is_over:
        os.kill(pid, signal.SIGKILL)
        return hung(relay.has_spoken)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


def _leave(number: int, _frame: object) -> None:
    """Somebody ends this process: the worker must not go on alone."""
    sys.exit(128 + number)


class _Relay:
    """Copies what the worker writes until it has closed both of its ends."""

    def __init__(self, pairs: dict[int, int], slot: Slot, waiting: WaitingLine | None) -> None:
        self._pairs, self._slot, self._waiting = pairs, slot, waiting
        self.has_spoken = False
        """Whether anything of the answer is on stdout already."""
        self.line_seconds = 0.0
        """How long whoever reads us took: a slow line is not a slow worker."""
        self._is_interim_told = False
        self._began = self._heard = time.monotonic()
        self._poll = select.poll()
        for fd in pairs:
            self._poll.register(fd, select.POLLIN)

    def pass_on(self, seconds: float) -> bool:
        """For so long; True when the worker is done."""
        until = time.monotonic() + seconds - self.line_seconds
        while self._pairs and (left := until + self.line_seconds - time.monotonic()) > 0:
            if self._waiting is not None:
                left = min(left, 2 * _LOOK_SECONDS)
                self._tell_waiting(self._waiting)
            for fd, _ in self._poll.poll(left * 1000):
                data = os.read(fd, 1 << 16)
                self._end_waiting()
                if data:
                    if self._is_interim_told and self._pairs[fd] == 1 and not self.has_spoken:
                        seconds = time.monotonic() - self._began
                        _write_all(1, f"The whole, after {seconds:.0f} s:\n".encode())
                    self.line_seconds += _write_all(self._pairs[fd], data)
                    self.has_spoken |= self._pairs[fd] == 1
                else:
                    self._poll.unregister(fd)
                    os.close(fd)
                    del self._pairs[fd]
        return not self._pairs

    def _tell_waiting(self, line: WaitingLine) -> None:
        now = time.monotonic()
        if now - self._heard >= SILENT_SECONDS:
            question = self._slot.read()
            line.tell(f"{now - self._began:.0f} s{question and ', at '}{question}")

    def _end_waiting(self) -> None:
        self._heard = time.monotonic()
        if self._waiting is not None:
            self._waiting.end()

    def tell_interim(self, text: str, seconds: float) -> None:
        """What is certain so far, where the worker has said nothing yet."""
        if text and not self.has_spoken:
            self._is_interim_told = True
            self._end_waiting()
            raw = f"So far, after {seconds:.0f} s:\n{text}\n".encode("utf-8", "backslashreplace")
            self.line_seconds += _write_all(1, raw)


def _write_all(fd: int, data: bytes) -> float:
    """Seconds that it took; but those of this process's own page faults, on a thrashing node."""
    rest = memoryview(data)
    waited = 0.0
    while rest:
        if not select.select((), (fd,), (), 0)[1]:
            began = time.monotonic()
            select.select((), (fd,), ())
            waited += time.monotonic() - began
        try:
            # No more than a pipe takes whole once it is writable: a longer write would wait.
            rest = rest[os.write(fd, rest[: select.PIPE_BUF]) :]
        except BlockingIOError:
            continue  # a terminal that ssh set to non-blocking
        except BrokenPipeError:
            raise
        except OSError as error:
            name = "stdout" if fd == 1 else "stderr"
            raise OutputProblem(f"{name}: {error.strerror}; send it elsewhere") from error
    return waited


def _wait(
    relay: _Relay, timeout_seconds: float, slot: Slot, interim: Interim | None = None
) -> bool:
    """True when the worker ended; False when one question held it past the timeout.

    A worker that is slow without a question open is not hung: on a thrashing node it waits
    for its own code.  It gets ``SLOW_FACTOR`` times the timeout.
    """
    first_seconds = timeout_seconds + GRACE_SECONDS
    if interim is not None:
        if relay.pass_on(min(INTERIM_SECONDS, first_seconds)):
            return True
        relay.tell_interim(interim.read(), min(INTERIM_SECONDS, first_seconds))
        first_seconds -= min(INTERIM_SECONDS, first_seconds)
    if relay.pass_on(first_seconds):
        return True
    hung_seconds = min(HUNG_SECONDS, timeout_seconds)
    until = time.monotonic() + (SLOW_FACTOR - 1) * timeout_seconds - relay.line_seconds
    while time.monotonic() < until + relay.line_seconds:
        if slot.age_seconds() >= hung_seconds:
            return False
        if relay.pass_on(_LOOK_SECONDS):
            return True
    return False


def work_and_exit(work: Callable[[], int]) -> None:
    """The worker's life; it must never return into the parent's code."""
    status = 70
    own_code.keep()  # a fork has none of its parent's locks
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        status = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 141  # whoever read our output left, as with any tool before `| head`
    except BaseException:  # noqa: BLE001 - the border of the process: a bug keeps its traceback
        import traceback  # noqa: PLC0415 - only then

        traceback.print_exc()
        sys.stderr.write("this is a bug in seawall; please report it with the lines above\n")
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(status)
