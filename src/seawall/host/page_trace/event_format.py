# SPDX-License-Identifier: Apache-2.0
"""``events/*/*/format``: where the fields of an event lie, and what its flags are worth.

Kernel document: trace/events.rst.  Offsets, widths and the values of gfp flags differ between
kernels (``0x400000u`` in 6.1, shifts in 6.18), so both are read, never assumed.
"""

import re
from dataclasses import dataclass
from typing import Final

from seawall.problems import ParseProblem

_FIELD: Final = re.compile(
    r"\tfield: ?(?P<what>[^;]{1,200});\toffset:(?P<offset>\d{1,6});"
    r"\tsize:(?P<size>\d{1,6});(?:\tsigned:(?P<signed>[01]);)?"
)
_ID: Final = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE)
_CONSTANT: Final = re.compile(r"\b(0x[0-9a-fA-F]{1,16}|[1-9]\d{0,19})(?:UL|ul|u|U)?\b")
_SHIFT: Final = re.compile(r"\(*1(?:UL|ul|u|U)?\)*\s*<<\s*\(*(\d{1,2})\)*")
_CASTS: Final = re.compile(r"\(\s*(?:unsigned long|gfp_t|unsigned int)\s*\)")
_TEXT_MOST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class EventField:
    """``size`` bytes from the start of the record; ``is_located``: it holds where a text lies."""

    offset: int
    size: int
    is_signed: bool
    is_located: bool


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One event: ``number`` is its common_type in the ring buffer."""

    number: int
    fields: dict[str, EventField]
    print_format: str

    def field(self, name: str) -> EventField:
        """ParseProblem when this kernel's event has no such field."""
        if name not in self.fields:
            raise ParseProblem(0, f"a field {name}")
        return self.fields[name]


def parse(data: bytes) -> EventFormat:
    """The text of a ``format`` file."""
    text = data[:_TEXT_MOST].decode("utf-8", "replace")
    number = _ID.search(text)
    if not number:
        raise ParseProblem(0, "an ID", data)
    return EventFormat(int(number[1]), fields_of(text), text.partition("print fmt:")[2])


def fields_of(text: str) -> dict[str, EventField]:
    """The fields of a ``format`` file, or of ``events/header_page``."""
    fields = {}
    for match in _FIELD.finditer(text):
        kind, _, name = match["what"].rpartition(" ")
        fields[name.partition("[")[0]] = EventField(
            offset=int(match["offset"]),
            size=int(match["size"]),
            is_signed=match["signed"] == "1",
            is_located="__data_loc" in kind,
        )
    return fields


def flag_value(print_format: str, name: str) -> int | None:
    """What ``{expression, "name"}`` in a print format is worth; None where it is not listed.

    Only a plain constant or a plain shift is believed, not an expression of several.
    """
    at = print_format.find(f'"{name}"')
    if at < 0:
        return None
    expression = print_format[print_format.rfind("{", 0, at) + 1 : at]
    bare = _CASTS.sub("", expression)
    if shifts := _SHIFT.findall(bare):
        return 1 << int(shifts[0]) if len(shifts) == 1 and "|" not in bare else None
    constants = _CONSTANT.findall(bare)
    return int(constants[0], 0) if len(constants) == 1 else None
