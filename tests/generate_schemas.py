"""JSON schemas from the tables in ``seawall/views/documents``: names and presence from a table,
types from the dataclasses, descriptions from the docstrings of their fields.

``python -m tests.generate_docs`` writes them.
"""

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import seawall
from seawall.host.host import Unread
from seawall.readings.reading import Unlimited
from seawall.views.document import taken_at
from seawall.views.documents.document_fields import (
    Columns,
    Document,
    DocumentField,
    OneOf,
    Shapes,
    filled,
    shape_of,
    text,
    values,
)

PACKAGE = Path(seawall.__file__).parent
TEXT = {"type": "string"}
TIME = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
    "description": "RFC 3339, UTC",
}
UNREAD = {
    "type": "array",
    "items": TEXT,
    "description": "fields of this object that could not be read",
}
NULL = {"type": "null"}
SIMPLE: dict[Any, dict[str, str]] = {
    Any: {},
    str: TEXT,
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): NULL,
    Unlimited: NULL,
}
SIGNED = frozenset({
    "kubelet_gap_bytes", "base_bytes", "base_residual_bytes", "default",
    "headroom_bytes", "node_bytes", "pace_bytes_per_second", "residual_bytes",
    "growth_bytes_per_second", "value", "points", "order",
    "EndedWorkload.seconds", "earlier_seconds",
    "oom_score_adj",
    "score_log10", "threshold_log10",
    "difference_bytes", "ledger_bytes", "grows_bytes", "distance_bytes", "residual_growth_bytes",
})  # fmt: skip
"""Numbers that may be below zero: outside names, or those of one class."""
ROW = "Row"
ABOVE_ONE = frozenset({"largest_difference_fraction"})
SHARES = ("share", "fraction")


