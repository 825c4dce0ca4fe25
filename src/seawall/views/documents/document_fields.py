# SPDX-License-Identifier: Apache-2.0
"""How a page becomes a JSON document: field by field, as its dataclasses have them.

A class that no table names stands in a document with all its fields, by their names.  A table
says otherwise: ``"pid frame=tick workload=task.workload.name"`` is three fields, the second under
another name, the third from further in.  Rooms below the views know nothing of documents, so all
exceptions stand in the tables of this folder, and in none else.

``tests/generate_schemas.py`` makes the schema from the same tables, the types of the dataclasses
and the docstrings of their fields; nothing of that is needed here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from types import MethodType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.reading import Unlimited
from seawall.version import VERSION
from seawall.views.document import taken_at

T = TypeVar("T")

Source: TypeAlias = str | Callable[[Any], Any]
"""Names of attributes with dots between, or a function of the object."""
Turn: TypeAlias = Callable[[Any], Any]
Named: TypeAlias = "str | Callable[[Any], Any] | Mapping[str, Source]"
Missing: TypeAlias = Literal["null", "unread", "absent"]
"""What becomes of None: null; absent and named in ``unread``; absent."""


class DocumentField(NamedTuple):
    """One field of an object."""

    name: str
    """Outside; empty: the fields of the value stand in the object itself."""
    source: Source
    missing: Missing = "null"
    turn: Turn | None = None
    """What is done to a value that is known."""
    part: type | None = None
    """With an empty name: whose fields are missing when the value is."""


Shape: TypeAlias = tuple[DocumentField, ...]
Shapes: TypeAlias = Mapping[type, Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document and its schema."""

    name: str
    """``seawall.NAME/1``, ``schemas/NAME.json``."""
    also: str = ""
    """Another name under which it stands."""
    verb: str
    """What prints it."""
    about: str
    """The description of the schema."""
    pages: tuple[type, ...]
    """The page; several where options of the verb give other fields."""
    shapes: Shapes
    window: str | None = None
    """What lies within ``window_seconds``; None: one moment was looked at."""

    is_of_host: bool = True
    """It begins with what ``head`` gives; else with schema and tool_version alone."""

    def alone(self, page: Any) -> dict[str, Any]:
        """The document of a page that is of no host."""
        top = {"schema": f"seawall.{self.name}/1", "tool_version": VERSION}
        return {**top, **object_of(page, self.shapes)}

    def of(self, head: Mapping[str, Any], page: Any) -> dict[str, Any]:
        """``head``, then the fields of ``page``; one ``unread`` for both."""
        return joined(head, object_of(page, self.shapes))


