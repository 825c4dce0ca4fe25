# SPDX-License-Identifier: Apache-2.0
"""Messages that lie in JSON of any make: whole, over several lines, cut at either end.

Events of Kubernetes, Cloud Logging (``jsonPayload.MESSAGE``), CloudWatch (``events[].message``),
Loki (``[["ns", "line"], ...]``), rsyslog, Docker, journald, Elasticsearch, Splunk.  No document is
held: its tokens are read as they come, and a message waits only for the end of its record, where
the time may stand.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_DEPTH_MOST: Final = 64
_INNER_MOST: Final = 3
"""JSON in a string of JSON in ..."""
_WAIT_LINES: Final = 40
_MESSAGES_MOST: Final = 10_000
_BYTES_MOST: Final = 64 << 10
_TOKEN: Final = re.compile(
    r'"([^"\\]*(?:\\.[^"\\]*)*)("?)|([{}\[\],])|([^\s"{}\[\]:,]{1,400})', re.DOTALL
)
_COLON: Final = re.compile(r"\s{0,40}:")
_STARTS: Final = re.compile(
    r"\s{0,80}(?:data: {0,4})?[\x1e\s,]{0,80}(?:\{\s{0,80}(?:[\"}]|\Z)|\[\s{0,80}(?:[\"{\[]|\Z))"
)
_PAIR: Final = re.compile(
    r'[\s,{\[]{0,80}"[@$\w.:/-]{1,80}"\s{0,4}:\s{0,12}(?:["\[{\d]|null|true|false)'
)
_CLOSES: Final = re.compile(r"\s{0,80}[\]}][\s\]},]{0,80}\Z")
_INSIDE: Final = re.compile(r'\{\s{0,4}"[@$\w.:/-]{1,80}"\s{0,4}:\s{0,4}["\[{\d]')
_TEXT_KEYS: Final = frozenset(
    {
        "message", "msg", "log", "line", "textpayload", "@message", "text", "content", "_raw", "raw",  # noqa: E501
        "original", "short_message", "full_message", "body", "entry", "note", "output",
    }
)  # fmt: skip
TIME_KEYS: Final = (
    "lasttimestamp", "__realtime_timestamp", "@timestamp", "timestamp", "_time", "time",
    "eventtime", "firsttimestamp", "ts", "timereported", "date", "creationtimestamp",
)  # fmt: skip
"""The first of these that a record has is its time."""
_HOST_KEYS: Final = ("_hostname", "hostname")
_KEPT: Final = frozenset({*TIME_KEYS, *_HOST_KEYS, "_transport"})
_WORDS: Final = (
    "illed process", "ill process", "oom-kill", "ut of memory", "memory: usage", "emory cgroup ",
    "oom_reaper", "Mem-Info", "Tasks state",
)  # fmt: skip
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class RecordMessage(NamedTuple):
    """A message and what its record says of it."""

    text: str
    number: int
    """Of its line in the log."""
    key: str
    """In lower case."""
    fields: dict[str, str]
    """Times, host, transport: those of its own object and of the ones around it."""


@dataclass(slots=True)
class _Level:
    is_object: bool
    key: str = ""
    """Under which it lies in the level above."""
    next_key: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    texts: list[RecordMessage] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    first: str = ""
    """The first string of an array."""


class JsonReader:
    """Takes the lines of a log; knows from those before in which object it is."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._levels = [_Level(is_object=True)]
        self._done: list[RecordMessage] = []
        self._waits_since = 0

    @property
    def is_inside(self) -> bool:
        """Whether an object or array is open, or a message waits for the rest of its record."""
        return len(self._levels) > 1 or self.is_waiting

    @property
    def is_waiting(self) -> bool:
        """Whether a message waits for the rest of its record."""
        return any(level.texts for level in self._levels)

    def accepts(self, text: str) -> bool:
        """Whether a line may be JSON, or a part of it."""
        if _STARTS.match(text) or _PAIR.match(text):
            return True
        if self.is_inside and (_CLOSES.match(text) or text.lstrip()[:1] in ('"', "{")):
            return True
        return '":' in text.replace(" ", "") and _INSIDE.search(text) is not None

    def read(self, text: str, number: int) -> list[RecordMessage]:
        """The messages whose records are complete with this line."""
        start = 0
        if not (_STARTS.match(text) or _PAIR.match(text) or self.is_inside):
            inside = _INSIDE.search(text)
            start = inside.start() if inside else 0
        for token in _TOKEN.finditer(text, start):
            if token[3]:
                self._bracket(token[3])
            elif token[4]:
                self._scalar(token[4])
            elif token[1] is not None:
                self._string(token, text, number)
        if self.is_waiting and number - self._waits_since >= _WAIT_LINES:
            return self.flush()
        done, self._done = self._done, []
        return done

    def flush(self) -> list[RecordMessage]:
        """Every message that waits; another part of the log begins."""
        while len(self._levels) > 1:
            self._close()
        self._give(self._levels[0])
        self._levels = [_Level(is_object=True)]
        done, self._done = self._done, []
        return done

    def _bracket(self, mark: str) -> None:
        here = self._levels[-1]
        if mark == ",":
            here.next_key = ""
        elif mark in "{[":
            if len(self._levels) < _DEPTH_MOST:
                self._levels.append(_Level(mark == "{", here.next_key or here.key))
            here.next_key = ""
        elif len(self._levels) > 1:
            self._close()
        else:  # the end of something whose beginning was not read
            self._give(here)
            self._levels = [_Level(is_object=True)]

    def _close(self) -> None:
        level = self._levels.pop()
        above = self._levels[-1]
        if level.numbers and level.key == "message" and not level.is_object:
            raw = bytes(number for number in level.numbers if number < 256)
            self._note(above, "message", raw.decode("utf-8", "surrogateescape"), 0)
        if not level.is_object and level.first.isdigit():
            level.fields.setdefault("ts", level.first)
        has_time = any(name in level.fields for name in TIME_KEYS)
        if not level.texts:
            if above.is_object and level.is_object and above.texts:
                for name in TIME_KEYS:
                    if name in level.fields:
                        above.fields.setdefault(name, level.fields[name])
            return
        if has_time or not above.is_object:
            self._give(level)
        elif len(above.texts) + len(level.texts) <= _MESSAGES_MOST:
            above.texts += level.texts
            for name, value in level.fields.items():
                above.fields.setdefault(name, value)

    def _give(self, level: _Level) -> None:
        around: dict[str, str] = {}
        for outer in self._levels:
            if outer is not level:
                around |= outer.fields
        for found in level.texts:
            self._done.append(found._replace(fields={**around, **level.fields, **found.fields}))
        level.texts = []

    def _scalar(self, text: str) -> None:
        level = self._levels[-1]
        if level.is_object:
            if level.next_key in _KEPT and text not in ("null", "true", "false"):
                level.fields.setdefault(level.next_key, text)
            level.next_key = ""
        elif text.isascii() and text.isdigit() and len(level.numbers) < _BYTES_MOST:
            level.numbers.append(int(text[:4]))

    def _string(self, token: re.Match[str], text: str, number: int) -> None:
        level, is_whole = self._levels[-1], bool(token[2])
        if level.is_object and is_whole and _COLON.match(text, token.end()):
            level.next_key = token[1][:80].lower()
            return
        key = level.next_key if level.is_object else level.key
        level.next_key = ""
        if level.is_object and key in _KEPT:
            level.fields.setdefault(key, token[1][:80])
            return
        if not level.is_object and not level.first:
            level.first = token[1][:20]
        plain_key = key.rsplit(".", 1)[-1]
        has_word = any(word in token[1] for word in _WORDS)
        if not has_word and not (plain_key in _TEXT_KEYS or level.first.isdigit()):
            return
        said = _unescaped(token[1])
        if has_word and self._depth < _INNER_MOST and said.lstrip()[:2] in ('{"', "[{", '["', "[["):
            inner = JsonReader(self._depth + 1)
            for found in [*inner.read(said, number), *inner.flush()]:
                level.texts.append(found)
                self._waits_since = self._waits_since or number
            return
        self._note(level, plain_key, said, number)

    def _note(self, level: _Level, key: str, text: str, number: int) -> None:
        if not self.is_waiting:
            self._waits_since = number
        words = text.strip()
        for place, other in enumerate(level.texts):
            there = other.text.strip()
            if level.is_object and words and (there.endswith(words) or words.endswith(there)):
                # The same under two names: what comes after the prefixes alone.
                if len(words) < len(there):
                    level.texts[place] = other._replace(text=text, key=key)
                return
            if place > 8:
                break
        if len(level.texts) < _MESSAGES_MOST:
            level.texts.append(RecordMessage(text, number or self._waits_since, key, {}))


def _unescaped(text: str) -> str:
    """The value of a string of JSON, whose end may be cut off."""
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return _ESCAPE.sub(_char, text)


def _char(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return _SHORT.get(found[2], found[2])
