# SPDX-License-Identifier: Apache-2.0
"""Values of a known shape to JSON and back: exactly the same, or a ValueError.

The shape is a type: ``float | None``, ``tuple[str, ...]``, a NamedTuple, a class of
``state_schema.py``.  It says what the JSON has to be, so the JSON names no class and can make none.
"""

import math
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from seawall.host.host import JSON
from seawall.replay.state_schema import ADDED, DROPPED, SCRATCH, SLOTS

TEXT_MOST: Final = 16_384
ITEMS_MOST: Final = 20_000
"""In one list or table: more groups than any node has."""
INT_MOST: Final = 1 << 63
_NOT_FINITE: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class TypeCodec(NamedTuple):
    """Both ways of one shape."""

    write: Callable[[Any], JSON]
    """TypeError: the value is not of the shape, which is a bug of ours."""
    read: Callable[[JSON], Any]
    """ValueError: somebody else's JSON."""


@cache
def codec_of(shape: Any) -> TypeCodec:
    """Of a type; TypeError when it cannot be carried."""
    if shape is float:
        return TypeCodec(write_float, read_float)
    if shape in (int, str, bool, NoneType):
        return _plain(shape)
    origin = get_origin(shape)
    if origin is Literal:
        return _word(get_args(shape))
    if origin in (UnionType, Union):
        return _optional(get_args(shape))
    if origin is tuple:
        return _tuple(get_args(shape))
    if origin is list:
        return _list(*get_args(shape))
    if origin is dict:
        return _table(*get_args(shape))
    if shape in SLOTS:
        return _object(shape)
    if isinstance(shape, type) and issubclass(shape, tuple):
        return _named(shape)
    raise TypeError(f"{shape} cannot be carried")


def write_float(value: float) -> JSON:
    """A float for JSON, which has no infinity: that is written as a word."""
    if not isinstance(value, float | int) or isinstance(value, bool):
        raise TypeError(f"expected a number, found {value!r}")
    return value if math.isfinite(value) else str(float(value))


def read_float(value: JSON) -> float:
    """A number, or one of three words for what is none; an integer stays one."""
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) <= INT_MOST:
        return value
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    raise ValueError(f"expected a number, found {short_repr(value)}")


def short_repr(value: object) -> str:
    """The beginning of something hostile."""
    return repr(value)[:60] if isinstance(value, str | int | float | None) else type(value).__name__


def _plain(kind: Any) -> TypeCodec:
    def write(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, found {value!r}")
        return value

    def read(value: JSON) -> Any:
        if type(value) is not kind:
            raise ValueError(f"expected {kind.__name__}, found {short_repr(value)}")
        if isinstance(value, str) and len(value) > TEXT_MOST:
            raise ValueError(f"expected at most {TEXT_MOST} characters, found {len(value)}")
        if isinstance(value, int) and abs(value) > INT_MOST:
            raise ValueError("expected a number of 64 bits, found a larger one")
        return value

    return TypeCodec(write, read)


def _word(words: tuple[str, ...]) -> TypeCodec:
    def read(value: JSON) -> Any:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"expected one of {', '.join(words)}, found {short_repr(value)}")
        return value

    return TypeCodec(codec_of(str).write, read)


def _optional(parts: tuple[Any, ...]) -> TypeCodec:
    others = [part for part in parts if part is not NoneType]
    if len(others) != 1 or len(parts) != 2:
        raise TypeError(f"{parts} cannot be carried")
    inner = codec_of(others[0])
    return TypeCodec(
        lambda value: None if value is None else inner.write(value),
        lambda value: None if value is None else inner.read(value),
    )


def items_of(value: JSON, length: int | None = None) -> list[JSON]:
    """A list of bounded length; ValueError."""
    if not isinstance(value, list) or len(value) > ITEMS_MOST:
        raise ValueError(f"expected a list of at most {ITEMS_MOST}, found {short_repr(value)}")
    if length is not None and len(value) != length:
        raise ValueError(f"expected {length} values, found {len(value)}")
    return value


def _list(inner: Any) -> TypeCodec:
    item = codec_of(inner)
    return TypeCodec(
        lambda values: [item.write(value) for value in values],
        lambda values: [item.read(value) for value in items_of(values)],
    )


def _tuple(parts: tuple[Any, ...]) -> TypeCodec:
    if len(parts) == 2 and parts[1] is Ellipsis:
        many = _list(parts[0])
        return TypeCodec(many.write, lambda values: tuple(many.read(values)))
    inner = [codec_of(part) for part in parts]

    def write(values: Any) -> JSON:
        if len(values) != len(inner):
            raise TypeError(f"expected {len(inner)} values, found {values!r}")
        return [item.write(value) for item, value in zip(inner, values, strict=True)]

    def read(values: JSON) -> tuple[Any, ...]:
        found = items_of(values, len(inner))
        return tuple([item.read(value) for item, value in zip(inner, found, strict=True)])

    return TypeCodec(write, read)


def _table(of_key: Any, of_value: Any) -> TypeCodec:
    """Pairs, so that a key may be a tuple and the order stays."""
    pair = _tuple((of_key, of_value))

    def read(values: JSON) -> dict[Any, Any]:
        return dict(pair.read(value) for value in items_of(values))

    return TypeCodec(lambda table: [pair.write(item) for item in table.items()], read)


def _named(kind: Any) -> TypeCodec:
    """A NamedTuple, as a list in the order of its fields.  Fields at its end that have defaults may
    be missing: an earlier version did not have them.
    """
    hints = get_type_hints(kind)
    inner = _tuple(tuple(hints[name] for name in kind._fields))
    defaults = _defaults_of(kind)

    def write(value: Any) -> JSON:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, found {value!r}")
        return inner.write(value)

    def read(values: JSON) -> Any:
        found = items_of(values)
        missing = len(kind._fields) - len(found)
        if 0 < missing <= len(defaults):
            found = [*found, *defaults[-missing:]]
        return kind(*inner.read(found))

    return TypeCodec(write, read)


def _defaults_of(kind: Any) -> list[JSON]:
    """Of a NamedTuple's last fields, as JSON."""
    hints = get_type_hints(kind)
    names = [name for name in kind._fields if name in kind._field_defaults]
    return [codec_of(hints[name]).write(kind._field_defaults[name]) for name in names]


def _object(kind: Any) -> TypeCodec:
    """An object with slots, as a JSON object with their names."""
    inner = {name: codec_of(shape) for name, shape in SLOTS[kind].items()}
    added, dropped = ADDED.get(kind, {}), DROPPED.get(kind, frozenset())

    def write(value: Any) -> JSON:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, found {value!r}")
        return {name: item.write(getattr(value, name)) for name, item in inner.items()}

    def read(values: JSON) -> Any:
        if isinstance(values, dict):
            values = {**added, **{n: value for n, value in values.items() if n not in dropped}}
        if not isinstance(values, dict) or values.keys() != inner.keys():
            raise ValueError(f"expected {kind.__name__} of this version, found another")
        made = kind.__new__(kind)
        for name, item in inner.items():
            setattr(made, name, item.read(values[name]))
        for name, empty in SCRATCH.get(kind, {}).items():
            setattr(made, name, empty())
        return made

    return TypeCodec(write, read)