def joined(head: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both as one object: ``more`` wins, but for ``unread``, which is added."""
    unread = [*head.get("unread", ()), *more.get("unread", ())]
    return {**head, **more, "unread": unread}


# --- what a table is made of ------------------------------------------------------------


def shown(
    *names: Named, of: str = "", unit: str = "", turn: Turn | None = None, missing: Missing = "null"
) -> Shape:
    """Fields that are always there: ``"NAME NAME=PATH NAME:TURN"``, functions of the object, each a
    field of its name, or functions by name.  None is null.  A path may lead over methods, and
    begins at ``of``; TURN is one of TURNS or a number of digits behind the point; ``turn`` is done
    to all.  With a ``unit`` names outside have it at their end.
    """
    made: list[DocumentField] = []
    for one in names:
        if not isinstance(one, str):
            functions = one if isinstance(one, Mapping) else {one.__name__: one}
            made += [DocumentField(name, what, missing, turn) for name, what in functions.items()]
            continue
        for word in one.split():
            field, _, short = word.partition(":")
            name, _, path = field.partition("=")
            made.append(
                DocumentField(
                    f"{name}_{unit}" if unit else name,
                    f"{of}.{path or name}" if of else path or name,
                    missing,
                    (rounded(int(short)) if short.isdigit() else TURNS[short]) if short else turn,
                )
            )
    return tuple(made)


def unread(*names: Named, of: str = "", unit: str = "", turn: Turn | None = None) -> Shape:
    """Fields that are absent and named in the object's ``unread`` where they are None or Unread.
    An object that has such fields has an ``unread`` behind the last of them.
    """
    return shown(*names, of=of, unit=unit, turn=turn, missing="unread")


def known(*names: Named, of: str = "", unit: str = "", turn: Turn | None = None) -> Shape:
    """Fields that are absent where they are None."""
    return shown(*names, of=of, unit=unit, turn=turn, missing="absent")


def spread(source: Source, part: type | None = None) -> Shape:
    """The fields of a value, in the object itself.  With ``part``, its class, it may be None or
    Unread: then all these fields are in ``unread``.
    """
    return (DocumentField("", source, "null" if part is None else "unread", None, part),)


@dataclass(frozen=True, slots=True)
class Columns:
    """Turns tuples into objects whose fields have these names."""

    names: tuple[str, ...]

    def __call__(self, rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return [dict(zip(self.names, row, strict=True)) for row in rows]


def columns(names: str) -> Columns:
    """``"name bytes"``: for each pair an object with these two."""
    return Columns(tuple(names.split()))


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value as it is, of which the schema says that it is one of these words."""

    words: tuple[str, ...]

    def __call__(self, value: T) -> T:
        return value


def one_of(words: str) -> OneOf:
    """``"R D"``: for text whose type does not say which words there are."""
    return OneOf(tuple(words.split()))


def rounded(digits: int) -> Turn:
    """To so many digits behind the point."""
    return partial(round, ndigits=digits)


def text(value: str) -> str:
    """The value as it is; the schema names none of its words, for there may be more."""
    return value


def filled(value: T) -> T | None:
    """None for what is empty or zero."""
    return value or None


def values(value: Mapping[str, T]) -> list[T]:
    """Those of a mapping, without their names."""
    return list(value.values())


TURNS: Final[Mapping[str, Turn]] = {
    "time": taken_at, "text": text, "filled": filled, "count": len, "values": values,
}  # fmt: skip
RECENT_EVENT: Final = shown(
    "kind:text first_at=first_at_unix_seconds:time last_at=last_at_unix_seconds:time when sentence "
    "details count workload more source"
)
"""Of what logs tell, in ``why`` and ``oom explain``."""
UNREAD_ROW: Final = shown("path why:text detail")
"""Of an Unread that is listed."""
_EVERYWHERE: Final[Shapes] = {NotSeen: (*shown("what why provide"), *known("kind:filled"))}
"""A row of ``could_not_see``."""


# --- what is done with it ----------------------------------------------------------------


def shape_of(kind: type, shapes: Shapes) -> Shape | None:
    """How objects of that class stand in a document; None where it is no class of fields."""
    return shapes.get(kind) or _EVERYWHERE.get(kind) or _own_shape(kind)


@cache
def _own_shape(kind: type) -> Shape | None:
    """All fields of a class that no table names: a document has thousands of rows of one class."""
    if is_dataclass(kind):
        return tuple(DocumentField(field.name, field.name) for field in fields(kind))
    return tuple(DocumentField(name, name) for name in getattr(kind, "_fields", ())) or None


def object_of(value: Any, shapes: Shapes) -> Any:
    """``value`` as JSON has it."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Unlimited):
        return None
    if isinstance(value, Mapping):
        return {key: object_of(inner, shapes) for key, inner in value.items()}
    shape = shape_of(kind, shapes)
    if shape is not None:
        return _fields_of(value, shape, shapes)
    if isinstance(value, list | tuple | Iterator):
        return [object_of(inner, shapes) for inner in value]
    raise TypeError(f"{kind.__name__} has no place in a document")


_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def _fields_of(value: Any, shape: Shape, shapes: Shapes) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    missing: list[str] = []
    for field in shape:
        found = _found(value, field)
        is_missing = found is None or isinstance(found, Unread)
        if is_missing and field.missing == "unread":
            missing += [field.name] if field.part is None else names_of(field.part, shapes)
        elif isinstance(found, Unread):
            raise TypeError(f"{type(value).__name__}.{field.name} can be unread")
        elif not field.name:
            inner = object_of(found, shapes)
            if "unread" in inner:
                shown.pop("unread", None)
                missing += inner["unread"]
                inner["unread"] = missing
            shown |= inner
        elif not is_missing or field.missing == "null":
            shown[field.name] = object_of(found, shapes)
        if field.missing == "unread":
            shown.pop("unread", None)  # it stands behind the last of them
            shown["unread"] = missing
    return shown


def _found(value: Any, field: DocumentField) -> Any:
    if callable(field.source):
        found = field.source(value)
    else:
        found = value
        for name in field.source.split("."):
            found = getattr(found, name)
            if isinstance(found, MethodType):
                found = found()
            if found is None or isinstance(found, Unread):
                return found
    return found if field.turn is None or found is None else field.turn(found)


def names_of(kind: type, shapes: Shapes) -> list[str]:
    """Of the fields that are missing when the whole object is."""
    return [
        name
        for field in shape_of(kind, shapes) or ()
        if field.missing != "absent"
        for name in (names_of(field.part, shapes) if field.part else [field.name])
    ]
