# SPDX-License-Identifier: Apache-2.0
"""The terminal while ``seawall top`` has it: its settings, its size, its keys, and giving it back.

ANSI by hand (ECMA-48, xterm's private modes): curses would read terminfo files from a disk that
may be stuck, and repaints more than it must.  Whatever ends the verb, ``__exit__`` gives back what
it found; SIGTSTP gives back for as long as the process stands still.
"""

import os
import select
import signal
import termios
import time
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Final

from seawall.problems import UsageProblem
from seawall.views.screen_cells import ScreenLine, changes

# Alternate screen, no cursor, no wrapping at the right edge; and back.
_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE: Final = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_READ_BYTES: Final = 1024
_ESCAPE_SECONDS: Final = 0.05
"""The rest of a key's sequence has come by then, or it was the escape key."""
_WRITE_SECONDS: Final = 10.0
_SIGNALS: Final = (
    signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT,
)  # fmt: skip


class TerminalGone(Exception):
    """Nobody looks any more: the line is down, or the window was closed."""


class TopTerminal:
    """``with TopTerminal() as terminal``: raw keys, the alternate screen."""

    def __init__(self, input_fd: int = 0, output_fd: int = 1) -> None:
        self._in, self._out = input_fd, output_fd
        self._before: list[int | list[bytes | int]] = []
        self._handlers: dict[int, object] = {}
        self._wake: tuple[int, int] = (-1, -1)
        self.lines: list[ScreenLine] = []
        """What stands on it; empty: it is not known."""
        self._is_inside = False
        self.ended_by = 0
        """The signal that asks for the end; 0: none."""
        self.bytes_sent = 0
        """Since the start."""

    def __enter__(self) -> "TopTerminal":  # noqa: PYI034 - typing.Self is of 3.11
        self._before = termios.tcgetattr(self._in)
        self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, self._on_signal)
        self._go_in()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with suppress(TerminalGone):
            self._go_out()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        for fd in self._wake:
            os.close(fd)

    # --- in and out ---------------------------------------------------------------------

    def _go_in(self) -> None:
        try:
            mode = termios.tcgetattr(self._in)
        except termios.error as error:
            raise TerminalGone from error
        # Keys as they come, unseen; ^C and ^Z stay signals, and output is processed as ever.
        mode[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR)
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        with suppress(termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, mode)
        self._is_inside = True
        self.lines = []
        self._write(_ENTER)

    def _go_out(self) -> None:
        if not self._is_inside:
            return
        self._is_inside = False
        try:
            self._write(_LEAVE)
        finally:
            with suppress(termios.error):
                termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._stand_still()
        elif number == signal.SIGCONT:
            if self._is_inside:  # after SIGSTOP, which nobody is told of
                with suppress(TerminalGone):
                    self._go_in()
        elif number != signal.SIGWINCH:
            self.ended_by = number

    def _stand_still(self) -> None:
        """^Z: the shell gets its terminal; from ``fg`` on it is ours again."""
        with suppress(TerminalGone):
            self._go_out()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        os.kill(os.getpid(), signal.SIGTSTP)
        # Here it goes on.
        signal.signal(signal.SIGTSTP, self._on_signal)
        with suppress(TerminalGone, termios.error):
            self._before = termios.tcgetattr(self._in)
            self._go_in()

    # --- what is on it ------------------------------------------------------------------

    def size(self) -> tuple[int, int]:
        """Columns and rows, at least one of each; 80 by 24 where the terminal does not know."""
        try:
            size = os.get_terminal_size(self._out)
        except OSError as error:
            raise TerminalGone from error
        return size.columns or 80, size.lines or 24

    def show(self, lines: list[ScreenLine]) -> None:
        """Send what has changed."""
        text = changes(self.lines, lines)
        self.lines = lines
        if text:
            self._write(text)

    def forget(self) -> None:
        """The next screen is drawn whole."""
        self.lines = []

    def _write(self, text: str) -> None:
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        self.bytes_sent += len(rest)
        until = time.monotonic() + _WRITE_SECONDS
        while rest:
            try:
                rest = rest[os.write(self._out, rest) :]
            except BlockingIOError:  # ssh set it to non-blocking
                if time.monotonic() > until:
                    raise TerminalGone from None
                poll = select.poll()
                poll.register(self._out, select.POLLOUT)
                poll.poll(1000)
            except OSError as error:
                raise TerminalGone from error

    # --- keys ---------------------------------------------------------------------------

    def wait(self, seconds: float, *others: int) -> tuple[bytes, set[int]]:
        """What was typed until ``seconds`` have passed, and which of ``others`` can be read;
        returns at the first of any, and after a signal.
        """
        ready = readable((self._in, self._wake[0], *others), seconds)
        if self._wake[0] in ready:
            with suppress(BlockingIOError):
                os.read(self._wake[0], _READ_BYTES)
        typed = b""
        if self._in in ready:
            typed = self._read()
            if typed.endswith(b"\x1b") and readable((self._in,), _ESCAPE_SECONDS):
                typed += self._read()
        return typed, {fd for fd in ready if fd in others}

    def _read(self) -> bytes:
        try:
            data = os.read(self._in, _READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise TerminalGone from error
        if not data:
            raise TerminalGone
        return data


def readable(fds: Iterable[int], seconds: float) -> set[int]:
    """Not by select(2), which ends at descriptor 1023: each workload has five files open."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}


def check_terminal() -> None:
    """UsageProblem where there is none that a screen can be drawn on."""
    instead = "seawall top --once, or seawall memory --watch, need none"
    if not os.isatty(0) or not os.isatty(1):
        raise UsageProblem(f"top draws on a terminal, and stdin or stdout is none: {instead}")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise UsageProblem(f"top needs a terminal that can move its cursor (TERM): {instead}")


def leave_signals_to_parent() -> None:
    """In a child that was forked from here."""
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
