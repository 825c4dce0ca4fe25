"""What is changed on an object, written down on it and put back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster_changes.json_patches import PatchRefused, patched

from seawall.cluster.changes.change_patch import (
    ChangeOutcome,
    ChangePatch,
    apply_patch,
    undo_patch,
)
from seawall.cluster.changes.changeable_kinds import (
    CHANGEABLE_KINDS,
    NODE_SELECTOR,
    REPLICAS,
    SUSPEND,
    TOLERATIONS,
    changeable_kind,
)
from seawall.cluster.changes.changed_objects import changed_object
from seawall.cluster.changes.object_change import (
    ChangeProblem,
    ObjectChange,
    field_records,
    object_address,
)
from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    CHANGES_ANNOTATION,
    QUARANTINE_GATE,
)

AT = 1_800_000_000.0
UNREACHABLE = {
    "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
    "tolerationSeconds": 300,
}  # fmt: skip


def job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "etl", "namespace": "batch", "uid": "u1", "resourceVersion": "7"},
        "spec": spec,
    }  # fmt: skip


def pod(*tolerations: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml", "uid": "u2", "resourceVersion": "9"},
        "spec": {"tolerations": list(tolerations)},
    }  # fmt: skip


def suspension(document: dict[str, Any], quarantine: str = "q-1") -> ObjectChange:
    target = object_address(document)
    return ObjectChange(target, quarantine, SUSPEND, document["spec"].get("suspend"), True)


def with_record(document: dict[str, Any], text: str) -> dict[str, Any]:
    metadata = document["metadata"] | {
        "annotations": {CHANGES_ANNOTATION: text}, "labels": {CHANGED_BY_LABEL: "q-1"}
    }  # fmt: skip
    return document | {"metadata": metadata}


def row(path: str, before: Any, after: Any, **more: Any) -> dict[str, Any]:
    return {
        "quarantine": "q-1", "path": path, "before": before, "after": after,
        "at": "2026-11-29T11:00:00Z", "uid": "u1", **more,
    }  # fmt: skip


@pytest.mark.parametrize("spec", [{"suspend": False}, {}])
def test_a_suspended_job_says_who_and_is_put_back(spec: dict[str, Any]) -> None:
    original = job(**spec)
    changed = patched(original, apply_patch(original, suspension(original), AT).operations)
    assert changed["spec"]["suspend"] is True
    assert changed["metadata"]["labels"] == {CHANGED_BY_LABEL: "q-1"}
    [record] = json.loads(changed["metadata"]["annotations"][CHANGES_ANNOTATION])
    assert record["path"] == SUSPEND
    assert ("before" in record) is ("suspend" in spec)
    plan = undo_patch(changed, object_address(changed))
    assert [one.outcome for one in plan.fields] == [ChangeOutcome.WRITTEN]
    assert patched(changed, plan.operations) == original


def test_a_label_without_a_record_goes_and_one_with_a_bad_record_stays() -> None:
    """Whoever claimed a pod to delete it was killed before it did."""
    original = pod()
    metadata = original["metadata"] | {"labels": {CHANGED_BY_LABEL: "q-1", "app": "x"}}
    claimed = original | {"metadata": metadata}
    target = object_address(claimed)
    assert undo_patch(claimed, target, "q-2") == ChangePatch([], ())
    for name in ("q-1", ""):
        plan = undo_patch(claimed, target, name)
        assert [(one.outcome, one.record) for one in plan.fields] == [(ChangeOutcome.WRITTEN, None)]
        assert patched(claimed, plan.operations)["metadata"]["labels"] == {"app": "x"}
    kind = changeable_kind("Pod")
    assert kind is not None
    found = changed_object(claimed, kind)
    assert found is not None
    assert found.quarantines == {"q-1"}
    bad = with_record(original, "[]")
    assert undo_patch(bad, target) == ChangePatch([], ()), "an empty record is one"


def test_nothing_is_written_over_a_newer_version() -> None:
    original = job(suspend=False)
    operations = apply_patch(original, suspension(original), AT).operations
    for name, value in (("resourceVersion", "8"), ("uid", "u9")):
        newer = original | {"metadata": original["metadata"] | {name: value}}
        with pytest.raises(PatchRefused):
            patched(newer, operations)


def test_what_stands_already_or_is_another_is_left() -> None:
    wanted = suspension(job(suspend=False))
    already = apply_patch(job(suspend=True), wanted, AT)
    assert already.operations == []
    assert already.fields[0].outcome is ChangeOutcome.AS_WANTED
    other = apply_patch(job(), wanted, AT)
    assert other.operations == []
    assert other.fields[0].outcome is ChangeOutcome.CHANGED_SINCE
    renamed = job(suspend=False)
    renamed["metadata"]["uid"] = "u9"
    assert apply_patch(renamed, wanted, AT).fields[0].outcome is ChangeOutcome.GONE


def test_a_field_that_somebody_changed_since_is_left_and_named() -> None:
    original = job(suspend=False)
    changed = patched(original, apply_patch(original, suspension(original), AT).operations)
    changed["spec"]["suspend"] = None
    plan = undo_patch(changed, object_address(changed))
    assert plan.fields[0].outcome is ChangeOutcome.CHANGED_SINCE
    after = patched(changed, plan.operations)
    assert after["spec"] == {"suspend": None}
    assert "annotations" not in after["metadata"]
    assert "labels" not in after["metadata"]


def test_a_hold_in_two_steps_is_undone_to_the_first_value() -> None:
    original = pod({"key": "gpu", "operator": "Exists"}, UNREACHABLE)
    target = object_address(original)
    rows = original["spec"]["tolerations"]
    forever = [rows[0], {name: v for name, v in rows[1].items() if name != "tolerationSeconds"}]
    long = [rows[0], rows[1] | {"tolerationSeconds": 1800}]
    first = ObjectChange(target, "q-1", TOLERATIONS, rows, forever)
    held = patched(original, apply_patch(original, first, AT).operations)
    second = ObjectChange(target, "q-1", TOLERATIONS, forever, long)
    held = patched(held, apply_patch(held, second, AT + 1).operations)
    assert len(field_records(held, target.kind)) == 1
    assert patched(held, undo_patch(held, target, "q-1").operations) == original


@pytest.mark.parametrize("order", [("q-1", "q-2"), ("q-2", "q-1"), ("",)])
def test_two_quarantines_that_changed_one_field_are_undone_in_any_order(
    order: tuple[str, ...],
) -> None:
    original = pod(UNREACHABLE)
    target = object_address(original)
    values = [[UNREACHABLE | {"tolerationSeconds": number}] for number in (300, 900, 1800)]
    held = original
    for number, quarantine in enumerate(("q-1", "q-2")):
        change = ObjectChange(target, quarantine, TOLERATIONS, *values[number : number + 2])
        held = patched(held, apply_patch(held, change, AT).operations)
    assert held["metadata"]["labels"][CHANGED_BY_LABEL] == "q-2"
    for quarantine in order:
        held = patched(held, undo_patch(held, target, quarantine).operations)
        assert held["spec"]["tolerations"] in (values[0], values[1], values[2])
    assert held == original


def test_an_undo_of_another_quarantine_touches_nothing() -> None:
    original = job(suspend=False)
    changed = patched(original, apply_patch(original, suspension(original), AT).operations)
    assert undo_patch(changed, object_address(changed), "q-9").operations == []


def test_a_copied_record_is_of_no_use_elsewhere() -> None:
    copied = with_record(job(suspend=True), json.dumps([row(SUSPEND, False, True, uid="other")]))
    plan = undo_patch(copied, object_address(copied))
    assert plan.fields[0].outcome is ChangeOutcome.GONE
    assert patched(copied, plan.operations)["spec"] == {"suspend": True}


HOSTILE = {
    "not JSON": "suspend: false",
    "deep": "[" * 60_000,
    "no list": '{"path": "/spec/suspend"}',
    "too long": json.dumps(["x" * 70_000]),
    "too many": json.dumps([row(SUSPEND, False, True)] * 33),
    "a row that is no object": "[1]",
    "no path": json.dumps([{"quarantine": "q-1"}]),
    "a path of a list": json.dumps([row(SUSPEND, False, True) | {"path": ["/spec"]}]),
    "another path": json.dumps([row("/spec/template/spec/containers", [], [])]),
    "the whole spec": json.dumps([row("/spec", {}, {})]),
    "metadata": json.dumps([row("/metadata/finalizers", [], [])]),
    "a field of another kind": json.dumps([row(REPLICAS, 3, 0)]),
    "it would suspend": json.dumps([row(SUSPEND, True, False)]),
    "a value of another type": json.dumps([row(SUSPEND, "no", True)]),
    "one is not true": json.dumps([row(SUSPEND, 0, 1)]),
    "no number": '[{"before": NaN}]',
    "no time": json.dumps([row(SUSPEND, False, True, at="yesterday")]),
    "no quarantine": json.dumps([row(SUSPEND, False, True, quarantine="../x")]),
    "an escape": json.dumps([row("/spec/\x1b[2Jsuspend", False, True)]),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_record_is_refused_with_words(text: str) -> None:
    document = with_record(job(suspend=True), text)
    with pytest.raises(ChangeProblem) as problem:
        undo_patch(document, object_address(document))
    assert str(problem.value).isprintable()
    assert 10 < len(str(problem.value)) < 400
    running = with_record(job(suspend=False), text)
    with pytest.raises(ChangeProblem):
        apply_patch(running, suspension(running, "q-2"), AT)


def test_one_bad_row_spoils_the_good_ones() -> None:
    text = json.dumps([row(SUSPEND, False, True), row("/spec/parallelism", 9, 0)])
    document = with_record(job(suspend=True), text)
    with pytest.raises(ChangeProblem, match="no field of a Job"):
        undo_patch(document, object_address(document))


@pytest.mark.parametrize(("path", "before", "after"), [
    (TOLERATIONS, [], [{"key": "dedicated", "operator": "Exists"}]),
    (TOLERATIONS, [], [UNREACHABLE | {"effect": "NoSchedule"}]),
    (TOLERATIONS, [], [UNREACHABLE | {"tolerationSeconds": 1 << 70}]),
    (TOLERATIONS, [], [UNREACHABLE | {"tolerationSeconds": True}]),
    (TOLERATIONS, [], [UNREACHABLE | {"more": {}}]),
    (TOLERATIONS, [], {"key": "x"}),
    ("/spec/schedulingGates", [{"name": "other"}, {"name": QUARANTINE_GATE}], []),
    ("/spec/schedulingGates", [], [{"name": QUARANTINE_GATE}]),
    (NODE_SELECTOR + "kubernetes.io~1hostname", None, "n1"),
    (NODE_SELECTOR + "seawall.internal~1guard/x", None, "enforcing"),
    (NODE_SELECTOR + "seawall.internal~1guard", None, "two words"),
    (NODE_SELECTOR, None, {}),
    ("/spec/nodeName", None, "n1"),
])  # fmt: skip
def test_of_a_pod_only_what_we_do_may_be_written(path: str, before: Any, after: Any) -> None:
    with pytest.raises(ChangeProblem):
        ObjectChange(object_address(pod()), "q-1", path, before, after)


@pytest.mark.parametrize(("before", "after"), [(3, 1), (0, 0), (10**9, 0), (-1, 0), (3, False)])
def test_replicas_go_to_zero_alone(before: int, after: Any) -> None:
    document = job() | {"apiVersion": "apps/v1", "kind": "Deployment"}
    with pytest.raises(ChangeProblem):
        ObjectChange(object_address(document), "q-1", REPLICAS, before, after)


def test_kinds_are_told_apart_by_their_group() -> None:
    assert changeable_kind("Workload", "kueue.x-k8s.io/v1beta2") is not None
    assert changeable_kind("Workload", "example.org/v1") is None
    assert changeable_kind("DaemonSet") is None
    assert len({one.plural for one in CHANGEABLE_KINDS}) == len(CHANGEABLE_KINDS)


def test_a_name_that_leaves_the_path_is_refused() -> None:
    document = job()
    document["metadata"]["name"] = "../../../api/v1/namespaces/x"
    with pytest.raises(ChangeProblem):
        object_address(document).path  # noqa: B018 - that it is asked for is the test


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=9), below),
    max_leaves=8,
)


@given(st.lists(st.fixed_dictionaries({}, optional={
    "quarantine": _ANY | st.just("q-1"), "path": _ANY | st.sampled_from([SUSPEND, REPLICAS]),
    "before": _ANY, "after": _ANY, "at": _ANY | st.just("2026-11-29T11:00:00Z"),
    "uid": _ANY | st.just("u1"),
}), max_size=3))  # fmt: skip
def test_whatever_a_record_says_only_the_switch_is_written(rows: list[dict[str, Any]]) -> None:
    document = with_record(job(suspend=True, parallelism=4), json.dumps(rows))
    try:
        plan = undo_patch(document, object_address(document))
    except ChangeProblem:
        return
    after = patched(document, plan.operations)["spec"]
    assert after.pop("suspend", None) in (True, False, None)
    assert after == {"parallelism": 4}
