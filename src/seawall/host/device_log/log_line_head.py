# SPDX-License-Identifier: Apache-2.0
"""The head of a log's line: when, by whom, and where its text begins.

``journalctl -o short-unix``; syslog of RFC 3164 (no year, local time) and of RFC 5424's clock;
the CRI's ``TIME stream F text``; Docker's ``{"log": ..., "time": ...}``.  A clock without a year
gets the one of the file's last change, or the year before where that would be after it.
"""

import json
import re
import time
from typing import Final, NamedTuple

from seawall.formats.iso_time import iso_datetime
from seawall.host.device_log.device_log_events import GO_LOG, KLOG

_DAY_SECONDS: Final = 86400.0
_ISO: Final = rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
_CRI: Final = re.compile(_ISO + rb" (?:stdout|stderr) [FP] ")
_TAG: Final = rb" [^ ]{1,255} ([A-Za-z0-9_./-]{1,80})(?:\[\d{1,10}\])?: ?"
_UNIX: Final = re.compile(rb"(\d{9,11}\.\d{1,9})" + _TAG)
_SYSLOG: Final = re.compile(rb"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)" + _TAG)
_SYSLOG_ISO: Final = re.compile(_ISO + _TAG)
_KERNEL_CLOCK: Final = re.compile(rb"\[ *\d{1,9}\.\d{1,9}\] ")


class LogLineHead(NamedTuple):
    """One line without its head."""

    at: float | None
    """Unix seconds; None: it has no clock that can be read."""
    program: str
    """Syslog's tag; empty where there is none."""
    text: bytes


def service_line(line: bytes, changed: float) -> LogLineHead:
    """Of the journal, of syslog, or of a file that the kubelet writes itself.

    changed: unix seconds of the file's last change.
    """
    if found := _UNIX.match(line):
        return _line(float(found[1]), found[2], line[found.end() :])
    if found := _SYSLOG_ISO.match(line):
        return _line(_iso(found), found[4], line[found.end() :])
    if found := _SYSLOG.match(line):
        at = _without_year(found[1].decode("ascii"), "%b %d %H:%M:%S", changed)
        return _line(at, found[2], line[found.end() :])
    if found := KLOG.match(line):
        return LogLineHead(_klog(found, changed), "", line[found.end() :])
    return LogLineHead(None, "", line)


def _line(at: float | None, program: bytes, text: bytes) -> LogLineHead:
    if head := KLOG.match(text) or _KERNEL_CLOCK.match(text):
        text = text[head.end() :]
    return LogLineHead(at, program.decode("ascii").rpartition("/")[2], text)


def container_line(line: bytes, changed: float) -> LogLineHead:
    """Of /var/log/pods: the CRI's form or Docker's."""
    at: float | None = None
    if found := _CRI.match(line):
        at, text = _iso(found), line[found.end() :]
    else:
        at, text = _docker(line)
    if head := KLOG.match(text):
        at = _klog(head, changed) if at is None else at
        text = text[head.end() :]
    elif head := GO_LOG.match(text):
        text = text[head.end() :]
    return LogLineHead(at, "", text.rstrip())


def _docker(line: bytes) -> tuple[float | None, bytes]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None, line
    if not isinstance(row, dict) or not isinstance(row.get("log"), str):
        return None, line
    found = re.match(_ISO + rb"\Z", str(row.get("time"))[:40].encode("ascii", "replace"))
    return (_iso(found) if found else None), row["log"].encode("utf-8", "replace")


def _iso(found: re.Match[bytes]) -> float | None:
    """Local time where it names no zone."""
    zone = (found[3] or b"").decode("ascii")
    words = f"{found[1].decode('ascii')}.{(found[2] or b'0').decode('ascii')}{zone}"
    try:
        return iso_datetime(words).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _klog(found: re.Match[bytes], changed: float) -> float | None:
    return _without_year(found[1].decode("ascii").partition(".")[0], "%m%d %H:%M:%S", changed)


def _without_year(words: str, form: str, changed: float) -> float | None:
    """The last such moment that is not after the file's last change."""
    try:
        year = time.localtime(changed).tm_year
    except (ValueError, OverflowError, OSError):
        return None
    for one in (year, year - 1):
        try:
            at = time.mktime(time.strptime(f"{one} {words}", f"%Y {form}"))
        except (ValueError, OverflowError):  # 29 February, 31 June, a year beyond time_t
            continue
        if at <= changed + _DAY_SECONDS:
            return at
    return None
