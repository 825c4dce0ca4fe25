# SPDX-License-Identifier: Apache-2.0
"""YAML as CDI specs are written in it: PyYAML's parser, and what a hostile file may not do.

PyYAML tells what stands where; values are made of that here, so that no tag makes an object, no
alias makes a small file large, and plain scalars stay text: which of them is a number, the reader
of the spec knows.  A scalar that goes over several lines is refused as well, for a file that was
cut or damaged joins lines, and a spec that is guessed would be worse than one that was not read.
"""

from typing import Any, Final, NoReturn, TypeAlias

from seawall._vendor.yaml import events as yaml
from seawall._vendor.yaml.error import YAMLError
from seawall._vendor.yaml.parser import Parser
from seawall._vendor.yaml.reader import Reader
from seawall._vendor.yaml.scanner import Scanner
from seawall.problems import ParseProblem

Yaml: TypeAlias = "str | list[Yaml] | dict[str, Yaml] | None"

BYTES_MOST: Final = 256 << 10
"""The worst of that many takes 3 s on a busy node; the spec of 16 GPUs in 7 parts has 80 KiB."""
DEPTH_MOST: Final = 24
_PROBLEM_MOST: Final = 100
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


def load(data: bytes) -> Yaml:
    """The one document in it."""
    if len(data) > BYTES_MOST:
        raise ParseProblem(0, f"at most {BYTES_MOST} bytes of YAML", data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseProblem(0, "UTF-8", data) from error
    try:
        return _Document(text).value()
    except (YAMLError, ValueError, OverflowError) as error:  # the latter: \U0011ffff, %YAML 1e4300
        raise _problem_of(error, text) from error


class _Events(Reader, Scanner, Parser):
    """PyYAML's events, one after the other, without what it makes of them."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


class _Document:
    """What the events of one text are worth; recursive as deep as is allowed."""

    def __init__(self, text: str) -> None:
        self._events: Any = _Events(text)
        self._lines = text.split("\n")

    def value(self) -> Yaml:
        """None for an empty text."""
        self._events.get_event()  # the stream's beginning
        if isinstance(self._events.peek_event(), yaml.StreamEndEvent):
            return None
        self._events.get_event()  # the document's
        value = self._node(self._events.get_event(), 0)
        self._events.get_event()
        if not isinstance(end := self._events.get_event(), yaml.StreamEndEvent):
            self._refuse(end, "one YAML document")
        return value

    def _node(self, event: Any, depth: int) -> Yaml:
        if isinstance(event, yaml.AliasEvent) or event.anchor or event.tag:
            self._refuse(event, "YAML without anchors, aliases and tags")
        if depth > DEPTH_MOST:
            self._refuse(event, f"at most {DEPTH_MOST} levels")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Yaml] = []
            while not isinstance(item := self._events.get_event(), yaml.SequenceEndEvent):
                items.append(self._node(item, depth + 1))
            return items
        rows: dict[str, Yaml] = {}
        while not isinstance(start := self._events.get_event(), yaml.MappingEndEvent):
            key = self._node(start, depth + 1)
            if not isinstance(key, str) or key in rows:
                self._refuse(start, "each key once, and words for it")
            rows[key] = self._node(self._events.get_event(), depth + 1)
        return rows

    def _scalar(self, event: Any) -> str | None:
        if event.start_mark.line != event.end_mark.line:
            self._refuse(event, "each scalar on one line")
        value: str = event.value
        return None if event.style is None and value in _NULLS else value

    def _refuse(self, event: Any, expected: str) -> NoReturn:
        line = event.start_mark.line
        raise ParseProblem(line + 1, expected, self._lines[line].encode("utf-8", "replace"))


def _problem_of(error: Exception, text: str) -> ParseProblem:
    """PyYAML's own words, at its line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    words = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    at = mark.index if mark else getattr(error, "position", 0)
    line = text.count("\n", 0, at)
    found = text.split("\n")[line].encode("utf-8", "replace")
    return ParseProblem(line + 1, f"YAML ({words[:_PROBLEM_MOST]})", found)
