"""Seawall's four kinds of objects on a real API server: what they take, refuse, keep and show."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster import custom_resources
from tests.cluster.api_client import MERGE, ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API, DEFINITIONS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

AT = "2026-11-29T01:02:03.000004Z"
UID = "5e0cd1b7-0b86-4d2e-9c0f-2f1a3b4c5d6e"
KEYS = [{"level": 1, "value": UID, "nodes": 3}, {"level": 2, "value": "ml/train-#", "nodes": 3}]
COLUMNS = {
    "nodedeaths": ["Explained", "Memory", "train-llm"],
    "workloadquarantines": ["Suspected", "convicted", "6.43"],
    "seawallpolicies": [],
    "nodereports": ["short", "observe", "train-llm-0", "Unclean"],
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

OBJECTS: dict[str, Object] = {
    "nodedeaths": {
        "kind": "NodeDeath", "metadata": {"name": "gpu-a100-0017-1a2b3c4d"},
        "spec": {
            "nodeName": "gpu-a100-0017", "nodeUID": UID, "bootID": "1a2b3c4d-0000",
            "kind": "Silent",
            "stratum": {"pool": "a100", "kernel": "6.8.0-1030-gcp", "capacityType": "spot",
                        "zone": "zone-a", "nodes": 400, "zoneNodes": 900},
            "domain": "rack-7", "heartbeatAt": AT, "observedAt": AT,
        },
        "status": {
            "phase": "Explained", "reason": "", "namedAfterSeconds": 2.5,
            "cause": {"class": "Memory", "confidence": "Proved"},
            "culprit": {"namespace": "ml", "kind": "JobSet", "name": "train-llm",
                        "certainBytes": 1 << 38, "mostBytes": 1 << 39},
            "record": [{"kind": "Proved", "pods": [UID], "text": "holds 256 GiB", "at": AT,
                        "source": "agent"}],
            "workloads": [{"pod": UID, "podName": "train-llm-0", "namespace": "ml",
                           "ownerKind": "JobSet", "ownerName": "train-llm", "ownerUID": UID,
                           "keys": KEYS, "isStatic": False}],
            "unseen": ["events"],
        },
    },
    "workloadquarantines": {
        "kind": "WorkloadQuarantine", "metadata": {"name": "ml-train-llm-0a1b2c3d"},
        "spec": {
            "workload": {"namespace": "ml", "kind": "JobSet", "name": "train-llm"},
            "key": {"level": 2, "value": "ml/train-#"},
            "match": {"namespace": "ml", "ownerUIDs": [UID], "labels": {"app": "train"}},
            "state": "Suspected", "mode": "tell", "reason": "on 3 of 3 nodes that died",
            "deaths": ["gpu-a100-0017-1a2b3c4d"], "expiresAt": AT,
        },
    },
    "seawallpolicies": {
        "kind": "SeawallPolicy", "metadata": {"name": "default"},
        "spec": {"protectedNamespaces": ["kube-system"], "falsePerThousandNodeYears": 0.1,
                 "poolLabels": ["node.kubernetes.io/instance-type"],
                 "plannedTaints": ["karpenter.sh/disrupted"], "brake": False,
                 "actions": {
                     "dryRun": False, "approval": "auto", "levers": {"hold": True, "gate": False},
                     "namespaces": [{"name": "ml", "approval": "observe",
                                     "levers": {"rescue": True}}],
                     "brakes": {"nodesLeast": 3, "heldPodsShare": 0.01, "viewAgeSeconds": 20},
                 }},
    },
    "nodereports": {
        "kind": "NodeReport", "metadata": {"name": "gpu-a100-0017"},
        "spec": {"nodeName": "gpu-a100-0017"},
        "report": {
            "at": AT, "sequence": 7, "bootID": "1a2b3c4d-0000",
            "guard": {"version": "0.1.0", "mode": "observe", "canKill": True, "state": "short"},
            "distress": {
                "at": AT, "headroomBytes": -4096, "headroomSeconds": 3.5, "decision": "none",
                "culprits": [{"podUID": UID, "namespace": "ml", "pod": "train-llm-0",
                              "container": "main", "certainBytes": 1, "mostBytes": 2,
                              "isProved": True}],
            },
            "lastDeath": {"bootID": "0", "at": AT, "ended": "Unclean",
                          "record": [{"kind": "OomLine", "pods": [UID], "text": "x", "at": AT}],
                          "samples": [{"at": AT, "headroomBytes": 1, "memoryStallShare": 0.9}]},
        },
    },
}  # fmt: skip
STATUS: Object = {
    "verdict": "convicted", "scoreLog10": 6.43, "thresholdLog10": 6.0, "proved": 2,
    "falsePerThousandNodeYears": 0.1, "nodes": ["a", "b", "c"], "whyNot": "",
    "companions": [{"level": 2, "value": "ml/peer", "namespace": "ml", "kind": "Job", "name": "p"}],
    "chance": {"nodes": 400, "withWorkload": 3, "deaths": 3, "deathsWithWorkload": 3,
               "probability": 1e-7},
    "namedAt": AT, "namedAfterSeconds": 2.5,
    "actions": [
        {"lever": "hold", "kind": "Pod", "namespace": "ml", "name": "train-llm-0", "uid": UID,
         "at": AT, "path": "/spec/tolerations", "after": [{"operator": "Exists"}],
         "result": "done", "undoneAt": AT, "problem": ""},
        {"lever": "suspend", "at": AT, "path": "/spec/suspend", "before": False, "after": True,
         "result": "dry-run"},
        {"lever": "scaleToZero", "at": AT, "before": 3, "after": 0, "result": "refused"},
        {"lever": "hold", "at": AT, "before": {"a": [1, "x"]}, "result": "failed"},
    ],
    "approvedBy": "ada@example.org", "pods": [{"uid": UID, "node": "gpu-2"}],
    "canary": {"pod": "train-llm-1", "uid": UID, "node": "gpu-2", "bootID": UID, "since": AT,
               "verdict": "passed"},
}  # fmt: skip


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[ApiClient]:
    with plane.client() as client:
        custom_resources.install(client)
        yield client


@pytest.fixture(autouse=True)
def none_left(admin: ApiClient) -> Iterator[None]:
    yield
    for plural in OBJECTS:
        admin.delete(f"{API}/{plural}")


def example(plural: str, *changes: tuple[str, Any]) -> Object:
    """One that is right, but for what stands at these paths."""
    whole = copy.deepcopy(OBJECTS[plural])
    whole["apiVersion"] = "seawall.internal/v1alpha1"
    for path, value in changes:
        at: Any = whole
        *way, last = path.split(".")
        for step in way:
            at = at[int(step)] if step.isdigit() else at[step]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return whole


def refusal(admin: ApiClient, plural: str, *changes: tuple[str, Any]) -> str:
    with pytest.raises(ApiError) as refused:
        admin.create(f"{API}/{plural}", example(plural, *changes))
    assert refused.value.status == 422
    return str(refused.value)


def test_the_schemas_are_structural_and_no_name_is_refused(admin: ApiClient) -> None:
    for one in custom_resources.definitions():
        found = admin.get(f"{DEFINITIONS}/{one['metadata']['name']}")
        states = {row["type"]: row["status"] for row in found["status"]["conditions"]}
        assert (states["NamesAccepted"], states["Established"]) == ("True", "True")
        assert "NonStructuralSchema" not in states
        assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize("plural", OBJECTS)
def test_what_was_written_is_read_again_with_fields_of_a_later_version(
    admin: ApiClient, plural: str
) -> None:
    whole = example(plural)
    parts = [part for part in ("spec", "status", "report") if part in whole]
    for part in parts:
        later(whole[part])
    admin.create(f"{API}/{plural}", whole)
    found = admin.get(f"{API}/{plural}/{whole['metadata']['name']}")
    for part in parts:
        assert found[part] == whole[part]


def later(value: Any) -> None:
    """In each object below it a field that nobody knows yet."""
    for below in value.values() if isinstance(value, dict) else value:
        if isinstance(below, (dict, list)):
            later(below)
    if isinstance(value, dict) and "app" not in value:  # labels are people's
        value["ofALaterVersion"] = {"deep": [1]}


def test_a_quarantines_status_is_written_by_itself(admin: ApiClient) -> None:
    path = f"{API}/workloadquarantines"
    name = admin.create(path, example("workloadquarantines", ("status", STATUS)))["metadata"][
        "name"
    ]
    assert "status" not in admin.get(f"{path}/{name}")
    changed = {"status": STATUS, "spec": {"reason": "by way of the status"}}
    admin.patch(f"{path}/{name}/status", changed)
    found = admin.get(f"{path}/{name}")
    assert found["status"] == STATUS
    assert found["spec"]["reason"] == "on 3 of 3 nodes that died"


@pytest.mark.parametrize(("changes", "words"), [
    ([("spec.match", {"namespace": "ml"})], "match must say more than a namespace"),
    ([("spec.match", {"namespace": "ml", "serviceAccount": "default"})], "more than a namespace"),
    ([("spec.match", {"namespace": "ml", "images": [], "labels": {}, "generateNamePrefix": ""})],
     "more than a namespace"),
    ([("spec.match.namespace", None)], "spec.match.namespace"),
    ([("spec.match.namespace", "")], "spec.match.namespace"),
    ([("spec.state", "Guilty")], 'Unsupported value: "Guilty"'),
    ([("spec.mode", "kill")], 'Unsupported value: "kill"'),
    ([("spec.key.level", 5)], "spec.key.level"),
    ([("spec.match.images", ["i"] * 65)], "spec.match.images"),
    ([("spec.reason", "x" * 1025)], "spec.reason"),
    ([("spec.expiresAt", "tomorrow")], "spec.expiresAt"),
], ids=lambda one: one if isinstance(one, str) else None)  # fmt: skip
def test_a_quarantine_that_is_wrong_is_refused(
    admin: ApiClient, changes: list[tuple[str, Any]], words: str
) -> None:
    assert words in refusal(admin, "workloadquarantines", *changes)


@pytest.mark.parametrize("match", [
    {"generateNamePrefix": "train-"}, {"serviceAccount": "trainer"}, {"images": ["r.test/i:1"]},
    {"labels": {"app": "train"}}, {"ownerUIDs": [UID]},
], ids=lambda one: next(iter(one)))  # fmt: skip
def test_one_thing_more_than_the_namespace_is_enough(admin: ApiClient, match: Object) -> None:
    whole = example("workloadquarantines", ("spec.match", {"namespace": "ml", **match}))
    admin.create(f"{API}/workloadquarantines", whole)


def test_a_match_stays_and_a_state_moves_forward_only(admin: ApiClient) -> None:
    path = f"{API}/workloadquarantines"
    path += "/" + admin.create(path, example("workloadquarantines"))["metadata"]["name"]
    with pytest.raises(ApiError, match="match cannot be changed"):
        admin.patch(path, {"spec": {"match": {"namespace": "other"}}})
    with pytest.raises(ApiError, match="match cannot be changed"):
        admin.patch(path, {"spec": {"match": {"images": ["r.test/i:1"]}}})
    order = ["Suspected", "Proposed", "Active", "Canary", "Active", "Released"]
    for at, state in enumerate(order):
        admin.patch(path, {"spec": {"state": state}})
        in_force = {"Active", "Canary"}
        for earlier in order[:at]:
            if {earlier, state} <= in_force:
                continue  # a trial ends, and the quarantine goes on
            with pytest.raises(ApiError, match="state only moves forward"):
                admin.patch(path, {"spec": {"state": earlier}})


def test_a_report_bears_its_nodes_name_and_is_bounded(admin: ApiClient) -> None:
    assert "bears the name of its node" in refusal(admin, "nodereports", ("spec.nodeName", "other"))
    many = OBJECTS["nodereports"]["report"]["distress"]["culprits"] * 6
    assert "culprits" in refusal(admin, "nodereports", ("report.distress.culprits", many))
    samples = OBJECTS["nodereports"]["report"]["lastDeath"]["samples"] * 13
    assert "samples" in refusal(admin, "nodereports", ("report.lastDeath.samples", samples))
    assert "text" in refusal(admin, "nodereports", ("report.lastDeath.record.0.text", "x" * 513))


ACTIONS = "spec.actions"


@pytest.mark.parametrize(("path", "value"), [
    ("dryRun", "no"), ("approval", "never"), ("canarySeconds", 5),
    ("levers.hold", "yes"), ("brakes.nodesLeast", 1),
    ("brakes.heldPodsShare", 1.5), ("brakes.viewAgeSeconds", 0), ("namespaces.0.name", None),
    ("namespaces.0.approval", "x"), ("namespaces", [{"name": "a"}, {"name": "a"}]),
])  # fmt: skip
def test_a_policys_actions_that_are_wrong_are_refused(
    admin: ApiClient, path: str, value: Any
) -> None:
    words = refusal(admin, "seawallpolicies", (f"{ACTIONS}.{path}", value))
    assert path.replace(".0.", "[0].") in words


@pytest.mark.parametrize("status", [
    {"actions": [{"lever": "hold", "at": AT}]}, {"actions": [{"at": "x", "lever": "a",
                                                              "result": "done"}]},
    {"actions": STATUS["actions"] * 17}, {"pods": [{"uid": "u"}]},
    {"pods": [{"uid": "u", "node": "a"}] * 1001}, {"approvedBy": "x" * 254},
    {"canary": {"node": "a"}},
], ids=lambda one: str(one)[:40])  # fmt: skip
def test_a_quarantines_actions_are_bounded(admin: ApiClient, status: Object) -> None:
    path = f"{API}/workloadquarantines"
    name = admin.create(path, example("workloadquarantines"))["metadata"]["name"]
    with pytest.raises(ApiError) as refused:
        admin.patch(f"{path}/{name}/status", {"status": status})
    assert refused.value.status == 422


def test_there_is_one_policy(admin: ApiClient) -> None:
    assert "its name is default" in refusal(admin, "seawallpolicies", ("metadata.name", "second"))
    for rate in (0, 0.0009, -1, 11):
        words = refusal(admin, "seawallpolicies", ("spec.falsePerThousandNodeYears", rate))
        assert "falsePerThousandNodeYears" in words
    for rate in (0.001, 1, 10):
        whole = example("seawallpolicies", ("spec.falsePerThousandNodeYears", rate))
        admin.create(f"{API}/seawallpolicies", whole)
        admin.delete(f"{API}/seawallpolicies/default")


def test_a_death_is_bounded(admin: ApiClient) -> None:
    workloads = OBJECTS["nodedeaths"]["status"]["workloads"] * 257
    assert "workloads" in refusal(admin, "nodedeaths", ("status.workloads", workloads))
    assert "heartbeatAt" in refusal(admin, "nodedeaths", ("spec.heartbeatAt", None))
    assert "phase" in refusal(admin, "nodedeaths", ("status.phase", "Dead"))


@pytest.mark.parametrize("plural", OBJECTS)
def test_what_kubectl_prints_fits_80_columns(admin: ApiClient, plural: str) -> None:
    whole = example(plural)
    path = f"{API}/{plural}"
    admin.create(path, whole)
    if plural == "workloadquarantines":
        admin.patch(f"{path}/{whole['metadata']['name']}/status", {"status": STATUS}, MERGE)
    lines = table(admin, path)
    print(*lines, sep="\n")
    assert max(map(len, lines)) <= 80
    for word in COLUMNS[plural]:
        assert word in lines[1]


def table(admin: ApiClient, path: str) -> list[str]:
    """As `kubectl get` prints it: the server's table, three spaces between columns."""
    admin.connection.request("GET", path, None, {**admin.headers(), "Accept": TABLE})
    answer = json.loads(admin.connection.getresponse().read())
    shown = [at for at, one in enumerate(answer["columnDefinitions"]) if not one["priority"]]
    rows = [[answer["columnDefinitions"][at]["name"].upper() for at in shown]]
    rows += [[cell(row["cells"][at]) for at in shown] for row in answer["rows"]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(shown))]
    return ["   ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
            for row in rows]  # fmt: skip


def cell(value: object) -> str:
    return "<none>" if value is None else str(value)
