"""What a table of a document does, and what its schema says of it."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jsonschema
import pytest
from tests.generate_schemas import all_documents, object_schema, schema_of

from seawall.host.host import Unread
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.views.documents.document_fields import (
    Shapes,
    columns,
    joined,
    known,
    object_of,
    one_of,
    shown,
    spread,
    unread,
)

GONE = Unread("/proc/1/stat", "refused")


class Owner(NamedTuple):
    """Who."""

    name: str
    """Its address."""
    pid: int


@dataclass(frozen=True)
class Limits:
    """Of it."""

    most_bytes: int | Unlimited | None
    least_bytes: int | None


@dataclass(frozen=True)
class Thing:
    """One of each kind of field."""

    owner: Owner | None
    state: str
    kind: Literal["", "bug"]
    seconds: float
    at_unix_seconds: float | None
    charge: int | Unread
    limits: Limits | Unread
    kinds: tuple[tuple[str, int], ...]
    secret: object = None

    @property
    def double(self) -> int | None:
        """Twice."""
        return None if isinstance(self.charge, Unread) else self.charge * 2


SHAPES: Shapes = {
    Thing: (
        *shown("owner name=owner.name"),
        *shown("state", turn=one_of("R D")),
        *known("kind:filled"),
        *shown("seconds:2"),
        *shown("at=at_unix_seconds:time"),
        *unread("charge_bytes=charge double"),
        *spread("limits", Limits),
        *shown("kinds", turn=columns("name bytes")),
    ),
    Limits: unread("most_bytes least_bytes"),
}
WHOLE = Thing(Owner("web", 7), "R", "bug", 1.005, 0.0, 5, Limits(UNLIMITED, None), (("a", 1),))
NOTHING = Thing(None, "D", "", 0.0, None, GONE, GONE, ())


def test_fields_stand_in_the_order_of_the_table_and_unread_behind_the_last_that_can_be() -> None:
    assert list(object_of(WHOLE, SHAPES).items()) == [
        ("owner", {"name": "web", "pid": 7}),
        ("name", "web"),
        ("state", "R"),
        ("kind", "bug"),
        ("seconds", 1.0),
        ("at", "1970-01-01T00:00:00Z"),
        ("charge_bytes", 5),
        ("double", 10),
        ("most_bytes", None),
        ("unread", ["least_bytes"]),
        ("kinds", [{"name": "a", "bytes": 1}]),
    ]


def test_what_is_missing_is_null_or_unread_or_absent_and_never_zero() -> None:
    assert object_of(NOTHING, SHAPES) == {
        "owner": None,
        "name": None,
        "state": "D",
        "seconds": 0.0,
        "at": None,
        "unread": ["charge_bytes", "double", "most_bytes", "least_bytes"],
        "kinds": [],
    }


@pytest.mark.parametrize("thing", [WHOLE, NOTHING])
def test_the_schema_is_that_of_the_document(thing: Thing) -> None:
    schema = object_schema(Thing, SHAPES)
    jsonschema.validate(object_of(thing, SHAPES), schema)
    assert schema["required"] == ["owner", "name", "state", "seconds", "at", "unread", "kinds"]
    assert schema["properties"]["state"] == {"enum": ["R", "D"]}
    assert schema["properties"]["kind"] == {"enum": ["bug"]}
    assert schema["properties"]["name"]["type"] == ["string", "null"]
    assert schema["properties"]["name"]["description"] == "Its address"
    assert schema["properties"]["charge_bytes"] == {"type": "integer", "minimum": 0}
    assert schema["properties"]["most_bytes"]["type"] == ["integer", "null"]
    assert schema["properties"]["double"]["description"] == "Twice"
    row = schema["properties"]["kinds"]["items"]
    assert row["required"] == ["name", "bytes"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("state", "S"), ("kind", ""), ("owner", "web"), ("at", "today"), ("charge_bytes", None)],
)
def test_the_schema_refuses(name: str, wrong: Any) -> None:
    document = object_of(WHOLE, SHAPES) | {name: wrong}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, object_schema(Thing, SHAPES))


def test_what_is_missing_in_fields_that_are_spread_is_named_outside() -> None:
    thing = Thing(None, "R", "", 0.0, None, 1, Limits(None, 3), ())
    shapes: Shapes = {Thing: (*spread("limits"), *shown("state")), Limits: SHAPES[Limits]}
    whole = object_of(thing, shapes)
    assert list(whole.items()) == [("least_bytes", 3), ("unread", ["most_bytes"]), ("state", "R")]


def test_unread_where_a_table_does_not_say_so_is_an_error_and_no_null() -> None:
    shapes = {Thing: shown("charge")}
    with pytest.raises(TypeError, match="can be unread"):
        object_of(NOTHING, shapes)
    with pytest.raises(TypeError, match="can be unread"):
        object_schema(Thing, shapes)


def test_what_has_no_place_in_json_is_an_error() -> None:
    thing = Thing(None, "R", "", 0.0, None, 1, GONE, (), secret=object())
    with pytest.raises(TypeError, match="object has no place in a document"):
        object_of(thing, {Thing: shown("secret")})


def test_two_objects_that_are_joined_have_one_unread() -> None:
    both = joined({"a": 1, "unread": ["x"]}, {"b": 2, "unread": ["y"]})
    assert list(both.items()) == [("a", 1), ("unread", ["x", "y"]), ("b", 2)]


@pytest.mark.parametrize("document", list(all_documents()), ids=lambda document: document.name)
def test_each_schema_is_one(document: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(document))
