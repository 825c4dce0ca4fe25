# SPDX-License-Identifier: Apache-2.0
"""A tree that another tool collected: files at their own paths, and answers of commands beside.

An adapter (``sos.py``, ``must_gather.py``) says where that tool puts the node's name, the date and
the kernel's log; this host serves them where they are asked for.  A file that is not there was
not collected: nothing follows for the kernel.
"""

import re
import time
import zlib
from calendar import timegm
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from seawall.host.blocking import KERNEL_LOG
from seawall.host.event_log.event_line_filter import hinted_lines, quotes_command
from seawall.host.host import JSON, NOT_IN_REPORT, READ_LIMIT_BYTES, Unread
from seawall.host.live import LiveHost

T = TypeVar("T")

_LOG_MOST_BYTES: Final = 64 << 20
_EVENT_LINES_MOST: Final = 3000
_RELEASE: Final = "/proc/sys/kernel/osrelease"
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
_BOOTED: Final = re.compile(rb"^btime (\d{1,11})$", re.MULTILINE)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:\.\d+)?(?: ?([AP]M))?")
_YEAR: Final = re.compile(r"\b(\d{4})\b")
_DAY_MONTH: Final = re.compile(
    rf"\b(?:({'|'.join(_MONTHS)})\w* +(\d{{1,2}})|(\d{{1,2}}) +({'|'.join(_MONTHS)})\w*)\b"
)
_ISO_DAY: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_IN_UTC: Final = re.compile(r"\b(?:UTC|GMT)\b|[+-]00:?00\b|\dZ\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportReport:
    """What an adapter found; ``None`` and empty where the tool did not collect it."""

    tool: str
    """What it is, in words: "a sos report"."""
    node_name: str | None = None
    release: str | None = None
    machine: str | None = None
    taken_at_unix_seconds: float | None = None
    kernel_logs: tuple[str, ...] = ()
    """Paths in the tree, what the kernel itself held first."""


class ReportHost:
    """The tree with what the adapter knows of it."""

    def __init__(self, tree: LiveHost, report: SupportReport) -> None:
        self._tree = tree
        self.report = report
        self.kernel_logs = report.kernel_logs

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        if path == KERNEL_LOG and self.kernel_logs:
            path = self.kernel_logs[0]
        answer = self._tree.read(path, limit_bytes)
        if path.endswith(".gz") and isinstance(answer, bytes):
            return _unpacked(path, answer, limit_bytes)
        if path == _RELEASE and isinstance(answer, Unread) and self.report.release:
            return self.report.release.encode("utf-8", "surrogateescape") + b"\n"
        return _not_held(answer)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        return map(self.read, paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        return _not_held(self._tree.names(path))

    def link(self, path: str) -> str | Unread:
        return _not_held(self._tree.link(path))

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        now = self.report.taken_at_unix_seconds
        if probe == "now" and now is not None:
            return {"unix_seconds": now, "monotonic_seconds": self._uptime(now) or 0.0}
        if probe == "event_log" and now is not None:
            return self._events(now)
        known = {"node_name": self.report.node_name, "machine": self.report.machine}
        answer = known.get(probe)
        return _not_held(self._tree.ask(probe, argument)) if answer is None else answer

    def _uptime(self, now: float) -> float | None:
        """Since the second of the boot that /proc/stat has."""
        data = self._tree.read("/proc/stat")
        found = _BOOTED.search(data) if isinstance(data, bytes) else None
        return now - int(found[1]) if found and int(found[1]) < now else None

    def _events(self, now: float) -> JSON:
        """As the probe ``event_log`` answers; only a log whose clock is known can be placed."""
        uptime = self._uptime(now)
        sources: list[JSON] = []
        for path in self.kernel_logs:
            data = self.read(path, _LOG_MOST_BYTES)
            if isinstance(data, Unread):
                sources.append([path, [], [data.why, data.detail]])
                continue
            lines = [line for _, line in hinted_lines(data) if not quotes_command(line)]
            told = [line.decode("utf-8", "backslashreplace") for line in lines[-_EVENT_LINES_MOST:]]
            sources.append([path, list(told), None])
        return {"unix_seconds": now, "boot_unix_seconds": now - (uptime or 0), "sources": sources}


def unix_seconds_of(text: str) -> float | None:
    """Of what date(1) printed in UTC, in C's or another English form; None for other zones."""
    clock, year, day = _CLOCK.search(text), _YEAR.search(text), _DAY_MONTH.search(text)
    if clock is None or not _IN_UTC.search(text):
        return None
    hour = int(clock[1]) % 12 + 12 * (clock[4] == "PM") if clock[4] else int(clock[1])
    if iso := _ISO_DAY.search(text):
        date = int(iso[1]), int(iso[2]), int(iso[3])
    elif year and day:
        month = _MONTHS.index((day[1] or day[4])[:3]) + 1
        date = int(year[1]), month, int(day[2] or day[3])
    else:
        return None
    if not (1970 <= date[0] < 10_000 and 1 <= date[1] <= 12 and 1 <= date[2] <= 31):
        return None
    return float(timegm((*date, hour, int(clock[2]), int(clock[3]), 0, 0, 0)))


def date_in(tree: LiveHost, paths: Iterable[str]) -> float | None:
    """Of the first of these that holds a date in UTC; else when the first that is there was
    written, which an archive keeps.
    """
    written: float | None = None
    for path in paths:
        text = line_of(tree, path)
        if text is None:
            continue
        if (told := unix_seconds_of(text)) is not None:
            return told
        written = written or tree.written_seconds(path)
    return written if written is None or written < time.time() + 86_400 else None


def line_of(tree: LiveHost, path: str) -> str | None:
    """The first line that is not empty, of a small file."""
    data = tree.read(path, 64 << 10)
    if isinstance(data, Unread):
        return None
    text = data.decode("utf-8", "surrogateescape").strip()
    return text.splitlines()[0][:256] if text else None


def first_line(tree: LiveHost, paths: Iterable[str]) -> str | None:
    """Of the first of these that has one."""
    return next((line for path in paths if (line := line_of(tree, path))), None)


def files_in(tree: LiveHost, folder: str, pattern: str) -> tuple[str, ...]:
    """Paths of the files in a folder whose whole name matches, sorted."""
    names = tree.names(folder)
    if isinstance(names, Unread):
        return ()
    return tuple(f"{folder}/{name}" for name in names if re.fullmatch(pattern, name))


def _not_held(answer: T | Unread) -> T | Unread:
    if isinstance(answer, Unread) and answer.why in ("absent", "not_captured"):
        return Unread(answer.path, "not_captured", NOT_IN_REPORT)
    return answer


def _unpacked(path: str, data: bytes, limit_bytes: int) -> bytes | Unread:
    unpacker = zlib.decompressobj(31)
    try:
        content = unpacker.decompress(data, limit_bytes)
    except zlib.error as error:
        return Unread(path, "malformed", str(error))
    if unpacker.unconsumed_tail:
        return Unread(path, "too_big", "larger than its reader's limit, unpacked")
    return content
