# SPDX-License-Identifier: Apache-2.0
"""Lines of a log that keeps a message among named fields: journald, dmesg's JSON, Docker.

``journalctl -o json``, ``json-sse``, ``json-seq`` and arrays of such records have a record in a
line; ``json-pretty``, ``verbose``, ``export`` and ``dmesg --json`` have a field in a line.
"""

import json
import re
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

_RECORD_MOST: Final = 1 << 20
_RECORD: Final = re.compile(rb"[\x1e\[, \t]{0,8}(?:data: {0,4})?(?=\{\s{0,4}\")")
_FIELD: Final = re.compile(
    rb"[ \t]{0,16}(?:([A-Z_][A-Z0-9_]{1,63})=|\"([A-Za-z_]\w{1,63})\"\s{0,4}:\s{1,12}(?=\S))"
)
# Of fields that hold no message; other words before a ``=`` may be a piece of a broken line.
_OF_JOURNAL: Final = ("_", "SYSLOG_", "PRIORITY", "MESSAGE_ID")
_STARTS: Final = (
    b"{", b"}", b"\x1e", b"[{", b"[ {", b",", b" ", b"\t", b'"', b"_", b"MESSAGE", b"SYSLOG_",
    b"PRIORITY=", b"data: ",
)  # fmt: skip
_ENDS_RECORD: Final = frozenset({b"{", b"}", b"},{", b"},"})


class Said(NamedTuple):
    """A message, of which nothing is known but what its record says."""

    text: str
    at: str | None
    seconds: float | None
    host: str | None
    is_of_kernel: bool
    """The record says so; else it does not tell."""
    is_line: bool = False
    """It is a whole line of another log, its prefix included."""


class RecordReader:
    """Keeps what the lines before said of the record."""

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}
        self._is_binary = False

    def restart(self) -> None:
        """Lines were passed over: another record begins."""
        self._said = {}
        self._is_binary = False

    def read(self, raw: bytes) -> list[Said] | None:
        """The messages in a line; none for a field of another kind; None for no record's line."""
        if not raw.startswith(_STARTS) and not self._is_binary:
            if not raw:
                self.restart()
            return None
        if self._is_binary:  # export: eight bytes of length, then the message
            self._is_binary = False
            if raw[3:8] == bytes(5):
                return self._message(raw[8:].decode("utf-8", "surrogateescape"))
        line = raw.strip()
        if line in _ENDS_RECORD:
            self.restart()
            return []
        if line == b"MESSAGE":
            self._is_binary = True
            return []
        record = _RECORD.match(raw)
        if record:
            return _read_record(raw[record.end() : record.end() + _RECORD_MOST])
        return self._read_field(raw)

    def _read_field(self, raw: bytes) -> list[Said] | None:
        field = _FIELD.match(raw)
        if not field:
            return None
        value: Any = raw[field.end() :].rstrip(b"\r\n")
        if field[1]:
            name, value = field[1].decode(), value.decode("utf-8", "surrogateescape")
            if name != "MESSAGE" and not name.startswith(_OF_JOURNAL):
                return None
        else:
            name = field[2].decode()
            try:
                value = json.loads(value.rstrip(b", \t"))
            except (ValueError, RecursionError):
                return []
        if name == "__CURSOR":
            self.restart()
        if name in ("MESSAGE", "msg"):
            text = _text_of(value)
            return self._message(text) if text is not None else []
        if name in ("_TRANSPORT", "_HOSTNAME", "__REALTIME_TIMESTAMP", "time"):
            self._said[name] = value
        return []

    def _message(self, text: str) -> list[Said]:
        return _said(text, self._said)


def _read_record(raw: bytes) -> list[Said]:
    try:
        record = json.loads(raw.rstrip(b",] \t\r\n"))
    except (ValueError, RecursionError):
        return []
    if not isinstance(record, dict):
        return []
    line = record.get("log")
    if isinstance(line, str) and "MESSAGE" not in record:
        return [Said(line.rstrip("\r\n"), None, None, None, is_of_kernel=False, is_line=True)]
    text = _text_of(record.get("MESSAGE"))
    return _said(text, record) if text is not None else []


def _said(text: str, record: dict[str, Any]) -> list[Said]:
    transport, host = record.get("_TRANSPORT"), record.get("_HOSTNAME")
    if transport not in (None, "kernel"):
        return []
    seconds = record.get("time")
    at = _time_of(record.get("__REALTIME_TIMESTAMP"))
    if isinstance(seconds, float) and 0 <= seconds < 1e12:
        at = at or f"{seconds:.6f}"
    else:
        seconds = None
    is_of_kernel = transport is not None or seconds is not None
    return [Said(text, at, seconds, host if isinstance(host, str) else None, is_of_kernel)]


def _text_of(value: object) -> str | None:
    """A message is bytes where it is no clean text."""
    if isinstance(value, list):
        if not all(isinstance(byte, int) and 0 <= byte <= 255 for byte in value):
            return None
        return bytes(value).decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None


def _time_of(micro: object) -> str | None:
    if not isinstance(micro, str) or not micro.isascii() or not micro.isdigit() or len(micro) > 17:
        return None
    seconds = datetime.fromtimestamp(int(micro) // 10**6, timezone.utc)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{int(micro) % 10**6:06}Z"
