# SPDX-License-Identifier: Apache-2.0
"""Where the log of ``seawall oom explain`` comes from: a file, stdin, the kernel, the journal."""

import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, Any, Final, cast

from seawall.cli.progress import ProgressLine
from seawall.findings.blindness import NotSeen
from seawall.problems import UsageProblem
from seawall.readings.oom_log.blocks import BLOCK_BYTES
from seawall.readings.oom_log.likeness import is_of_a_log
from seawall.readings.oom_log.tally import LogTally
from seawall.views.terminal import plain

if TYPE_CHECKING:
    from seawall.cli.log_events_beside import LogEvents

_WAIT_SECONDS: Final = 3.0
_LINE_MOST_BYTES: Final = 960 << 10
"""Of a line without end, e.g. JSON of one line, which is cut where a record ends."""
UNFOLDED_MOST_BYTES: Final = 2 << 30
"""What a compressed log may unfold to; the largest real ones have some hundred MiB."""
_GZIP: Final = b"\x1f\x8b"
_OTHERS: Final = {
    b"\xfd7zXZ\x00": ("xz", "xzcat"),
    b"(\xb5/\xfd": ("zstd", "zstdcat"),
    b"BZh": ("bzip2", "bzcat"),
}
_JOURNAL: Final = b"LPKSHHRH"


@dataclass
class Log:
    """A log as it is read, and what can only be said when it is."""

    name: str
    lines_read: int = 0
    unseen: list[NotSeen] = field(default_factory=list)
    events: "LogEvents | None" = None
    """What it tells beside OOM reports, of a FILE."""
    tally: LogTally = field(default_factory=LogTally)
    is_like_a_log: bool = False
    """A line was of a log: with a time, a kernel's words, or a record's fields."""

    def add(self, rows: Iterable[NotSeen]) -> None:
        """Adds what could not be seen, each reason once."""
        self.unseen += [row for row in rows if row not in self.unseen]

    def counted(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, each of whole lines; a log that breaks off ends there, and ``unseen``
        says so.
        """
        progress = ProgressLine("oom explain")
        try:
            for block in blocks:
                progress.tell(f"{self.lines_read:,} lines of {self.name}")
                self.lines_read += block.count(b"\n") + (block[-1:] != b"\n")
                if not self.is_like_a_log:
                    self.is_like_a_log = any(map(is_of_a_log, BytesIO(block)))
                yield block
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            after = f"{why}, after {self.lines_read:,} lines"
            self.unseen.append(NotSeen(f"the rest of {self.name}", after, "a whole log"))
        finally:
            progress.end()

    def close(self, found: int) -> None:
        """The log was read, with that many reports; UsageProblem where it is none."""
        tally = self.tally
        if tally.not_understood and self.events is not None:
            tally.take_back(self.events.understood())
        lines = tally.not_understood + (0 if found else tally.echoes)
        if not found and self.lines_read and not (self.is_like_a_log or self.unseen):
            words = f"nothing like a kernel log in its {self.lines_read:,} lines"
            if lines:
                words += f" ({lines:,} with words of an OOM kill that were not understood)"
            raise UsageProblem(f"{self.name}: {words}; expected dmesg, syslog or journalctl -k")
        if lines:
            where = ", ".join(f"{example.number:,}" for example in tally.examples[:5])
            more = ", ..." if tally.not_understood > 5 else ""
            first = tally.examples[0].text if tally.examples else ""
            quoted = f': "{plain(first[:120])}"' if first else ""
            said = "line holds" if lines == 1 else "lines hold"
            what = f"{lines:,} {said} words of an OOM kill and {'was' if lines == 1 else 'were'}"
            at = f"line {where}{more}{quoted}" if where else "systemd's result 'oom-kill'"
            self.add([NotSeen(f"{what} not understood", at, "the kernel's lines (journalctl -k)")])
        if tally.uncertain:
            least = found - tally.uncertain
            self.add(
                [
                    NotSeen(
                        f"whether it is {least:,} or {found:,} calls of the OOM killer",
                        "lines of a call and of a kill stand apart and may be of one call",
                        "the whole log",
                    )
                ]
            )
        if tally.repeats:
            times = "report stands" if tally.repeats == 1 else "reports stand"
            self.add(
                [NotSeen(f"{tally.repeats:,} {times} in the log twice", "counted once", "nothing")]
            )


def reads_stdin() -> bool:
    """Whether something was put into stdin: a pipe or a file, no terminal and no /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return not stat.S_ISCHR(mode)


def file_log(path: str) -> tuple[Log, Iterator[bytes]]:
    """A file or ``-``, in blocks of whole lines; UsageProblem when it cannot be read as a log."""
    if path == "-":
        _tell_if_waiting()
        log = Log("stdin")
        return log, log.counted(_blocks(cast("BufferedReader", sys.stdin.buffer), "stdin"))
    if os.path.isdir(path):
        raise UsageProblem(f"{path}: a folder; expected a log, or --root {path} for a host's tree")
    try:
        file = _opened(path)
        log = Log(os.path.basename(path) or path)
        return log, log.counted(_blocks(file, path))
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"{path}: {words}; expected a kernel log") from error


