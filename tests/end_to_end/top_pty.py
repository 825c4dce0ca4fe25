# SPDX-License-Identifier: Apache-2.0
"""``seawall top`` on a terminal of the test's own, and the screen that it has drawn there.

The screen knows the sequences that top sends, and no others: an unknown one fails the test.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
_SEQUENCE = re.compile(r"\x1b\[(\?[0-9]+[hl]|[0-9;]*[A-Za-z])")


class DrawnScreen:
    """Cells; what the alternate screen holds."""

    def __init__(self, columns: int, rows: int) -> None:
        self.resize(columns, rows)
        self.modes: set[str] = set()
        self.at = (0, 0)
        self.beside = ""
        """What was written outside of the alternate screen."""

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = _SEQUENCE.match(text, at)
                assert match, f"unknown sequence {text[at : at + 12]!r}"
                self._obey(match[1])
                at = match.end()
                continue
            self._write(text[at])
            at += 1

    def _obey(self, sequence: str) -> None:
        if sequence.startswith("?"):
            (self.modes.add if sequence[-1] == "h" else self.modes.discard)(sequence[1:-1])
        elif sequence.endswith("H"):
            row, column = map(int, sequence[:-1].split(";"))
            assert 1 <= row <= self.rows
            assert 1 <= column <= self.columns
            self.at = row - 1, column - 1
        elif sequence == "2J":
            self.resize(self.columns, self.rows)
        elif sequence == "K":
            row, column = self.at
            self.cells[row][column:] = [" "] * (self.columns - column)
        else:
            assert sequence.endswith("m"), sequence

    def _write(self, char: str) -> None:
        if "1049" not in self.modes:
            self.beside += char
            return
        assert char.isprintable(), f"{char!r} on the screen"
        row, column = self.at
        assert column < self.columns, f"line {row + 1} is too long"
        self.cells[row][column] = char
        self.at = row, column + 1

    @property
    def lines(self) -> list[str]:
        return ["".join(line).rstrip() for line in self.cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class TopRun:
    """The verb, its terminal and what stands there."""

    def __init__(
        self, *words: str, columns: int = 80, rows: int = 24, program: str = "",
        **environment: str,
    ) -> None:  # fmt: skip
        """``program``: Python that stands for the verb."""
        self.screen = DrawnScreen(columns, rows)
        self.sent = 0
        """Bytes that came from it."""
        self.raw = b""
        self.status: int | None = None
        environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONPATH": str(SOURCE)}
        environ |= environment
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            command = [sys.executable, "-m", "seawall", "top", *words]
            if program:
                command = [sys.executable, "-c", program]
            os.execve(sys.executable, command, environ)
        self.before = termios.tcgetattr(self.fd)

    def __enter__(self) -> "TopRun":  # noqa: PYI034 - typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.status is None:
            os.waitpid(self.pid, 0)
        with suppress(OSError):
            os.close(self.fd)

    def read(self, seconds: float = 0.0) -> bool:
        """What came within that time; False: the terminal is closed."""
        if not select.select((self.fd,), (), (), seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            return False
        self.sent += len(data)
        self.raw += data
        self.screen.feed(data.decode())
        return bool(data)

    def wait_for(self, what: "str | Callable[[], bool]", seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        is_there = (lambda: what in self.screen.text) if isinstance(what, str) else what
        while not is_there():
            assert time.monotonic() < until, f"{what} never came:\n{self.screen.text}"
            assert self.read(0.1), f"ended before {what}:\n{self.screen.beside}"

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self.fd, key.encode())

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def mode(self) -> list[object]:
        return termios.tcgetattr(self.fd)

    def end(self, seconds: float = 10.0) -> int:
        """Wait for its end; its status."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.0) and select.select((self.fd,), (), (), 0)[0]:
                    pass
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        raise AssertionError(f"it goes on:\n{self.screen.text}")
