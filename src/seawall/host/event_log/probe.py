# SPDX-License-Identifier: Apache-2.0
"""The probe ``event_log``: lines of the last seconds that tell of kills, hangs, evictions.

Its argument is how many seconds back.  Read are: /dev/kmsg; the journal, newest line first, by a
child of its own with a deadline; where there is no journal the ends of the log files; the guard's
own decisions.  Only lines of the known kinds are handed out (``kept_lines.py``), so a bundle may
hold them.

Answer::

    {"unix_seconds": now, "boot_unix_seconds": when the kernel's clock was zero,
     "sources": [[name, [line, ...], null or [reason, words]], ...]}
"""

import errno
import json
import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from seawall.host.event_log.event_line_filter import (
    BEGINS_BOOT,
    LINE_MOST_BYTES,
    hinted_lines,
    is_kept,
    quotes_command,
)
from seawall.host.expendable import unread_for
from seawall.host.host import JSON
from seawall.host.kmsg import PATH, next_record

Open = Callable[[str, int], int]
PROBE: Final = "event_log"
SINCE_MOST_SECONDS: Final = 7 * 86_400.0
_LINES_MOST: Final = 3000
"""Of one source, the newest."""
_KMSG_SECONDS: Final = 0.5
_JOURNAL_SECONDS: Final = 1.3
_TAIL_BYTES: Final = 1 << 20
FILES: Final = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
DECISIONS: Final = "/run/seawall/decisions.jsonl"
OLDER_DECISIONS: Final = "/run/seawall/decisions.1.jsonl"
"""The guard makes the two change names when one is full."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_MICROSECONDS: Final = re.compile(rb"\d{1,5},\d{1,20},(\d{1,20}),")
# Of short-unix: time, host and program, and nothing of what was said.
_HEAD: Final = re.compile(rb"\d{9,11}\.\d{3,9} [^\s:]{1,255} [^\s:\[]{1,80}")
_OF_DECISION: Final = re.compile(rb'"kind":"(?:verdict|outcome|told)"')
_RANKING: Final = b',"ranking_left_out":'
"""Comes last, and is nearly all of a long line; inside of a string its quotes are escaped."""
_KEPT_OF_DECISION: Final = ("kind", "decision", "at", "mode", "refused", "is_report", "sentence")
_ORDERS_MOST: Final = 8


def event_log(argument: str, open_: Open | None = None) -> JSON:
    """open_: opens below another root than ``/``, where no journal can be asked."""
    try:
        since = min(max(0.0, float(argument)), SINCE_MOST_SECONDS)
    except ValueError:
        raise OSError(errno.EINVAL, "expected seconds") from None
    now = time.time()
    boot = now - time.monotonic()
    reader = open_ or os.open
    sources: list[list[JSON]] = [_source(PATH, lambda: _kmsg(now - since - boot, reader))]
    journal: list[JSON] | None = None
    if open_ is None:
        journal = _source("journal", lambda: _journal(now - since))
        sources.append(journal)
    if journal is None or (journal[2] is not None and not journal[1]):
        files = [_source(path, lambda path=path: _tail(path, reader)) for path in FILES]  # type: ignore[misc]
        files = [one for one in files if not _is_absent(one)]
        if journal is not None and _is_absent(journal) and any(one[2] is None for one in files):
            sources.remove(journal)  # what it would tell stands in these
        sources += files
    decisions = _source("guard", lambda: _decisions(reader))
    if decisions[1]:
        sources.append(decisions)
    rows: list[JSON] = list(sources)
    return {"unix_seconds": now, "boot_unix_seconds": boot, "sources": rows}


def _is_absent(source: list[JSON]) -> bool:
    problem = source[2]
    return isinstance(problem, list) and problem[0] == "absent"


class _Read:
    """What was read before it ended, and why it ended."""

    def __init__(self) -> None:
        self.lines: deque[bytes] = deque(maxlen=_LINES_MOST)
        self.error: OSError | None = None


def _source(name: str, read: Callable[[], _Read]) -> list[JSON]:
    """A row of the answer; what cannot be opened has no lines and a reason."""
    try:
        found = read()
    except OSError as error:
        found = _Read()
        found.error = error
    problem: JSON = None
    if found.error is not None:
        unread = unread_for(name, found.error.errno or errno.EIO)
        why = "no_answer" if isinstance(found.error, TimeoutError) else unread.why
        problem = [why, found.error.strerror or unread.detail]
    lines: list[JSON] = [
        line.rstrip(b"\r\n").decode("utf-8", "backslashreplace") for line in found.lines
    ]
    return [name, lines, problem]


def _kmsg(since_boot_seconds: float, open_: Open) -> _Read:
    """OSError where it may not be read, or is a file in a tree: of no kernel that runs."""
    found = _Read()
    until = time.monotonic() + _KMSG_SECONDS
    fd = open_(PATH, _FLAGS)
    try:
        if not stat.S_ISCHR(os.fstat(fd).st_mode):
            raise FileNotFoundError(errno.ENOENT, "a tree of files holds no kernel's own log")
        while (record := next_record(fd)) is not None:
            if time.monotonic() > until:
                found.error = TimeoutError(errno.ETIMEDOUT, "it was not read to its end in time")
                break
            line = record.partition(b"\n")[0]
            head = _MICROSECONDS.match(line)
            if head and int(head[1]) / 1e6 >= since_boot_seconds and is_kept(line):
                found.lines.append(line[:LINE_MOST_BYTES])
    finally:
        os.close(fd)
    return found


def _journal(since_unix_seconds: float) -> _Read:
    """From its end; beside the first line of a boot the head of the line before it."""
    from seawall.host.kernel_messages import journal_lines  # noqa: PLC0415 - as above

    command = (
        "journalctl", "--no-pager", "-o", "short-unix", "-r",
        "--since", f"@{int(since_unix_seconds)}",
    )  # fmt: skip
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    found = _Read()
    count = 0
    is_before_boot = False
    try:
        for line in journal_lines(_JOURNAL_SECONDS, command, environment):
            count += not line.startswith(b"-- ")
            if is_kept(line):
                found.lines.appendleft(line[:LINE_MOST_BYTES])
            elif is_before_boot and (head := _HEAD.match(line)):
                found.lines.appendleft(head[0] + b": (not kept)")
            is_before_boot = BEGINS_BOOT.search(line, 0, LINE_MOST_BYTES) is not None
            if len(found.lines) >= _LINES_MOST:
                break
    except TimeoutError:
        words = f"no answer in {_JOURNAL_SECONDS:g} s"
        found.error = TimeoutError(
            errno.ETIMEDOUT, f"only its end was read: {words}" if count else words
        )
    except OSError as error:
        found.error = error
    if not count and found.error is None:
        found.error = _why_empty()
    return found


def _why_empty() -> OSError:
    """A machine that runs writes lines all the time: none of them is no journal, or not for us."""
    if os.geteuid():
        words = "only root and the groups adm and systemd-journal may read it"
        return PermissionError(errno.EACCES, words)
    words = "it is empty for this span"
    return FileNotFoundError(errno.ENOENT, words)


def _tail(path: str, open_: Open) -> _Read:
    """The end of a file; OSError, EIO for what is no regular file."""
    found = _Read()
    data = _end_of(path, open_)
    kept = -1  # where the line begins that was kept last
    for start, line in hinted_lines(data):
        before = data.rfind(b"\n", 0, max(start - 1, 0)) + 1
        if kept < before < start and BEGINS_BOOT.search(line):
            found.lines.append(data[before : min(start - 1, before + 40)] + b" (not kept)")
        if not quotes_command(line):
            found.lines.append(line)
            kept = start
    return found


def _end_of(path: str, open_: Open) -> bytes:
    fd = open_(path, _FLAGS)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EIO, "not a regular file")
        return os.pread(fd, _TAIL_BYTES, max(0, status.st_size - _TAIL_BYTES))
    finally:
        os.close(fd)


def _decisions(open_: Open) -> _Read:
    """What the guard decided and what came of it, without the ranking of everybody it looked at."""
    found = _Read()
    try:
        older = _end_of(OLDER_DECISIONS, open_)
    except FileNotFoundError:
        older = b""
    for line in b"\n".join((older, _end_of(DECISIONS, open_))).split(b"\n"):
        if _OF_DECISION.search(line) is None:
            continue
        cut = line.find(_RANKING)
        try:
            told = json.loads(line if cut < 0 else line[:cut] + b"}")
        except (ValueError, RecursionError):
            continue  # the first one may be cut
        if isinstance(told, dict):
            kept = {key: told[key] for key in _KEPT_OF_DECISION if key in told}
            if isinstance(orders := told.get("orders"), list):
                kept["orders"] = [_order(order) for order in orders[:_ORDERS_MOST]]
            line = json.dumps(kept).encode()
            if len(line) <= LINE_MOST_BYTES:
                found.lines.append(line)
    return found


def _order(order: object) -> dict[str, object]:
    """What is to be done, and to whom."""
    return {k: order[k] for k in ("step", "name") if k in order} if isinstance(order, dict) else {}