def _tell_if_waiting() -> None:
    """A command that waits for input must say so."""
    if sys.stdin.isatty() or not select.select([0], (), (), _WAIT_SECONDS)[0]:
        sys.stderr.write("seawall: waiting for a log on stdin; --live reads this machine's own\n")
        sys.stderr.flush()


def _opened(path: str) -> BufferedReader:
    """A file, or a FIFO that somebody writes to; UsageProblem for what could hang for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode):
            if not select.select([descriptor], (), (), _WAIT_SECONDS)[0]:
                raise UsageProblem(  # noqa: TRY301 - the descriptor is closed below
                    f"{path}: a FIFO to which nobody has written in {_WAIT_SECONDS:g} s; "
                    "expected a log, or a writer that has begun"
                )
        elif not stat.S_ISREG(mode):
            kind = "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "no file"
            hint = "--live reads the kernel's own log" if "kmsg" in path else "'-' reads stdin"
            raise UsageProblem(f"{path}: {kind}; expected a kernel log as a file; {hint}")  # noqa: TRY301 - the descriptor is closed below
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _blocks(file: BufferedReader, path: str) -> Iterator[bytes]:
    """Whole lines together, none much longer than a megabyte; gzip is undone."""
    head = _peek(file)
    if head.startswith(_GZIP):
        import gzip  # noqa: PLC0415 - few logs are

        unfolded = gzip.GzipFile(fileobj=file)
        return _cut(lambda: unfolded.read1(BLOCK_BYTES), path, UNFOLDED_MOST_BYTES)
    if head.startswith(_JOURNAL):
        words = f"a file of the journal; journalctl --file {path} -k | seawall oom explain -"
        raise UsageProblem(f"{path}: {words}")
    for magic, (name, tool) in _OTHERS.items():
        if head.startswith(magic):
            words = f"compressed with {name}; {tool} {path} | seawall oom explain -"
            raise UsageProblem(f"{path}: {words}")
    return _cut(lambda: file.read1(BLOCK_BYTES), path, None)


def _cut(read: Callable[[], bytes], path: str, most: int | None) -> Iterator[bytes]:
    """Blocks of whole lines, also of what came before an error."""
    held, size, total = [b""], 0, 0
    try:
        while piece := read():
            total += len(piece)
            if most is not None and total > most:
                raise UsageProblem(
                    f"{path}: unfolds to more than {most >> 30} GiB; "
                    "expected less: zcat it through grep or tail into 'seawall oom explain -'"
                )
            held.append(piece)
            size += len(piece)
            if size >= BLOCK_BYTES:
                *blocks, rest = _whole_lines(b"".join(held))
                yield from blocks
                held, size = [rest], len(rest)
    except (OSError, EOFError, zlib.error):
        yield from _whole_lines(b"".join(held))[:-1]
        raise
    *blocks, rest = _whole_lines(b"".join(held))
    yield from blocks
    if rest:
        yield rest + b"\n"


def _whole_lines(data: bytes) -> list[bytes]:
    """Whole lines, and last what follows them.  A line without end is cut where a record of JSON
    ends, else anywhere.
    """
    parts = []
    at = 0
    while True:
        end = data.find(b"\n", at)
        if (len(data) if end < 0 else end) - at < _LINE_MOST_BYTES:
            break
        limit = at + _LINE_MOST_BYTES
        cut = max(data.rfind(mark, at + 1, limit) + 2 for mark in (b"},", b"],", b"\\n"))
        cut = cut if cut > at + 2 else limit
        parts.append(data[at:cut] + b"\n")
        at = cut
    end = data.rfind(b"\n", at) + 1 or at
    if end > at:
        parts.append(data[at:end])
    return [*parts, data[end:]]


def _peek(file: BufferedReader) -> bytes:
    peek: Any = getattr(file, "peek", None)
    return bytes(peek(8)[:8]) if peek else b""


def refused(path: str, error: OSError) -> NotSeen:
    """Why the kernel's own log could not be read, and what would provide it."""
    return NotSeen(
        plain(path), error.strerror or str(error),
        "root or CAP_SYSLOG (kernel.dmesg_restrict)" if isinstance(error, PermissionError)
        else "the log as FILE, e.g. /var/log/kern.log",
    )  # fmt: skip
