# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --watch``: stays, traces only while uncounted memory grows, and keeps what
it learned in /run/seawall/claims, where every verb and the next watcher find it.
"""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.watcher.memory_watch_loop import WatchEvent

EVERY_SECONDS: Final = 1.0
EVERY_MOST_SECONDS: Final = 60.0
LOCK: Final = "/run/seawall/watch.lock"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``seawall memory`` that are about watching."""
    parser.add_argument(
        "--watch", action="store_true",
        help="stay and trace while uncounted memory grows; keeps who took it in "
        "/run/seawall/claims (root)",
    )  # fmt: skip
    parser.add_argument(
        "--every", type=_every, metavar="SECONDS",
        help=f"with --watch: look at the counters so often (default {EVERY_SECONDS:g})",
    )  # fmt: skip


def _every(text: str) -> float:
    from argparse import ArgumentTypeError  # noqa: PLC0415 - only then

    from seawall.cli.source_options import seconds_of  # noqa: PLC0415 - cli/memory.py imports us first

    seconds = seconds_of(text)
    if not 0.2 <= seconds <= EVERY_MOST_SECONDS:
        raise ArgumentTypeError(f"expected 0.2 to {EVERY_MOST_SECONDS:g} seconds, not {text!r}")
    return seconds


def complete(arguments: Namespace) -> None:
    """A watcher goes on until it is told to end: nobody watches over it."""
    if not arguments.watch:
        if arguments.every is not None:
            raise UsageProblem("--every says how often --watch looks; give --watch with it")
        return
    if arguments.bundle is not None or arguments.root not in (None, "/"):
        raise UsageProblem("--watch is about this machine, without --from and --root")
    if arguments.timeout is not None:
        raise UsageProblem("--watch has no end, so no --timeout either: end it with Ctrl-C")


def run(arguments: Namespace) -> int:
    """Watch until SIGTERM or SIGINT; the exit status."""
    from seawall.watcher.alarm import Alarm  # noqa: PLC0415 - only for this option
    from seawall.watcher.memory_watch_loop import MemoryWatchLoop  # noqa: PLC0415 - likewise

    lock = _lock()
    tell = _tell_json if arguments.json else _tell_text
    alarm = Alarm()
    loop = MemoryWatchLoop(arguments.every or EVERY_SECONDS, tell, alarm)
    try:
        loop.run()
    finally:
        loop.close()
        lock.close()
    return 0


def _lock() -> "WatchLock":
    """Held as long as its file is open; UsageProblem when another watcher has it."""
    import os  # noqa: PLC0415 - only for this option

    from seawall.replaced_file import make_folder  # noqa: PLC0415

    if os.geteuid() != 0:
        raise UsageProblem("--watch traces the kernel: run it as root, on the host")
    try:
        make_folder(os.path.dirname(LOCK))
        return WatchLock(LOCK)
    except OSError as error:
        raise UsageProblem(f"{LOCK}: {error.strerror}") from error


class WatchLock:
    """One watcher a machine; whoever has it wrote its pid into the file."""

    def __init__(self, path: str) -> None:
        import os  # noqa: PLC0415 - only for this option

        from seawall.proc.file_lock import pid_in, try_lock, write_pid  # noqa: PLC0415

        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        if not try_lock(self._fd):
            pid = pid_in(self._fd)
            os.close(self._fd)
            who = f"pid {pid}" if pid else "another process"
            raise UsageProblem(f"{who} watches already ({path}); there is one a machine")
        write_pid(self._fd)

    def close(self) -> None:
        """Let the next one in."""
        import os  # noqa: PLC0415

        os.close(self._fd)


def _tell_text(told: "WatchEvent") -> None:
    from seawall.views.memory_watch_lines import text_line  # noqa: PLC0415 - one of the two

    sys.stdout.write(text_line(told.event, told.unix_seconds, told.words) + "\n")
    sys.stdout.flush()


def _tell_json(told: "WatchEvent") -> None:
    from seawall.views.document import render  # noqa: PLC0415 - one of the two
    from seawall.watcher.memory_watch_document import WATCH  # noqa: PLC0415 - likewise

    sys.stdout.write(render(WATCH.alone(told), indent=None) + "\n")
    sys.stdout.flush()


if TYPE_CHECKING:
    _: Callable[[WatchEvent], None] = _tell_text
