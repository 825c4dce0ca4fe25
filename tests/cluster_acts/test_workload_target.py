"""How people call a workload, what a quarantine of it compares, and how long it may last."""

from argparse import ArgumentTypeError
from typing import Any

import pytest

from seawall.cli.cluster_act import life_of
from seawall.cluster.acts.act_events import ActEvent
from seawall.cluster.acts.cluster_state import quarantine_named
from seawall.cluster.acts.workload_target import is_living, target_match, workload_name_of
from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.objects.match_objects import meets_owner, meets_pod
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineMode,
    QuarantineState,
    WorkloadMatch,
    WorkloadName,
    WorkloadQuarantineObject,
)
from seawall.problems import UsageProblem


def workload(kind: str, name: str = "trainer") -> WorkloadName:
    return WorkloadName("ml", kind, name)


def pod(owner: str = "", **more: Any) -> dict[str, Any]:
    references = [{"uid": owner, "kind": "X", "name": "x", "controller": True}] if owner else []
    metadata = {"namespace": "ml", "name": "p", "uid": "pod-1", "ownerReferences": references}
    return {"metadata": {**metadata, **more}, "spec": {"containers": [{"image": "trainer:1"}]}}


@pytest.mark.parametrize(("words", "kind"), [
    ("ml/deployment/trainer", "deployment"), ("ml/Deploy/trainer", "Deployment"),
    ("ml/sts/trainer", "StatefulSet"), ("ml/jobset.x-k8s.io/trainer", "jobset"),
])  # fmt: skip
def test_kinds_may_be_short_and_in_any_case(words: str, kind: str) -> None:
    assert workload_name_of(words) == WorkloadName("ml", kind, "trainer")


@pytest.mark.parametrize("words", [
    "", "trainer", "ml/trainer", "ml/deployment/", "ml//trainer", "a/b/c/d", "ml/deployment/../x",
    "ml/deployment/\x1b[2J", "ML/deployment/x", "ml/deployment/x?y", "ml/deployment/" + "a" * 254,
])  # fmt: skip
def test_what_is_no_workload_is_said(words: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        workload_name_of(words)
    assert "expected NAMESPACE/KIND/NAME" in str(problem.value)


def test_a_deployment_is_known_by_its_selector_whatever_is_rolled_out() -> None:
    spec = {"selector": {"matchLabels": {"app": "trainer"}}}
    match = target_match(workload("Deployment"), "uid-1", {"spec": spec})
    assert match == WorkloadMatch("ml", labels=(("app", "trainer"),))
    assert meets_pod(match, pod("replica-set-9", labels={"app": "trainer"}))
    assert not meets_pod(match, pod("replica-set-9", labels={"app": "trainer-eval"}))
    by_expression = {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    assert target_match(workload("Deployment"), "uid-1", {"spec": by_expression}) == (
        WorkloadMatch("ml", ("uid-1",))
    )


def test_a_job_and_a_pod_are_known_by_uid() -> None:
    match = target_match(workload("Job"), "uid-1", {"spec": {"selector": {}}})
    assert meets_pod(match, pod("uid-1"))
    assert not meets_pod(match, pod("uid-2"))
    alone = target_match(workload("Pod"), "pod-1", {})
    assert meets_pod(alone, pod())


def test_a_cron_job_is_known_by_name_and_images_also_tomorrow() -> None:
    inner = {"containers": [{"image": "trainer:1"}]}
    spec = {"jobTemplate": {"spec": {"template": {"spec": inner}}}}
    match = target_match(workload("CronJob", "nightly"), "uid-1", {"spec": spec})
    assert meets_pod(match, pod("job-9", generateName="nightly-29384-"))
    assert not meets_pod(match, pod("job-9", generateName="weekly-29384-"))
    owner = {"metadata": {"namespace": "ml", "name": "nightly", "uid": "uid-1"}, "spec": spec}
    assert meets_owner(match, owner)


def test_a_job_set_is_known_by_its_own_label() -> None:
    match = target_match(workload("JobSet", "gang"), "uid-1", {"spec": {}})
    assert meets_pod(match, pod("job-1", labels={"jobset.sigs.k8s.io/jobset-name": "gang"}))


def test_what_ended_or_ends_lives_no_more() -> None:
    assert is_living(pod())
    assert not is_living(pod(deletionTimestamp="2026-11-29T11:00:00Z"))
    assert not is_living({**pod(), "status": {"phase": "Succeeded"}})


def quarantine(name: str, state: QuarantineState, kind: str = "Deployment") -> Any:
    return WorkloadQuarantineObject(
        name, WorkloadName("ml", kind, "trainer"), WorkloadKey(1, name), WorkloadMatch("ml"),
        state, QuarantineMode.TELL, "", (), None,
    )  # fmt: skip


def test_a_quarantine_goes_by_its_own_name_or_its_workloads() -> None:
    rows = {one.name: one for one in (
        quarantine("old", QuarantineState.RELEASED), quarantine("new", QuarantineState.ACTIVE),
    )}  # fmt: skip
    assert quarantine_named(rows, "old") is rows["old"]
    for words in ("trainer", "ml/trainer", "ml/Deployment/trainer", "ml/deployment/trainer"):
        assert quarantine_named(rows, words) is rows["new"], words
    assert quarantine_named(rows, "other") is None
    rows["job"] = quarantine("job", QuarantineState.ACTIVE, "Job")
    with pytest.raises(UsageProblem, match="is several quarantines: job, new"):
        quarantine_named(rows, "ml/trainer")
    assert quarantine_named(rows, "ml/job/trainer") is rows["job"]


@pytest.mark.parametrize(("words", "seconds"), [("1m", 60.0), ("24h", 86400.0), ("7d", 604800.0)])
def test_it_lasts_a_minute_to_a_week(words: str, seconds: float) -> None:
    assert life_of(words) == seconds
    for wrong in ("", "0h", "59s", "8d", "1w", "-1h", "1h ", "999999d", "1.5h"):
        with pytest.raises(ArgumentTypeError):
            life_of(wrong)


def test_an_event_has_a_name_that_the_api_takes() -> None:
    event = ActEvent("R", "note\x1b[2J", "Pod", "v1", "p." + "x" * 250, "u", "ml")
    document = event.document(1_800_000_000.25, 3)
    assert len(document["metadata"]["name"]) <= 253
    assert document["note"].isprintable()
    assert document["regarding"]["uid"] == "u"
    assert event.path == "/apis/events.k8s.io/v1/namespaces/ml/events"
