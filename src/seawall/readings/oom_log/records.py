# SPDX-License-Identifier: Apache-2.0
"""Lines of a log that keeps a message among named fields: journald, dmesg's JSON, YAML, JSON.

``journalctl -o verbose`` and ``export`` have a field in a line, as YAML has (``message: ...`` of
``kubectl get events -o yaml``); JSON of any make is read by json_records.py.
"""

import re
from datetime import datetime, timezone
from typing import Final, NamedTuple

from seawall.readings.oom_log.json_records import TIME_KEYS, JsonReader, RecordMessage

_FIELD: Final = re.compile(rb"[ \t]{0,16}([A-Z_][A-Z0-9_]{1,63})=")
# Of fields that hold no message; other words before a ``=`` may be a piece of a broken line.
_OF_JOURNAL: Final = ("_", "SYSLOG_", "PRIORITY", "MESSAGE_ID")
_STARTS: Final = (
    b"{", b"}", b"\x1e", b"[", b"]", b",", b" ", b"\t", b'"', b"_", b"MESSAGE", b"SYSLOG_",
    b"PRIORITY=", b"data: ",
)  # fmt: skip
_YAML: Final = re.compile(
    rb"[ \t]{0,40}(?:- )?(message|log|line|msg|text|textPayload|lastTimestamp|firstTimestamp"
    rb"|creationTimestamp|eventTime|timestamp): +(?=\S)"
)
_YAML_BLOCK: Final = re.compile(rb"[|>][+-]?\d?\s*\Z")
_YAML_TIME_LINES: Final = 40
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")


class LogMessage(NamedTuple):
    """A message, of which nothing is known but what its record says."""

    text: str
    at: str | None
    seconds: float | None
    host: str | None
    is_of_kernel: bool
    """The record says so; else it does not tell."""
    is_line: bool = False
    """It is a whole line of another log, its prefix included."""
    number: int = 0
    """Of the line of the log where it stands."""
    is_quote: bool = False
    """The record says that another program than the kernel said it."""


class RecordReader:
    """Keeps what the lines before said of the record."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self._is_binary = False
        self._json = JsonReader()
        self._yaml_time = ("", 0)
        self.late_time: str | None = None
        """A time of a record in the last line, whose message may stand before it."""

    @property
    def is_waiting(self) -> bool:
        """Whether a message is held back until its record is complete."""
        return self._json.is_waiting

    def restart(self) -> list[LogMessage]:
        """Lines were passed over, another record begins; what was held back."""
        self._fields = {}
        self._is_binary = False
        self.late_time = None
        return [said for found in self._json.flush() for said in _said_in(found)]

    def read(self, raw: bytes, number: int) -> list[LogMessage] | None:
        """The messages in a line; none for a field of another kind; None for no record's line."""
        self.late_time = None
        if not raw:
            self._fields = {}
            return None
        if self._is_binary:  # export: eight bytes of length, then the message
            self._is_binary = False
            if raw[3:8] == bytes(5):
                return self._of_journal(raw[8:].decode("utf-8", "surrogateescape"), number)
        if raw == b"MESSAGE":
            self._is_binary = True
            return []
        if raw.startswith(_STARTS) or self._json.is_inside:
            field = _FIELD.match(raw)
            if field:
                return self._read_field(field[1].decode(), raw[field.end() :], number)
        return self._read_yaml(raw, number) if b": " in raw[:80] else None

    def is_json(self, text: str) -> bool:
        """Whether a line may be JSON, or a part of it."""
        return self._json.accepts(text)

    @property
    def is_inside(self) -> bool:
        """Whether an object of JSON is open."""
        return self._json.is_inside

    def read_json(self, text: str, number: int) -> list[LogMessage]:
        """The messages of a line of JSON whose records are complete."""
        return [said for found in self._json.read(text, number) for said in _said_in(found)]

    def _read_field(self, name: str, raw: bytes, number: int) -> list[LogMessage] | None:
        value = raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        if name == "MESSAGE":
            return self._of_journal(value, number)
        if not name.startswith(_OF_JOURNAL):
            return None
        if name == "__CURSOR":
            self._fields = {}
        if name in ("_TRANSPORT", "_HOSTNAME", "__REALTIME_TIMESTAMP"):
            self._fields[name.lower()] = value
        return []

    def _of_journal(self, text: str, number: int) -> list[LogMessage]:
        return _said_in(RecordMessage(text, number, "message", {"_transport": "", **self._fields}))

    def _read_yaml(self, raw: bytes, number: int) -> list[LogMessage] | None:
        found = _YAML.match(raw)
        if not found:
            return None
        name, value = found[1].decode(), raw[found.end() :].rstrip().decode("utf-8", "replace")
        if name.endswith(("Timestamp", "Time", "timestamp")):
            self.late_time = value.strip("\"'")
            self._yaml_time = (self.late_time, number)
            return [] if _ISO.match(self.late_time) else None
        if _YAML_BLOCK.match(raw, found.end()):
            return []
        quote = value[:1] if value[:1] in ("'", '"') else ""
        if quote:
            value = value[1:].removesuffix(quote)
        if quote == '"':
            value = value.removesuffix("\\").replace("\\n", "\n").replace('\\"', '"')
        at, line = self._yaml_time
        near = at if at and number - line <= _YAML_TIME_LINES else None
        return [
            LogMessage(value, near, None, None, is_of_kernel=False, is_line=True, number=number)
        ]


def _said_in(found: RecordMessage) -> list[LogMessage]:
    """The message of a record with its time; of journald and dmesg as the kernel's own."""
    fields = found.fields
    transport = fields.get("_transport")
    is_journal = transport is not None or "__realtime_timestamp" in fields
    host = fields.get("_hostname") or fields.get("hostname")
    time = fields.get("time", "")
    if found.key == "msg" and _is_seconds(time):  # dmesg --json
        seconds = float(time)
        return [
            LogMessage(
                found.text, f"{seconds:.6f}", seconds, host, is_of_kernel=True, number=found.number
            )
        ]
    at = _time_of(fields)
    if not is_journal or found.key != "message":
        text = found.text.rstrip("\r\n")
        return [
            LogMessage(text, at, None, host, is_of_kernel=False, is_line=True, number=found.number)
        ]
    return [
        LogMessage(
            found.text, at, None, host, is_of_kernel=transport == "kernel", number=found.number,
            is_quote=transport not in (None, "", "kernel"),
        )
    ]  # fmt: skip


def _is_seconds(text: str) -> bool:
    whole, point, rest = text.partition(".")
    return bool(point) and whole.isdigit() and rest.isdigit() and len(text) < 24


def _time_of(fields: dict[str, str]) -> str | None:
    """The time of a record, as it writes it; numbers since 1970 of any unit as ISO in UTC."""
    for name in TIME_KEYS:
        value = fields.get(name)
        if value and value.isascii() and value.isdigit() and 9 < len(value) < 20:
            micro = int((value + "000000")[:16])
            seconds = datetime.fromtimestamp(micro // 10**6, timezone.utc)
            return f"{seconds:%Y-%m-%dT%H:%M:%S}.{micro % 10**6:06}Z"
        if value and re.search(r"\d\d:\d\d", value):
            return value
    return None
