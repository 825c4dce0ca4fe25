# SPDX-License-Identifier: Apache-2.0
"""The part of YAML in which CDI specs are written: what nvidia-ctk and Go's yaml libraries emit.

Block mappings and sequences, plain, single and double quoted scalars on one line, ``[]``, ``{}``
and one-line lists of plain words.  Anchors, tags, block scalars, several documents, folded lines:
ParseProblem, for a spec that is guessed would be worse than one that was not read.

YAML 1.2.2.  Plain scalars stay text: which of them is a number, the reader of the spec knows.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from seawall.problems import ParseProblem

Yaml: TypeAlias = "str | list[Yaml] | dict[str, Yaml] | None"

DEPTH_MOST: Final = 24
_COMMENT: Final = re.compile(r"(?:^| )#.*\Z")
_KEY: Final = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#&*!|>%@`{}\[\],?:-][^\s:#]*):(?P<space>\s+|\Z)"""
)
_DOUBLE: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_SINGLE: Final = re.compile(r"'(?:[^']|'')*'")
_WORD: Final = r"[A-Za-z0-9_./+=:@%-]+"
_LIST: Final = re.compile(rf"\[ *(?:{_WORD}(?: *, *{_WORD})*)? *\]\Z")
# A plain scalar may not begin with these; with a dash, a question mark or a colon only when a
# word follows at once.
_NOT_PLAIN: Final = re.compile(r"[!&*|>%@`{}\[\],\"'#]|[-?:](?:\s|\Z)")
_INSIDE: Final = re.compile(r":(?:\s|\Z)")
_NULLS: Final = frozenset({"~", "null", "Null", "NULL"})


class YamlLine(NamedTuple):
    """One that is neither blank nor a comment."""

    number: int
    indent: int
    text: str


def load(data: bytes) -> Yaml:
    """The one document in it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseProblem(0, "UTF-8", data[:60]) from error
    lines = list(_lines(text))
    if not lines:
        return None
    reader = _Reader(lines)
    value = reader.block(lines[0].indent, 0)
    if reader.here is not None:
        raise _problem(reader.here, "an indentation of before")
    return value


def _lines(text: str) -> Iterator[YamlLine]:
    begun = False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip(" \r")
        body = line.lstrip(" ")
        if not body or body.startswith("#"):
            continue
        if line == "---" and not begun:
            begun = True
            continue
        begun = True
        found = YamlLine(number, len(line) - len(body), body)
        if body[0] == "\t" or line[:3] in ("---", "...") or not body.isprintable():
            raise _problem(found, "a line of one YAML document, without tabs")
        yield found


class _Reader:
    """Recursive descent over lines; each is looked at a bounded number of times."""

    def __init__(self, lines: list[YamlLine]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def here(self) -> YamlLine | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def block(self, indent: int, depth: int) -> Yaml:
        """What begins here, at this indentation."""
        line = self.here
        if line is None or depth > DEPTH_MOST:
            raise ParseProblem(line.number if line else 0, f"at most {DEPTH_MOST} levels")
        if _is_item(line.text):
            return self._sequence(indent, depth)
        if _KEY.match(line.text):
            return self._mapping(indent, depth)
        self._at += 1
        return _scalar(line, line.text)

    def _mapping(self, indent: int, depth: int) -> dict[str, Yaml]:
        found: dict[str, Yaml] = {}
        while (line := self.here) is not None and line.indent == indent:
            match = _KEY.match(line.text)
            if match is None:
                raise _problem(line, "'KEY: VALUE'")
            key = _scalar(line, match["key"])
            if not isinstance(key, str) or key in found:
                raise _problem(line, "each key once")
            self._at += 1
            found[key] = self._value(line, line.text[match.end() :], indent, depth)
        self._must_end(indent)
        return found

    def _value(self, line: YamlLine, text: str, indent: int, depth: int) -> Yaml:
        if text and not text.startswith("#"):
            return _scalar(line, text)
        below = self.here
        if below is not None and below.indent > indent:
            return self.block(below.indent, depth + 1)
        if below is not None and below.indent == indent and _is_item(below.text):
            return self._sequence(indent, depth + 1)
        return None

    def _sequence(self, indent: int, depth: int) -> list[Yaml]:
        found: list[Yaml] = []
        while (line := self.here) is not None and line.indent == indent and _is_item(line.text):
            rest = line.text[1:].lstrip(" ")
            if rest and not rest.startswith("#"):
                inner = indent + len(line.text) - len(rest)
                self._lines[self._at] = YamlLine(line.number, inner, rest)
                found.append(self.block(inner, depth + 1))
                continue
            self._at += 1
            below = self.here
            is_below = below is not None and below.indent > indent
            found.append(self.block(below.indent, depth + 1) if below and is_below else None)
        self._must_end(indent)
        return found

    def _must_end(self, indent: int) -> None:
        """What follows is not deeper: else a scalar went on, or an indentation is wrong."""
        if (line := self.here) is not None and line.indent > indent:
            raise _problem(line, "no deeper indentation than before")


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _scalar(line: YamlLine, text: str) -> Yaml:
    for form in (_DOUBLE, _SINGLE):
        if match := form.match(text):
            if _COMMENT.sub("", text[match.end() :]).strip():
                raise _problem(line, "nothing behind a quoted scalar")
            return _quoted(line, match[0])
    text = _COMMENT.sub("", text).rstrip()
    if _LIST.match(text):
        return [word.strip() for word in text[1:-1].split(",") if word.strip()]
    if text == "{}":
        return {}
    if _NOT_PLAIN.match(text) or _INSIDE.search(text):
        raise _problem(line, "a plain or quoted scalar")
    return None if text in _NULLS else text


def _quoted(line: YamlLine, text: str) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _problem(line, "a quoted scalar with JSON's escapes") from error
    return str(value)


def _problem(line: YamlLine, expected: str) -> ParseProblem:
    return ParseProblem(line.number, expected, line.text.encode("utf-8", "replace"))
