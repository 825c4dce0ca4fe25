# SPDX-License-Identifier: Apache-2.0
"""JSON patches (RFC 6902) that change a field and write it down, and that put it back.  Pure.

Each tests uid and version of the object and the field's old value: what was written meanwhile by
somebody else is never written over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple

from seawall.cluster.changes.changeable_kinds import GATES, NODE_SELECTOR, same_value
from seawall.cluster.changes.object_change import (
    ChangeProblem,
    FieldRecord,
    ObjectAddress,
    ObjectChange,
    field_records,
    record_text,
)
from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    CHANGES_ANNOTATION,
    GUARD_ENFORCING,
    GUARD_LABEL,
    QUARANTINE_GATE,
)

Operation = dict[str, Any]
_LABEL_PATH: Final = f"/metadata/labels/{CHANGED_BY_LABEL.replace('/', '~1')}"
_CHANGES_PATH: Final = f"/metadata/annotations/{CHANGES_ANNOTATION.replace('/', '~1')}"


class ChangeOutcome(Enum):
    """How a change, or its undoing, ended."""

    WRITTEN = "written"
    AS_WANTED = "as wanted"
    """It stands there already: nothing was written."""
    CHANGED_SINCE = "changed since"
    """Somebody else wrote the field: it is left as it is."""
    TAKEN_OVER = "taken over"
    """Another quarantine holds the field still: it puts it back."""
    GONE = "gone"
    """The object is not there any more, or another one has its name."""
    REFUSED = "refused"
    """By the API server, or by a record that cannot be believed."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """What became of one field."""

    outcome: ChangeOutcome
    record: FieldRecord | None
    """None: not a field of it is known."""
    words: str = ""


class ChangePatch(NamedTuple):
    """What is sent, and what that does; no operation: there is nothing to send."""

    operations: list[Operation]
    fields: tuple[FieldChange, ...]


def apply_patch(
    document: Mapping[str, Any], change: ObjectChange, at_seconds: float
) -> ChangePatch:
    """To make the change on the object as it stands.  ChangeProblem: its record is unusable."""
    if _metadata(document).get("uid") != change.target.uid:
        return _nothing(ChangeOutcome.GONE, "another object has its name by now")
    stands = value_at(document, change.path)
    if same_value(stands, change.after):
        return _nothing(ChangeOutcome.AS_WANTED, f"{change.path} stands so already")
    if not same_value(stands, change.before):
        return _nothing(ChangeOutcome.CHANGED_SINCE, f"{change.path} is another than was seen")
    records = list(field_records(document, change.target.kind))
    record = FieldRecord(
        change.quarantine, change.path, stands, change.after, at_seconds, change.target.uid
    )
    for place, old in enumerate(records):
        is_same_field = (old.path, old.quarantine) == (change.path, change.quarantine)
        if is_same_field and old.uid == record.uid:
            if same_value(old.after, stands):
                record = replace(record, before=old.before)
            del records[place]
            break
    records.append(record)
    return ChangePatch(
        [*_tests(document), *_value_operations(document, change.path, stands, change.after),
         *_record_operations(document, records)],
        (FieldChange(ChangeOutcome.WRITTEN, record),),
    )  # fmt: skip


def undo_patch(
    document: Mapping[str, Any], target: ObjectAddress, quarantine: str = ""
) -> ChangePatch:
    """To put back what ``quarantine`` changed; empty: all.  ChangeProblem: no record to believe."""
    if _metadata(document).get("uid") != target.uid:
        return _nothing(ChangeOutcome.GONE, "another object has its name by now")
    records = list(field_records(document, target.kind))
    values: dict[str, Any] = {}
    fields: list[FieldChange] = []
    for record in reversed(tuple(records)):
        if quarantine and record.quarantine != quarantine:
            continue
        later = [one for one in records[records.index(record) + 1 :] if one.path == record.path]
        stands = values.get(record.path, value_at(document, record.path))
        outcome, words = ChangeOutcome.WRITTEN, ""
        if record.uid != target.uid:
            outcome, words = ChangeOutcome.GONE, "the record is of another object"
        elif later and same_value(later[0].before, record.after):
            outcome, words = ChangeOutcome.TAKEN_OVER, f"quarantine {later[0].quarantine} holds it"
            place = records.index(later[0])
            records[place] = replace(later[0], before=record.before)
        elif same_value(stands, record.before):
            outcome, words = ChangeOutcome.AS_WANTED, "somebody put it back already"
        elif not same_value(stands, record.after):
            outcome, words = ChangeOutcome.CHANGED_SINCE, "somebody changed it since"
        else:
            values[record.path] = record.before
        records.remove(record)
        fields.append(FieldChange(outcome, record, words))
    if not fields:
        return _label_patch(document, quarantine)
    changed = [
        operation
        for path, value in values.items()
        for operation in _value_operations(document, path, value_at(document, path), value)
    ]
    return ChangePatch(
        [*_tests(document), *changed, *_record_operations(document, records)], tuple(fields)
    )


def _label_patch(document: Mapping[str, Any], quarantine: str) -> ChangePatch:
    """Takes a label away that stands there without a record: who set it was killed before it did
    what it had claimed, a deletion say.  ``quarantine``: of that one alone; empty: of any.
    """
    label = label_of(document)
    has_record = value_at(document, _CHANGES_PATH) is not None
    if not label or has_record or quarantine not in ("", label):
        return ChangePatch([], ())
    words = f"it was named by {label}, and nothing of it was changed"
    operations = [*_tests(document), {"op": "remove", "path": _LABEL_PATH}]
    return ChangePatch(operations, (FieldChange(ChangeOutcome.WRITTEN, None, words),))


def label_of(document: Mapping[str, Any]) -> str:
    """The quarantine that our label names; empty: none."""
    label = value_at(document, _LABEL_PATH)
    return label if isinstance(label, str) else ""


def gate_patch(
    document: Mapping[str, Any], target: ObjectAddress, *, to_guarded: bool = False
) -> ChangePatch:
    """To let a pod go that waits for the end of a quarantine; ``to_guarded``: onto nodes whose
    guard enforces, in the same patch.  Nothing is written down: the API lets nobody add a gate to a
    pod that exists, nor take a node selector away, so there is no way back.
    """
    if _metadata(document).get("uid") != target.uid:
        return _nothing(ChangeOutcome.GONE, "another object has its name by now")
    gates = value_at(document, GATES)
    rest = [one for one in gates if one != {"name": QUARANTINE_GATE}] if _is_list(gates) else gates
    if same_value(rest, gates):
        return _nothing(ChangeOutcome.AS_WANTED, "it does not wait any more")
    record = FieldRecord("", GATES, rest or None, gates, 0.0, target.uid)
    operations = [*_tests(document), *_value_operations(document, GATES, gates, rest or None)]
    selector = NODE_SELECTOR + GUARD_LABEL.replace("/", "~1")
    stands = value_at(document, selector)
    if to_guarded and stands != GUARD_ENFORCING:
        if stands is not None:
            return _nothing(ChangeOutcome.REFUSED, f"it asks for nodes {GUARD_LABEL}={stands}")
        operations += _value_operations(document, selector, None, GUARD_ENFORCING)
    return ChangePatch(operations, (FieldChange(ChangeOutcome.WRITTEN, record),))


def value_at(document: Mapping[str, Any], path: str) -> Any:
    """What stands there; None: nothing."""
    value: Any = document
    for word in path.split("/")[1:]:
        value = value.get(word.replace("~1", "/").replace("~0", "~")) if _is_map(value) else None
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _nothing(outcome: ChangeOutcome, words: str) -> ChangePatch:
    return ChangePatch([], (FieldChange(outcome, None, words),))


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _tests(document: Mapping[str, Any]) -> list[Operation]:
    metadata = _metadata(document)
    names = ("uid", "resourceVersion")
    if not all(isinstance(metadata.get(name), str) for name in names):
        raise ChangeProblem("it has no uid or no version")
    return [{"op": "test", "path": f"/metadata/{name}", "value": metadata[name]} for name in names]


def _value_operations(
    document: Mapping[str, Any], path: str, before: Any, after: Any
) -> list[Operation]:
    operations: list[Operation] = []
    if before is not None:
        operations.append({"op": "test", "path": path, "value": before})
    if after is None:
        if before is not None:
            operations.append({"op": "remove", "path": path})
        return operations
    parent = path.rpartition("/")[0]
    if value_at(document, parent) is None:
        operations.append({"op": "add", "path": parent, "value": {}})
    operations.append({"op": "add", "path": path, "value": after})
    return operations


_MARKS: Final = (("annotations", CHANGES_ANNOTATION), ("labels", CHANGED_BY_LABEL))


def _record_operations(
    document: Mapping[str, Any], records: Sequence[FieldRecord]
) -> list[Operation]:
    """Annotation and label as they are to be."""
    values = {}
    if records:
        values = {
            CHANGES_ANNOTATION: record_text(records),
            CHANGED_BY_LABEL: records[-1].quarantine,
        }
    operations: list[Operation] = []
    for place, name in _MARKS:
        path = f"/metadata/{place}/{name.replace('/', '~1')}"
        stands = value_at(document, path)
        operations += [
            one
            for one in _value_operations(document, path, stands, values.get(name))
            if one["op"] != "test"
        ]
    return operations
