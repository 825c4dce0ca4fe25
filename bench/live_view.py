"""``seawall top`` beside htop, in the same minute: first screen, processor, memory, bytes sent.

``python -m bench.live_view [--seconds 60] [--workloads 250]``.  Both draw 80x24 once a second on a
pseudo-terminal, among cgroups of pods where those may be made.  Seconds of processor, where it
counts: the machines are shared, and what others do there is no property of ours.  Of the first
screen the best of ROUNDS, its seconds and those of processor until then.
"""

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.pods import PODS, SOURCES, real_tree
from tests.processor_speed import processor_stretch

ROUNDS = 5
COLUMNS, LINES = 80, 24
TICKS = os.sysconf("SC_CLK_TCK")
MINUTE_SECONDS = 60.0
FIRST_SECONDS = 60.0
"""For which a first screen is waited for."""
TOP = (sys.executable, "-m", "seawall", "top")
HTOP = ("htop", "-d", "10")
SIGN_OF_NODE, SIGN_OF_ROWS = b"headroom", b"WORKLOAD"
SIGN_OF_HTOP = b"Load average"


class Watched:
    """A program on a terminal of its own."""

    def __init__(self, command: Sequence[str]) -> None:
        self.began = time.monotonic()
        self.sent = 0
        self._text = b""
        environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONPATH": str(SOURCES)}
        self.pid, self._fd = pty.fork()
        if not self.pid:
            size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execvpe(command[0], command, environ)

    def read(self, seconds: float) -> None:
        if select.select((self._fd,), (), (), seconds)[0]:
            data = os.read(self._fd, 1 << 16)
            self.sent += len(data)
            self._text = (self._text + data)[-(1 << 16) :]

    def until(self, sign: bytes) -> dict[str, float]:
        """Seconds until it is on the screen, and of the processor."""
        while sign not in self._text:
            self.read(0.01)
            if time.monotonic() - self.began > FIRST_SECONDS:
                raise RuntimeError(f"{sign!r} never came: {self._text[-200:]!r}")
        return {"seconds": time.monotonic() - self.began, "cpu_seconds": sum(self.cpu())}

    def cpu(self) -> tuple[float, float]:
        """Seconds of its own, and of its children that have ended."""
        own = int(Path(f"/proc/{self.pid}/schedstat").read_bytes().split()[0]) / 1e9
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return own, (int(words[13]) + int(words[14])) / TICKS

    def peak_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


def first_screens() -> dict[str, dict[str, float]]:
    """The best of ROUNDS, each number by itself, the programs in turn."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for command, signs in (
            (TOP, (("top: the node", SIGN_OF_NODE), ("top: its workloads", SIGN_OF_ROWS))),
            (HTOP, (("htop", SIGN_OF_HTOP),)),
        ):
            if not shutil.which(command[0]):
                continue
            watched = Watched(command)
            try:
                for name, sign in signs:
                    told = watched.until(sign)
                    known = best.setdefault(name, told)
                    best[name] = {key: min(known[key], value) for key, value in told.items()}
            finally:
                watched.end()
    return best


def minutes(seconds: float) -> dict[str, dict[str, float]]:
    """Both at the same time, from their first screen on."""
    commands = {"top": TOP, "htop": HTOP}
    running = {
        name: Watched(words) for name, words in commands.items() if shutil.which(words[0])
    }  # fmt: skip
    try:
        running["top"].until(SIGN_OF_ROWS)
        if "htop" in running:
            running["htop"].until(SIGN_OF_HTOP)
        before = {name: (one.cpu(), one.sent) for name, one in running.items()}
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            for one in running.values():
                one.read(0.05)
        took = time.monotonic() - began
        return {name: _rates(one, *before[name], took) for name, one in running.items()}
    finally:
        for one in running.values():
            one.end()


def _rates(one: Watched, cpu: tuple[float, float], sent: int, took: float) -> dict[str, float]:
    own, child = (now - then for now, then in zip(one.cpu(), cpu, strict=True))
    return {
        "own_percent": 100 * own / took, "child_percent": 100 * child / took,
        "percent": 100 * (own + child) / took, "peak_bytes": one.peak_bytes(),
        "bytes_a_second": (one.sent - sent) / took,
    }  # fmt: skip


def measure(seconds: float = MINUTE_SECONDS, workloads: int = PODS) -> dict[str, Any]:
    """All of it; ``workloads`` 0 where no cgroups may be made."""
    with real_tree(workloads) as tree:
        return {
            "workloads": workloads if tree else 0, "stretch": processor_stretch(),
            "first_screen": first_screens(), "first_minute": minutes(seconds),
            "load": os.getloadavg()[0],
        }  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.live_view")
    parser.add_argument("--seconds", type=float, default=MINUTE_SECONDS)
    parser.add_argument("--workloads", type=int, default=PODS)
    arguments = parser.parse_args(argv)
    print(json.dumps(measure(arguments.seconds, arguments.workloads), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
