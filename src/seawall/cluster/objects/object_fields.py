# SPDX-License-Identifier: Apache-2.0
"""Fields of a JSON object that somebody else may have written: right, or a problem of that object.

Unknown fields are passed over.  ``null`` is as good as absent, as in the API itself.
"""

import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeVar

from seawall.cluster.objects.api_time import time_seconds
from seawall.views.terminal import plain

NAME_LETTERS: Final = 253
"""The longest name that the API takes."""
TEXT_LETTERS: Final = 512
WHOLE_MOST: Final = (1 << 63) - 1
VALUE_LETTERS: Final = 8192
"""Of a value of any kind, as JSON."""
_Member = TypeVar("_Member", bound=Enum)


class ObjectProblem(Exception):
    """An object cannot be used: which field, what was expected, what stands there."""


class ObjectFields:
    """One level of an object."""

    __slots__ = ("_fields", "where")

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise _problem(where, "an object", value)
        self._fields: Mapping[str, Any] = value
        self.where = where

    def fields(self, name: str) -> "ObjectFields | None":
        """The level below; None: absent."""
        value = self._fields.get(name)
        return None if value is None else ObjectFields(value, f"{self.where}.{name}")

    def needed_fields(self, name: str) -> "ObjectFields":
        """The level below, which has to be there."""
        found = self.fields(name)
        if found is None:
            raise _problem(f"{self.where}.{name}", "an object", None)
        return found

    def rows(self, name: str, most: int) -> "list[ObjectFields]":
        """A list of objects, at most so many."""
        where = f"{self.where}.{name}"
        return [
            ObjectFields(value, f"{where}[{number}]")
            for number, value in enumerate(self._list(name, most))
        ]

    def has(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self._fields.get(name) is not None

    def text(self, name: str, letters: int = NAME_LETTERS) -> str:
        """Cut to so many letters, with nothing that steers a terminal; empty: absent."""
        value = self._fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise _problem(f"{self.where}.{name}", "a string", value)
        return clean(value, letters)

    def needed_text(self, name: str, letters: int = NAME_LETTERS) -> str:
        """A string that has to be there."""
        value = self.text(name, letters)
        if not value:
            raise _problem(f"{self.where}.{name}", "a string", self._fields.get(name))
        return value

    def texts(self, name: str, most: int, letters: int = NAME_LETTERS) -> tuple[str, ...]:
        """A list of strings, at most so many."""
        values = self._list(name, most)
        for value in values:
            if not isinstance(value, str):
                raise _problem(f"{self.where}.{name}", "a list of strings", value)
        return tuple(clean(value, letters) for value in values)

    def text_map(self, name: str, most: int) -> dict[str, str]:
        """Strings by name, at most so many."""
        value = self._fields.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or len(value) > most:
            raise _problem(f"{self.where}.{name}", f"at most {most} strings by name", value)
        if not all(isinstance(one, str) for one in value.values()):
            raise _problem(f"{self.where}.{name}", "strings by name", value)
        return {clean(key, NAME_LETTERS): clean(one, NAME_LETTERS) for key, one in value.items()}

    def whole(self, name: str, least: int = 0) -> int | None:
        """A whole number of 63 bits, at least so much; None: absent."""
        value = self._fields.get(name)
        if value is None:
            return None
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not least <= value <= WHOLE_MOST:
            raise _problem(f"{self.where}.{name}", f"a whole number of at least {least}", value)
        return int(value)

    def wholes(self, name: str, most: int) -> tuple[int, ...]:
        """A list of whole numbers of 63 bits, none below 0; absent is empty."""
        found = self._list(name, most)
        for value in found:
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or not 0 <= value <= WHOLE_MOST:
                raise _problem(f"{self.where}.{name}", "whole numbers of at least 0", value)
        return tuple(found)

    def number(self, name: str) -> float | None:
        """A number that is finite; None: absent."""
        value = self._fields.get(name)
        if value is None:
            return None
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or abs(value) > WHOLE_MOST or not math.isfinite(value):
            raise _problem(f"{self.where}.{name}", "a number", value)
        return float(value)

    def number_between(self, name: str, least: float, most: float) -> float | None:
        """A number from ``least`` to ``most``; None: absent."""
        value = self.number(name)
        if value is not None and not least <= value <= most:
            raise _problem(f"{self.where}.{name}", f"{least:g} to {most:g}", value)
        return value

    def value(self, name: str) -> Any:
        """Whatever stands there, at most ``VALUE_LETTERS`` as JSON, as it was sent: steer no
        terminal with it.  None: absent.
        """
        value = self._fields.get(name)
        expected = f"JSON of at most {VALUE_LETTERS} letters"
        try:
            is_short = len(json.dumps(value, allow_nan=False)) <= VALUE_LETTERS
        except (ValueError, TypeError, RecursionError):
            is_short = False
        if not is_short:
            raise _problem(f"{self.where}.{name}", expected, value)
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false; ``default``: absent."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise _problem(f"{self.where}.{name}", "true or false", value)
        return default if value is None else bool(value)

    def seconds(self, name: str) -> float | None:
        """A time as seconds since 1970; None: absent."""
        value = self._fields.get(name)
        if value is None:
            return None
        try:
            return time_seconds(value[:64] if isinstance(value, str) else "")
        except ValueError:
            raise _problem(f"{self.where}.{name}", "a time of RFC 3339", value) from None

    def needed_seconds(self, name: str) -> float:
        """A time that has to be there."""
        value = self.seconds(name)
        if value is None:
            raise _problem(f"{self.where}.{name}", "a time of RFC 3339", None)
        return value

    def word(self, name: str, words: Mapping[str, _Member]) -> _Member | None:
        """One of these words; None: absent."""
        value = self._fields.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or value not in words:
            raise _problem(f"{self.where}.{name}", f"one of {', '.join(words)}", value)
        return words[value]

    def needed_word(self, name: str, words: Mapping[str, _Member]) -> _Member:
        """One of these words, which has to be there."""
        value = self.word(name, words)
        if value is None:
            raise _problem(f"{self.where}.{name}", f"one of {', '.join(words)}", None)
        return value

    def _list(self, name: str, most: int) -> list[Any]:
        value = self._fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most:
            raise _problem(f"{self.where}.{name}", f"a list of at most {most}", value)
        return value


def object_name(document: object, kind: str) -> str:
    """Of an object as the API gives it: its name, which is also how problems speak of it."""
    fields = ObjectFields(document, kind)
    return fields.needed_fields("metadata").needed_text("name")


def clean(text: str, letters: int) -> str:
    """Cut, and with nothing that steers a terminal or cannot be sent as UTF-8."""
    return plain(text[:letters])[:letters]


def words_of(members: Iterable[_Member]) -> dict[str, _Member]:
    """Members of an enumeration by the words of the API: ``oom line`` is ``OomLine``."""
    return {word_of(one): one for one in members}


def word_of(member: Enum) -> str:
    """The word of the API."""
    return "".join(word.capitalize() for word in str(member.value).split())


def without_absent(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A level of JSON without what is None or an empty string."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _problem(where: str, expected: str, value: object) -> ObjectProblem:
    shown = _shown(value)
    return ObjectProblem(f"{where}: expected {expected}, found {shown}")


def _shown(value: object) -> str:
    """Short, whatever it is; the words of a list of a million are not made."""
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, str):
        return repr(clean(value, 60))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > WHOLE_MOST:
        return "a number beyond 64 bits"
    return "nothing" if value is None else repr(value)[:60]
