# SPDX-License-Identifier: Apache-2.0
"""Files that Seawall itself wrote as JSON, read back: whoever may write there may have lied."""

import json
from collections.abc import Mapping
from typing import Any, Final

from seawall.host.host import JSON
from seawall.problems import ParseProblem

WORD_MOST: Final = 4096
NUMBER_MOST: Final = 1 << 60


def document(data: bytes, schema: str) -> dict[str, Any]:
    """The object of that schema.  ParseProblem: it is none."""
    try:
        found = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON", data) from error
    if not isinstance(found, dict) or found.get("schema") != schema:
        raise ParseProblem(0, f"an object of schema {schema}", data)
    return found


def word(found: Mapping[str, JSON], key: str) -> str:
    """Text of bounded length, or ParseProblem."""
    value = found.get(key)
    if not isinstance(value, str) or len(value) > WORD_MOST:
        raise ParseProblem(0, f"words for {key}")
    return value


def number(found: Mapping[str, JSON], key: str, least: int = 0) -> int | float:
    """From ``least`` to 60 bits, or ParseProblem."""
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseProblem(0, f"a number for {key}")
    if not least <= value <= NUMBER_MOST:  # nan compares false
        raise ParseProblem(0, f"a number of at most 60 bits for {key}")
    return value


def _refuse(name: str) -> JSON:
    raise ValueError(f"{name} is no number")
