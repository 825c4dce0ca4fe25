# SPDX-License-Identifier: Apache-2.0
"""The policy state as JSON, for the recorder: a replay can begin with any tick.

In the shape that ``replay/policy_state_codec.py`` reads.  That one checks every type; the guard's
process has no room for tables of them.  The names of the slots stand in black boxes on disks: they
stay as they are.
"""

import math
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii

from seawall.guard.judge.judge import Judge

_SCRATCH = ("_wanted", "rest")
"""Filled anew before it is read."""


def state_pieces(judge: Judge) -> Iterator[str]:
    """JSON of what the judge remembers between two ticks, in small pieces: the whole would be large
    for a moment.
    """
    return _pieces(judge)


def _pieces(value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        before = "["
        for pair in value.items():
            yield before + _text(pair)
            before = ","
        yield "]"
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        yield from _listed("[", [("", one) for one in value], "]")
    elif hasattr(type(value), "__slots__") and not isinstance(value, tuple):
        pairs = [(f"{_text(name)}:", getattr(value, name)) for name in _slots(value)]
        yield from _listed("{", pairs, "}")
    else:
        yield _text(value)


def _listed(opening: str, pairs: list[tuple[str, object]], closing: str) -> Iterator[str]:
    yield opening
    for place, (name, value) in enumerate(pairs):
        yield f",{name}" if place else name
        yield from _pieces(value)
    yield closing


def _slots(value: object) -> list[str]:
    return [name for name in type(value).__slots__ if name not in _SCRATCH]  # type: ignore[attr-defined] # the judge's classes all have them


def _text(value: object) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{','.join([_text(one) for one in value])}]"
    if isinstance(value, dict):
        return f"[{','.join([_text(pair) for pair in value.items()])}]"
    pairs = [f"{_text(name)}:{_text(getattr(value, name))}" for name in _slots(value)]
    return f"{{{','.join(pairs)}}}"