def all_documents() -> Iterator[Document]:
    """Those that have a table."""
    for path in sorted(PACKAGE.rglob("*_document*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for value in vars(import_module(module)).values():
            if isinstance(value, Document):
                yield value


def schema_of(document: Document) -> dict[str, Any]:
    """The whole schema of one document."""
    shapes = document.shapes
    pages = [object_schema(page, shapes) for page in document.pages]
    always = set.intersection(*(set(page["required"]) for page in pages))
    properties = head_properties(document)
    for page in pages:
        for name, inner in page["properties"].items():
            properties.setdefault(name, inner)  # the first page that has it
    first = ("schema", "tool_version")
    if document.is_of_host:
        first += ("unread", "window_seconds", "host")
        properties["unread"] = UNREAD
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"seawall.{document.name}/1",
        "title": document.verb,
        "description": document.about,
        "type": "object",
        "required": [*first, *(name for name in properties if name in always - set(first))],
        "properties": properties,
    }


def head_properties(document: Document) -> dict[str, Any]:
    """What ``seawall.views.document.head`` gives."""
    name = document.name
    if not document.is_of_host:
        return {"schema": {"const": f"seawall.{name}/1"}, "tool_version": TEXT}
    host = {
        "node": TEXT,
        "boot_id": TEXT,
        "kernel": {**TEXT, "description": "its release"},
        "page_size": {"type": "integer", "description": "bytes"},
        "unread": UNREAD,
    }
    if document.window is None:
        window = {"type": "null", "description": "null: one moment was looked at"}
    else:
        kinds = ["number", "null"] if "null" in document.window else "number"
        window = {"type": kinds, "minimum": 0, "description": document.window}
    return {
        "schema": {"enum": [f"seawall.{name}/1", f"seawall.{also}/1"]}
        if (also := document.also)
        else {"const": f"seawall.{name}/1"},
        "tool_version": TEXT,
        "taken_at": TIME,
        "unread": UNREAD,
        "window_seconds": window,
        "host": {"type": "object", "required": ["unread"], "properties": host},
    }


def object_schema(kind: type, shapes: Shapes) -> dict[str, Any]:
    """Of the object for a value of that class."""
    properties: dict[str, Any] = {}
    required = []
    for field in shape_of(kind, shapes) or ():
        hint, words = typed(kind, field)
        if not field.name:
            inner = object_schema(bare(hint), shapes)
            if "unread" in inner["properties"]:
                properties.pop("unread", None)
            properties |= inner["properties"]
            needed = () if field.part else inner["required"]
            required += [name for name in needed if name != "unread"]
        else:
            if field.missing != "null":
                hint = without_none(hint)
            elif can_be_unread(hint):
                raise TypeError(f"{kind.__name__}.{field.name} can be unread: unread(...)")
            else:
                required.append(field.name)
            inner = numbered(schema_of_type(hint, shapes), kind, field.name)
            inner |= {"pattern": TIME["pattern"]} if field.turn is taken_at else {}
            inner |= {"description": words} if words else {}
            properties[field.name] = inner
        if field.missing == "unread":
            properties.pop("unread", None)
            properties["unread"] = UNREAD
    if "unread" in properties:
        required = [name for name in properties if name in required or name == "unread"]
    return {"type": "object", "required": required, "properties": properties}


def can_be_unread(hint: Any) -> bool:
    return hint is Unread or hint != without(hint, Unread)


def numbered(schema: dict[str, Any], kind: type, name: str) -> dict[str, Any]:
    """With the bounds that follow from the name."""
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "number" in kinds and name.endswith(SHARES) and name not in ABOVE_ONE:
        return {**schema, "minimum": 0, "maximum": 1}
    if {"number", "integer"} & set(kinds) and not SIGNED & {name, f"{kind.__name__}.{name}"}:
        return {**schema, "minimum": 0}
    return schema


# --- types -------------------------------------------------------------------------------


def schema_of_type(hint: Any, shapes: Shapes) -> dict[str, Any]:
    """Of a value with that annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in SIMPLE:
        return dict(SIMPLE[hint])
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        return union([schema_of_type(part, shapes) for part in parts if part is not Unread])
    kind = origin or hint
    if issubclass(kind, Mapping):
        inner = int if len(parts) == 1 else parts[1]  # a Counter
        return {"type": "object", "additionalProperties": schema_of_type(inner, shapes)}
    if shape_of(kind, shapes) is None and issubclass(kind, Sequence | Iterator):
        if kind is tuple and (len(parts) != 2 or parts[1] is not ...):
            raise TypeError(f"{hint}: its places have no names")
        return {"type": "array", "items": schema_of_type(parts[0], shapes)}
    if shape_of(kind, shapes) is None:
        raise TypeError(f"{hint} has no place in a document")
    return object_schema(kind, shapes)


def union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One of them."""
    rest = [schema for schema in schemas if schema != NULL]
    is_nullable = len(rest) < len(schemas)
    if all("enum" in schema for schema in rest):
        words = [word for schema in rest for word in schema["enum"]]
        return {"enum": [*words, *([None] if is_nullable else ())]}
    if len(rest) == 1:
        kinds = [rest[0]["type"], *(["null"] if is_nullable else ())]
        return {**rest[0], "type": kinds if is_nullable else kinds[0]}
    if all(set(schema) == {"type"} for schema in rest):
        kinds = [schema["type"] for schema in rest]
        if "number" in kinds:
            kinds = [kind for kind in kinds if kind != "integer"]
        kinds += ["null"] if is_nullable else []
        return {"type": kinds if len(kinds) > 1 else kinds[0]}
    return {"anyOf": schemas}


def without_none(hint: Any) -> Any:
    """The types of a value that is there."""
    return without(hint, type(None), Unread)


def without(hint: Any, *kinds: type) -> Any:
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return Literal[tuple(part for part in parts if part)]
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    left = [part for part in parts if part not in kinds]
    return Union[tuple(left)]  # noqa: UP007 - of a tuple


def bare(hint: Any) -> Any:
    found = without_none(hint)
    if not isinstance(found, type):
        raise TypeError(f"{hint}: fields of one class can be spread")
    return found


# --- dataclasses ---------------------------------------------------------------------------


def typed(kind: type, field: DocumentField) -> tuple[Any, str]:
    """Type and meaning of a field of an object of class ``kind``."""
    if callable(field.source):
        hint = get_type_hints(field.source)["return"]
        words = first_sentence(field.source.__doc__)
    else:
        hint, words = attribute(kind, field.source)
        if field.source.startswith(f"{field.name}."):  # workload=workload.name
            words = attribute(kind, field.name)[1] or words
    return (hint, words) if field.turn is None else turned(hint, words, field.turn)


def turned(hint: Any, words: str, turn: Any) -> tuple[Any, str]:
    """Type and meaning of what ``turn`` makes of a value."""
    if isinstance(turn, partial):
        return hint, words
    if isinstance(turn, OneOf):
        known = Literal[turn.words]
        return (known if hint == without_none(hint) else Union[known, None]), words  # noqa: UP007
    if isinstance(turn, Columns):
        (row,) = (part for part in get_args(hint) if part is not ...)
        return list[NamedTuple(ROW, list(zip(turn.names, get_args(row), strict=True)))], words  # type: ignore[misc]
    if turn is text:
        return str, words
    if turn is values:
        return list[get_args(hint)[1]], words  # type: ignore[misc]
    if turn is filled:
        return Union[without_none(hint), None], words  # noqa: UP007 - a value, no annotation
    if turn in (len, round):
        return (Union[int, None] if hint != without_none(hint) else int), ""  # noqa: UP007
    result = get_type_hints(turn)["return"]
    if turn is taken_at:
        words = re.sub(r"^Unix seconds[,.]? ?", "", words)
    words = ". ".join(filter(None, (words, first_sentence(turn.__doc__))))
    return (result if hint == without_none(hint) else Union[result, None]), words  # noqa: UP007


def attribute(kind: type, path: str) -> tuple[Any, str]:
    """Type and docstring of what is at ``path`` of an object; None where it is on the way."""
    is_optional = False
    hint: Any = kind
    words = ""
    for name in path.split("."):
        is_optional |= hint != without_none(hint)
        owner = bare(hint)
        found = inspect.getattr_static(owner, name, None)
        if isinstance(found, types.FunctionType):
            hint = hints_of(found)["return"]
            words = first_sentence(found.__doc__)
        elif isinstance(found, property):
            hint = hints_of(found.fget)["return"]
            words = first_sentence(found.__doc__)
        else:
            hint = hints_of(owner)[name]
            words = docstrings(owner).get(name, "")
    return (Union[hint, None] if is_optional else hint), words  # noqa: UP007


@cache
def hints_of(what: Any) -> dict[str, Any]:
    module = import_module(what.__module__)
    return get_type_hints(what, localns=type_names(module))


@cache
def type_names(module: types.ModuleType) -> dict[str, Any]:
    """What the module imports for its annotations alone."""
    names = {}
    for block in ast.parse(inspect.getsource(module)).body:
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test):
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    home = import_module(node.module)
                    names |= {alias.name: getattr(home, alias.name) for alias in node.names}
    return names


@cache
def docstrings(kind: type) -> dict[str, str]:
    """Of the fields of a class and of those that it inherits from."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if owner in (object, tuple) or owner.__name__ == ROW:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
        body = tree.body[0]
        assert isinstance(body, ast.ClassDef)
        for before, node in zip(body.body, body.body[1:], strict=False):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if is_text and isinstance(before, ast.AnnAssign):
                found[ast.unparse(before.target)] = plain(node.value.value)
    return found


def first_sentence(text: str | None) -> str:
    return plain((text or "").split("\n\n")[0])


def plain(text: str) -> str:
    """A docstring as JSON's reader understands it."""
    text = re.sub(r"\bNone\b", "null", text.replace("``", ""))
    return " ".join(text.split()).removesuffix(".")
