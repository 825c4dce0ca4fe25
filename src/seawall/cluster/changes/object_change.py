# SPDX-License-Identifier: Apache-2.0
"""The record of what Seawall changed on an object, which stands on that object itself.  Pure.

Annotation ``seawall.internal/changes``: a JSON list, a row for each field; label
``seawall.internal/changed-by``: the quarantine, so that a LIST finds the object.  Nothing else is
needed to put it back: neither chart nor controller nor our kinds.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.changes.changeable_kinds import (
    ChangeableKind,
    changeable_kind,
    field_problem,
)
from seawall.cluster.objects.api_group import CHANGES_ANNOTATION
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import ObjectFields, ObjectProblem, clean, without_absent

RECORD_BYTES_MOST: Final = 64 * 1024
RECORDS_MOST: Final = 32
_QUARANTINE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_UID_LETTERS: Final = 64


class ChangeProblem(Exception):
    """A change or its record cannot be used: one line, which says why."""


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """One object of the API: this one, and none that takes its name later."""

    kind: ChangeableKind
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """In the API.  ChangeProblem: a name that no object can have."""
        for word in (self.namespace, self.name):
            if _NAME.fullmatch(word) is None:
                raise ChangeProblem(f"no name of an object: {clean(word, 60)!r}")
        root = "/apis" if self.kind.group else "/api"
        middle = f"{root}/{self.kind.api_version}/namespaces/{self.namespace}"
        return f"{middle}/{self.kind.plural}/{self.name}"


@dataclass(frozen=True, slots=True)
class FieldRecord:
    """One field that was changed.  ``None`` as a value: the field is absent."""

    quarantine: str
    path: str
    """JSON pointer (RFC 6901)."""
    before: Any
    after: Any
    at_seconds: float
    """Since 1970."""
    uid: str
    """Of the object: a Deployment's annotations are copied to its ReplicaSets, and this one is
    then of no use there.
    """

    def document(self) -> dict[str, Any]:
        """A row of the annotation."""
        return without_absent({
            "quarantine": self.quarantine, "path": self.path, "before": self.before,
            "after": self.after, "at": time_words(self.at_seconds), "uid": self.uid,
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A field that is to be changed.  ChangeProblem: it is none that may be."""

    target: ObjectAddress
    quarantine: str
    path: str
    before: Any
    """What stands there, as whoever decided saw it; nothing is written over anything else."""
    after: Any

    def __post_init__(self) -> None:
        if _QUARANTINE.fullmatch(self.quarantine) is None:
            raise ChangeProblem(f"no name of a quarantine: {clean(self.quarantine, 60)!r}")
        problem = field_problem(self.target.kind, self.path, self.before, self.after)
        if problem:
            raise ChangeProblem(problem)


def object_address(
    document: Mapping[str, Any], kind: ChangeableKind | None = None
) -> ObjectAddress:
    """Of an object as the API gives it.  ``kind``: where its own is not said, as in a list.
    ChangeProblem: no kind that Seawall changes.
    """
    try:
        whole = ObjectFields(document, "object")
        if kind is None:
            kind = changeable_kind(whole.needed_text("kind"), whole.needed_text("apiVersion"))
        if kind is None:
            raise ChangeProblem(f"Seawall changes no {whole.text('kind', 60)}")
        metadata = whole.needed_fields("metadata")
        return ObjectAddress(
            kind, metadata.needed_text("namespace"), metadata.needed_text("name"),
            metadata.needed_text("uid", _UID_LETTERS),
        )  # fmt: skip
    except ObjectProblem as problem:
        raise ChangeProblem(str(problem)) from problem


def field_records(document: Mapping[str, Any], kind: ChangeableKind) -> tuple[FieldRecord, ...]:
    """What stands in the object's record, oldest first.  ChangeProblem: it cannot be believed, and
    then none of it is.
    """
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(CHANGES_ANNOTATION) if isinstance(annotations, dict) else None
    if text is None:
        return ()
    if not isinstance(text, str) or len(text) > RECORD_BYTES_MOST:
        raise ChangeProblem(f"its record is over {RECORD_BYTES_MOST} letters")
    try:
        rows = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise ChangeProblem("its record is no JSON") from problem
    if not isinstance(rows, list) or len(rows) > RECORDS_MOST:
        raise ChangeProblem(f"its record is no list of at most {RECORDS_MOST} changes")
    return tuple(_field_record(row, number, kind) for number, row in enumerate(rows))


def record_text(records: Sequence[FieldRecord]) -> str:
    """The annotation.  ChangeProblem: more than an object may carry."""
    if len(records) > RECORDS_MOST:
        raise ChangeProblem(f"it carries {RECORDS_MOST} changes already")
    text = json.dumps([one.document() for one in records], separators=(",", ":"))
    if len(text) > RECORD_BYTES_MOST:
        raise ChangeProblem(f"its record would be over {RECORD_BYTES_MOST} letters")
    return text


def _field_record(row: object, number: int, kind: ChangeableKind) -> FieldRecord:
    try:
        fields = ObjectFields(row, f"its record [{number}]")
        quarantine = fields.needed_text("quarantine")
        path = fields.needed_text("path")
        record = FieldRecord(
            quarantine, path, _value(row, "before"), _value(row, "after"),
            fields.needed_seconds("at"), fields.needed_text("uid", _UID_LETTERS),
        )  # fmt: skip
    except ObjectProblem as problem:
        raise ChangeProblem(str(problem)) from problem
    if _QUARANTINE.fullmatch(quarantine) is None:
        raise ChangeProblem(f"its record [{number}] names no quarantine")
    words = field_problem(kind, path, record.before, record.after)
    if words:
        raise ChangeProblem(f"its record [{number}]: {words}")
    return record


def _value(row: Any, name: str) -> Any:
    return row.get(name)


def _no_number(word: str) -> float:
    """NaN and its like are none of JSON."""
    raise ValueError(word)
