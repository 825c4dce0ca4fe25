"""What people do by ``seawall cluster``, on a real API server: written, told, taken back."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from tests.cluster import custom_resources
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API
from tests.cluster.refusing_webhook import RefusingWebhook
from tests.cluster.test_changes import cron_job, job, lasting, lone_pod
from tests.cluster.test_cluster_live_verbs import remove_kinds
from tests.cluster.test_kube_plane import access
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, pod_spec, pods

import seawall
from seawall.cluster.acts.brake_act import guard_answers
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import (
    GATES,
    REPLICAS,
    SUSPEND,
)
from seawall.cluster.changes.object_change import ObjectChange, object_address
from seawall.cluster.kube.kube_client import KubeClient
from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    CHANGES_ANNOTATION,
    QUARANTINE_GATE,
)
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.node_report_object import NodeReportObject, ReportGuard

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

SCHEMA = json.loads((Path(seawall.__file__).parent / "views/schemas/cluster-act.json").read_text())
ROWS, COLUMNS = 24, 80


class Ended(NamedTuple):
    status: int
    out: str
    problems: str

    @property
    def words(self) -> str:
        return " ".join(self.out.split())

    @property
    def document(self) -> Any:
        document = json.loads(self.out)
        jsonschema.validate(document, SCHEMA)
        return document


class Desk:
    """Somebody at a terminal; each text is checked to be one screen."""

    def __init__(self, plane: ControlPlane, user: str = "admin") -> None:
        self.config = str(plane.kubeconfig(user))

    def __call__(self, *words: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "seawall", "cluster", *words, "--kubeconfig", self.config],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        if "--json" not in words and "--whole" not in words:
            lines = done.stdout.splitlines()
            assert len(lines) < ROWS, done.stdout
            prose = [line for line in lines if "kubectl " not in line]  # which is to be pasted
            assert all(len(line) <= COLUMNS for line in prose), done.stdout
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module", autouse=True)
def kinds(plane: ControlPlane) -> Iterator[None]:
    """Served for all tests: an API server takes a while to forget and to learn them again."""
    with plane.client() as client:
        custom_resources.install(client)
        yield
        remove_kinds(client)


@pytest.fixture
def desk(plane: ControlPlane, client: ApiClient) -> Desk:
    for plural in ("workloadquarantines", "seawallpolicies", "nodereports"):
        for one in client.items(f"{API}/{plural}"):
            client.delete(f"{API}/{plural}/{one['metadata']['name']}")
    return Desk(plane)


@pytest.fixture
def actor(plane: ControlPlane) -> Iterator[ChangeWriter]:
    """As the actor writes."""
    client = KubeClient(access(plane))
    yield ChangeWriter(client, "seawall-actor")
    client.close()


def trainer(client: ApiClient, space: str) -> str:
    """A Deployment of three; its path."""
    deploy(client, space, "trainer", 3, pod_spec("trainer:1"))
    wait_until(lambda: len(pods(client, space, "trainer")) == 3, 30, "three pods are made")
    return f"/apis/apps/v1/namespaces/{space}/deployments/trainer"


def quarantine_objects(client: ApiClient) -> list[Object]:
    return client.items(f"{API}/workloadquarantines")


def told(client: ApiClient, namespace: str) -> set[tuple[str, str]]:
    events = client.items(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return {
        (one["reason"], one["regarding"]["kind"])
        for one in events
        if one.get("reportingController") == "seawall.internal/cli"
    }


def test_a_persons_quarantine_is_made_told_and_taken_back(
    desk: Desk, client: ApiClient, space: str
) -> None:
    path = trainer(client, space)
    workload = f"{space}/deployment/trainer"
    before = client.get(path)
    planned = desk("quarantine", workload, "--dry-run", "--json").document
    assert planned["outcome"] == "planned"
    assert [one["result"] for one in planned["steps"]] == ["planned"] * 2
    assert "3 living pods" in planned["lost"][0]
    assert quarantine_objects(client) == []
    assert told(client, space) == set()
    blocked = desk("quarantine", workload)
    assert blocked.status == 2
    assert "NOTHING WAS WRITTEN: pods would be deleted. With --yes it is." in blocked.out
    assert quarantine_objects(client) == []
    made = desk("quarantine", workload, "--yes", "--reason", "it kills gpu nodes", "--json")
    assert made.status == 0, made.problems
    assert made.document["outcome"] == "done"
    [one] = quarantine_objects(client)
    assert one["spec"]["state"] == "Active"
    assert one["spec"]["mode"] == "gate"
    match = {name: value for name, value in one["spec"]["match"].items() if value}
    assert match == {"namespace": space, "labels": {"app": "trainer"}}
    assert one["spec"]["reason"] == "it kills gpu nodes"
    assert one["status"]["approvedBy"] == "admin"
    assert told(client, space) == {
        ("QuarantineStarted", "Deployment"),
        ("QuarantineStarted", "Pod"),
    }
    assert ("QuarantineStarted", "WorkloadQuarantine") in told(client, "default")
    assert lasting(client.get(path)) == lasting(before), "the verb itself touches no workload"
    shown = desk("suspects")
    assert "ACTIVE" in shown.words
    ended = desk("release", f"{space}/trainer", "--reason", "it was the network")
    assert ended.status == 0
    [one] = quarantine_objects(client)
    assert one["spec"]["state"] == "Released"
    assert ("QuarantineEnded", "WorkloadQuarantine") in told(client, "default")
    again = desk("release", f"{space}/trainer", "--json").document
    assert again["outcome"] == "nothing"


def test_a_milder_mode_needs_no_yes_and_a_released_one_begins_anew(
    desk: Desk, client: ApiClient, space: str
) -> None:
    trainer(client, space)
    workload = f"{space}/deploy/trainer"
    first = desk("quarantine", workload, "--mode", "hold")
    assert first.status == 0
    assert "NOBODY CARRIES IT OUT: no actor is installed" in first.words
    stricter = desk("quarantine", workload, "--mode", "gate", "--yes", "--for", "30m")
    assert stricter.status == 0
    [one] = quarantine_objects(client)
    assert one["spec"]["mode"] == "gate"
    desk("release", one["metadata"]["name"])
    anew = desk("quarantine", workload, "--mode", "hold")
    assert anew.status == 0
    assert "it was released, and a state moves forward only" in anew.words
    [one] = quarantine_objects(client)
    assert one["spec"]["state"] == "Active"


def test_what_is_wrong_is_said_in_one_line(desk: Desk, client: ApiClient, space: str) -> None:
    trainer(client, space)
    cases = {
        ("quarantine", "trainer"): "expected NAMESPACE/KIND/NAME",
        ("quarantine", f"{space}/deployment/nope"): "no Deployment nope in namespace",
        ("quarantine", f"{space}/secret/x"): "is no kind that can be quarantined here",
        ("quarantine", f"{space}/pod/..%2fx"): "is no name of an object",
        ("quarantine", "kube-system/deployment/coredns"): "is protected",
        ("approve", "nobody"): "no quarantine 'nobody'",
        ("release", "nobody"): "no quarantine 'nobody'",
        ("undo", "nobody"): "no object carries a change of it",
    }  # fmt: skip
    for words, expected in cases.items():
        ended = desk(*words)
        assert ended.status == 2, words
        assert expected in ended.problems, ended.problems
        assert ended.problems.count("\n") == 1, ended.problems
        assert ended.out == ""


def test_what_the_observer_proposed_is_approved(desk: Desk, client: ApiClient, space: str) -> None:
    trainer(client, space)
    client.create(f"{API}/workloadquarantines", {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "WorkloadQuarantine",
        "metadata": {"name": "proposed-1"},
        "spec": {
            "workload": {"namespace": space, "kind": "Deployment", "name": "trainer"},
            "key": {"level": 2, "value": f"{space}/trainer"}, "state": "Proposed", "mode": "tell",
            "match": {"namespace": space, "labels": {"app": "trainer"}}, "reason": "2 nodes died",
        },
    })  # fmt: skip
    assert desk("approve", f"{space}/trainer").status == 2
    assert quarantine_objects(client)[0]["spec"]["state"] == "Proposed"
    planned = desk("approve", f"{space}/trainer", "--dry-run")
    assert '/spec/state "Proposed" -> "Active"' in planned.words
    assert quarantine_objects(client)[0]["spec"]["state"] == "Proposed"
    assert desk("approve", f"{space}/trainer", "--yes").status == 0
    [one] = quarantine_objects(client)
    assert one["spec"]["state"] == "Active"
    assert one["spec"]["mode"] == "gate"
    assert one["status"]["approvedBy"] == "admin"


def test_an_undo_of_all_puts_each_field_back(
    desk: Desk, client: ApiClient, space: str, actor: ChangeWriter
) -> None:
    path = trainer(client, space)
    etl, nightly = job(client, space, "etl"), cron_job(client, space, "nightly")
    changes = [
        (client.get(path), REPLICAS, 3, 0), (etl, SUSPEND, False, True),
        (nightly, SUSPEND, False, True),
    ]  # fmt: skip
    originals = {}
    for document, field, before, after in changes:
        target = object_address(document)
        originals[target.path] = lasting(client.get(target.path))
        actor.apply(ObjectChange(target, "q-1", field, before, after))
    planned = desk("undo", "--all", "--dry-run", "--json").document
    assert [one["result"] for one in planned["steps"]] == ["planned"] * 3
    assert client.get(path)["spec"]["replicas"] == 0
    client.patch(object_address(nightly).path, {"spec": {"suspend": False}})
    done = desk("undo", "q-1", "--json")
    assert done.status == 0, done.out
    assert {one["result"] for one in done.document["steps"]} == {"done", "already"}
    for place, original in originals.items():
        assert lasting(client.get(place)) == original
    assert desk("undo", "--all", "--json").document["outcome"] == "nothing"


def test_what_somebody_changed_since_is_left_and_named(
    desk: Desk, client: ApiClient, space: str, actor: ChangeWriter
) -> None:
    path = trainer(client, space)
    actor.apply(ObjectChange(object_address(client.get(path)), "q-1", REPLICAS, 3, 0))
    client.patch(path, {"spec": {"replicas": 7}})
    ended = desk("undo", "q-1")
    assert ended.status == 1
    assert "LEFT: somebody changed it since" in ended.words
    assert client.get(path)["spec"]["replicas"] == 7


def test_a_forged_record_is_named_and_not_believed(
    desk: Desk, client: ApiClient, space: str
) -> None:
    target = object_address(job(client, space, "etl"))
    forged = [{"quarantine": "q-1", "path": "/spec/template", "before": {}, "after": {},
               "at": "2026-11-29T11:00:00Z", "uid": target.uid}]  # fmt: skip
    client.patch(target.path, {"metadata": {
        "annotations": {CHANGES_ANNOTATION: json.dumps(forged)},
        "labels": {CHANGED_BY_LABEL: "q-1"},
    }})  # fmt: skip
    before = client.get(target.path)["spec"]
    ended = desk("undo", "--all")
    assert ended.status == 1
    assert "REFUSED" in ended.words
    assert "is no field of a Job that Seawall writes" in ended.words
    assert client.get(target.path)["spec"] == before
    client.delete(target.path, propagationPolicy="Background")


def test_of_all_each_write_is_printed_when_it_is_made(
    plane: ControlPlane, client: ApiClient, space: str, actor: ChangeWriter
) -> None:
    """Each of them takes three seconds in a webhook; the first is said by then."""
    paths = [object_address(job(client, space, name)).path for name in ("one", "two")]
    for path in paths:
        target = object_address(client.get(path))
        actor.apply(ObjectChange(target, "q-1", SUSPEND, False, True))
    said: list[tuple[float, str]] = []
    with RefusingWebhook(client, plane.folder, space, "jobs", "batch", "admin", 3.0):
        time.sleep(2.0)  # until the API server has heard of it
        began = time.monotonic()
        command = [sys.executable, "-m", "seawall", "cluster", "undo", "--all", "--kubeconfig",
                   str(plane.kubeconfig("admin"))]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [(time.monotonic() - began, line) for line in process.stdout]
    print(*(f"{at:.1f} {line}" for at, line in said), sep="")
    steps = [at for at, line in said if line.startswith("written")]
    (headline,) = [at for at, line in said if line.startswith("undo all:")]
    assert len(steps) >= 2
    assert headline - steps[0] > 2.5, "not all at the end"
    for path in paths:
        client.delete(path, propagationPolicy="Background")


def test_a_label_without_a_record_is_taken_away(desk: Desk, client: ApiClient, space: str) -> None:
    """Who claimed that pod to delete it was killed in between."""
    path = object_address(lone_pod(client, space, "own")).path
    client.patch(path, {"metadata": {"labels": {CHANGED_BY_LABEL: "q-gone"}}})
    ended = desk("undo", "--all")
    assert ended.status == 0, ended.out
    assert "it was named by q-gone, and nothing of it was changed" in ended.words
    assert CHANGED_BY_LABEL not in client.get(path)["metadata"].get("labels", {})


def test_pods_that_wait_are_let_go_and_those_of_others_are_not(
    desk: Desk, client: ApiClient, space: str
) -> None:
    gates = [{"name": QUARANTINE_GATE}]
    own = object_address(lone_pod(client, space, "own", schedulingGates=gates))
    other = object_address(lone_pod(client, space, "other", schedulingGates=gates))
    for name in ("own", "other"):
        assert desk("quarantine", f"{space}/pod/{name}", "--mode", "gate", "--yes").status == 0
    released = desk("release", f"{space}/pod/own")
    assert released.status == 0, released.out
    assert "1 pod that waited at a gate is let go" in released.words
    assert "schedulingGates" not in client.get(own.path)["spec"]
    assert client.get(other.path)["spec"]["schedulingGates"] == gates
    assert GATES.removeprefix("/spec/") in released.words
    assert desk("undo", "--all").status == 0
    assert "schedulingGates" not in client.get(other.path)["spec"]


def test_who_may_not_is_told_so_and_nothing_is_half_done(
    desk: Desk, plane: ControlPlane, client: ApiClient, space: str
) -> None:
    trainer(client, space)
    weak = Desk(plane, "system:kube-scheduler")
    ended = weak("quarantine", f"{space}/deploy/trainer", "--mode", "hold")
    assert ended.status == 2
    assert "you may not do that" in ended.problems
    assert ended.problems.count("\n") == 1
    assert quarantine_objects(client) == []
    dry = weak("undo", "--all", "--dry-run", "--json").document
    assert any("403" in row["why"] for row in dry["could_not_see"])
    assert desk.config != weak.config


def report(client: ApiClient, node: str, mode: str, at: float) -> None:
    path = f"{API}/nodereports"
    guard = ReportGuard("1", mode, True, "peace", mode == "observe")
    body = NodeReportObject(node, at, 1, "boot-1", guard).document()
    try:
        client.create(path, body)
    except ApiError:
        client.patch(f"{path}/{node}", {"report": body["report"]})


def test_the_brake_lists_whom_it_did_not_reach(
    desk: Desk, client: ApiClient, space: str, actor: ChangeWriter
) -> None:
    assert space
    names = [f"brake-{number}" for number in range(3)]
    for name in names:
        client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
                                        "metadata": {"name": name}})  # fmt: skip
    try:
        planned = desk("brake", "--dry-run", "--json").document
        assert planned["outcome"] == "planned"
        assert client.items(f"{API}/seawallpolicies") == []
        now = actor._client.server_seconds()
        report(client, names[0], "observe", now + 60.0)
        report(client, names[1], "enforce", now - 300.0)
        ended = desk("brake", "--wait", "0", "--reason", "drill", "--json")
        assert ended.status == 1
        states = {one["node"]: one["state"] for one in ended.document["guards"]}
        assert {states[name] for name in names[1:]} == {"not reached"}
        assert states[names[0]] == "observes"
        assert client.get(f"{API}/seawallpolicies/default")["spec"]["brake"] is True
        assert ("BrakeTripped", "SeawallPolicy") in told(client, "default")
        text = desk("brake", "--wait", "0")
        assert "WERE NOT REACHED" in text.words
        for name in names[1:]:
            report(client, name, "observe", now + 60.0)
        assert desk("brake", "--wait", "20").status in (0, 1)  # other tests' nodes may be there
        off = desk("brake", "--off")
        assert off.status == 0
        assert "nobody is armed by this" in off.words
        assert client.get(f"{API}/seawallpolicies/default")["spec"]["brake"] is False
    finally:
        for name in names:
            client.delete(f"/api/v1/nodes/{name}")


def test_a_guard_counts_only_by_what_it_said_since() -> None:
    def said(node: str, mode: str, at: float) -> NodeReportObject:
        guard = ReportGuard("1", mode, True, "", mode == "braked")
        return NodeReportObject(node, at, 1, "b", guard)

    rows = [said("a", "braked", 100.0), said("b", "braked", 99.0), said("c", "observe", 101.0)]
    answers = guard_answers(["c", "d", "b", "a"], {one.node: one for one in rows}, 100.0)
    assert [(one.node, one.state) for one in answers] == [
        ("a", "observes"), ("b", "not reached"), ("c", "not reached"), ("d", "not reached"),
    ]  # fmt: skip
    assert time_words(100.0)


def test_an_undo_needs_none_of_our_kinds(
    desk: Desk, client: ApiClient, space: str, actor: ChangeWriter
) -> None:
    """The last one: it takes the kinds away."""
    target = object_address(job(client, space, "etl"))
    original = lasting(client.get(target.path))
    actor.apply(ObjectChange(target, "q-1", SUSPEND, False, True))
    remove_kinds(client)
    assert desk("release", "q-1").status == 2
    ended = desk("undo", "--all")
    assert ended.status == 0, ended.out
    assert "workloadquarantines: the server has none" in ended.words
    assert lasting(client.get(target.path)) == original
