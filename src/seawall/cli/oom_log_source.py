# SPDX-License-Identifier: Apache-2.0
"""Where the log of ``seawall oom explain`` comes from: a file, stdin, the kernel, the journal."""

import os
import select
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

from seawall.findings.blindness import NotSeen
from seawall.problems import UsageProblem
from seawall.views.terminal import plain

if TYPE_CHECKING:
    from seawall.cli.log_events_beside import LogEvents

_LINE_MOST_BYTES: Final = 1 << 16
_WAIT_SECONDS: Final = 3.0
_GZIP: Final = b"\x1f\x8b"
_OTHERS: Final = {
    b"\xfd7zXZ\x00": ("xz", "xzcat"),
    b"(\xb5/\xfd": ("zstd", "zstdcat"),
    b"BZh": ("bzip2", "bzcat"),
}
_JOURNAL: Final = b"LPKSHHRH"


@dataclass
class Log:
    """Lines as they are read, and what can only be said when they are."""

    name: str
    lines_read: int = 0
    unseen: list[NotSeen] = field(default_factory=list)
    events: "LogEvents | None" = None
    """What it tells beside OOM reports, of a FILE."""

    def add(self, rows: Iterable[NotSeen]) -> None:
        """Each of them once."""
        self.unseen += [row for row in rows if row not in self.unseen]

    def counted(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """The same lines; a log that breaks off ends there, and ``unseen`` says so."""
        try:
            for line in lines:
                self.lines_read += 1
                yield line
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            after = f"{why}, after {self.lines_read:,} lines"
            self.unseen.append(NotSeen(f"the rest of {self.name}", after, "a whole log"))


def reads_stdin() -> bool:
    """Whether something was put into stdin: a pipe or a file, no terminal and no /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return not stat.S_ISCHR(mode)


def file_log(path: str) -> tuple[Log, Iterator[bytes]]:
    """A file or ``-``; UsageProblem when it cannot be read as a log."""
    if path == "-":
        _tell_if_waiting()
        log = Log("stdin")
        return log, log.counted(_lines(sys.stdin.buffer, "stdin"))
    if os.path.isdir(path):
        raise UsageProblem(f"{path}: a folder; expected a log, or --root {path} for a host's tree")
    try:
        file = open(path, "rb")  # noqa: SIM115 - read until the process ends
        log = Log(os.path.basename(path) or path)
        return log, log.counted(_lines(file, path))
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"{path}: {words}; expected a kernel log") from error


def _tell_if_waiting() -> None:
    """A command that waits for input must say so."""
    if sys.stdin.isatty() or not select.select([0], (), (), _WAIT_SECONDS)[0]:
        sys.stderr.write("seawall: waiting for a log on stdin; --live reads this machine's own\n")
        sys.stderr.flush()


def _lines(file: IO[bytes], path: str) -> Iterator[bytes]:
    """Lines of at most 64 KiB; gzip is undone."""
    head = _peek(file)
    if head.startswith(_GZIP):
        import gzip  # noqa: PLC0415 - few logs are

        file = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
    elif head.startswith(_JOURNAL):
        words = f"a file of the journal; journalctl --file {path} -k | seawall oom explain -"
        raise UsageProblem(f"{path}: {words}")
    for magic, (name, tool) in _OTHERS.items():
        if head.startswith(magic):
            words = f"compressed with {name}; {tool} {path} | seawall oom explain -"
            raise UsageProblem(f"{path}: {words}")
    return iter(lambda: file.readline(_LINE_MOST_BYTES), b"")


def _peek(file: IO[bytes]) -> bytes:
    peek: Any = getattr(file, "peek", None)
    return bytes(peek(8)[:8]) if peek else b""


def refused(path: str, error: OSError) -> NotSeen:
    """Why the kernel's own log could not be read, and what would provide it."""
    return NotSeen(
        plain(path), error.strerror or str(error),
        "root or CAP_SYSLOG (kernel.dmesg_restrict)" if isinstance(error, PermissionError)
        else "the log as FILE, e.g. /var/log/kern.log",
    )  # fmt: skip
