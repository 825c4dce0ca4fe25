"""The chart and the plain manifests that are rendered from it, without a cluster."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.agent.pages import HERE, MIB, Pages
from tests.agent.test_last_death import Film
from tests.architecture.manifest import PACKAGING
from tests.cluster import account_rights, custom_resources, helm_build
from tests.cluster.rendered_manifests import (
    ACTOR,
    ACTOR_FILE,
    CHART,
    FOLDER,
    MUTATING_FILE,
    NAMESPACE,
    documents,
    stale,
)
from tests.cluster_observer.test_cluster_objects import READERS
from tests.guard.telling import group

from seawall.agent import node_conditions
from seawall.agent.culprits import culprits_of
from seawall.agent.node_messages import distress_part, guard_part, report_body
from seawall.agent.page_watch import PageWatch
from seawall.cluster.objects import api_group
from seawall.version import VERSION

ACCOUNTS = {"seawall-guard", "seawall-agent", "seawall-observer"}
OPERATOR = "seawall-operator"
"""A ClusterRole for people, whom a verb of theirs has to be allowed."""
ACTORS = "request.userInfo.username == 'system:serviceaccount:seawall:seawall-actor'"


@pytest.fixture(scope="module")
def whole() -> list[dict[str, Any]]:
    return documents()


@pytest.fixture(scope="module")
def acting() -> list[dict[str, Any]]:
    """What an actor adds."""
    return documents(ACTOR)


def of_kind(whole: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in whole if one["kind"] == kind}


def pods(whole: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    owners = {**of_kind(whole, "DaemonSet"), **of_kind(whole, "Deployment")}
    return {name: one["spec"]["template"]["spec"] for name, one in owners.items()}


def test_they_are_as_the_chart_renders_them() -> None:
    program = helm_build.built()
    if program is None:
        pytest.skip("no helm is built: make plane (needs Go)")
    assert not stale(program), "make manifests"


def test_kinds_and_the_namespace_come_first_and_nothing_twice(whole: list[dict[str, Any]]) -> None:
    kinds = [one["kind"] for one in whole]
    assert kinds[:6] == ["CustomResourceDefinition"] * 5 + ["Namespace"]
    places = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
              for one in whole]  # fmt: skip
    assert len(set(places)) == len(places)
    for one in whole:
        assert one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "seawall"
        assert one["metadata"].get("namespace") in {None, NAMESPACE, "default"}
    (space,) = of_kind(whole, "Namespace").values()
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_chart_and_manifests_are_of_this_version(whole: list[dict[str, Any]]) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == VERSION
    # The one that packaging/Containerfile and `make dist` name; a digest is the owner's to give.
    for pod in pods(whole).values():
        assert [one["image"] for one in pod["containers"]] == [f"seawall:{VERSION}"]


def test_the_values_hold_to_their_schema_and_each_key_has_a_type() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values, schema)
    assert set(values) == set(schema["properties"]) - {"global"}
    for name, part in values.items():
        if isinstance(part, dict):
            assert set(part) == set(schema["properties"][name]["properties"])
    for part in objects_of(schema):
        assert "additionalProperties" in part or "properties" not in part


def objects_of(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield value
        for below in value.values():
            yield from objects_of(below)


# --- Accounts --------------------------------------------------------------------------------


def test_each_pod_has_an_account_of_its_own_and_a_token_only_who_needs_one(
    whole: list[dict[str, Any]],
) -> None:
    accounts = of_kind(whole, "ServiceAccount")
    assert set(accounts) == ACCOUNTS == set(pods(whole))
    assert not any(one["automountServiceAccountToken"] for one in accounts.values())
    for name, pod in pods(whole).items():
        assert pod["serviceAccountName"] == name
        assert pod["automountServiceAccountToken"] == (name != "seawall-guard")
        assert pod["enableServiceLinks"] is False


def test_no_right_is_wild_or_makes_more_of_itself(whole: list[dict[str, Any]]) -> None:
    roles = [one for one in whole if one["kind"] in {"Role", "ClusterRole"}]
    rules = [rule for one in roles if one["metadata"]["name"] != OPERATOR for rule in one["rules"]]
    for rule in rules:
        words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not [word for word in words if "*" in word]
        assert not {"escalate", "bind", "impersonate", "approve"} & set(rule["verbs"])
        assert "deletecollection" not in rule["verbs"]
        assert not {"secrets", "pods/exec", "nodes/proxy", "serviceaccounts/token"} & set(
            rule["resources"]
        )
        assert not {"rbac.authorization.k8s.io", "admissionregistration.k8s.io"} & set(
            rule["apiGroups"]
        )
        if not set(rule["apiGroups"]) & {
            "seawall.internal",
            "events.k8s.io",
            "coordination.k8s.io",
        }:
            assert set(rule["verbs"]) <= {"get", "list", "watch"} or rule["resources"] == [
                "nodes/status"
            ]


def test_the_role_of_people_is_bound_to_nobody_and_reads_no_secret(
    whole: list[dict[str, Any]],
) -> None:
    [role] = [one for one in whole if one["metadata"]["name"] == OPERATOR]
    bindings = [one for one in whole if one["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    assert bindings
    assert OPERATOR not in {one["roleRef"]["name"] for one in bindings}
    for rule in role["rules"]:
        words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not [word for word in words if "*" in word]
        assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])
        assert not {"secrets", "configmaps", "pods/exec", "nodes/proxy"} & set(rule["resources"])
        if "delete" in rule["verbs"]:
            assert rule["apiGroups"] == ["seawall.internal"]


def test_the_page_tells_each_right(whole: list[dict[str, Any]]) -> None:
    found = account_rights.of_manifests(whole, NAMESPACE)
    assert {one.account for one in found} == ACCOUNTS - {"seawall-guard"}
    assert found == account_rights.told()


def test_each_fence_is_shut_and_refuses(whole: list[dict[str, Any]]) -> None:
    policies = of_kind(whole, "ValidatingAdmissionPolicy")
    bindings = of_kind(whole, "ValidatingAdmissionPolicyBinding")
    assert set(policies) == set(bindings)
    page = account_rights.PAGE.read_text()
    for name, policy in policies.items():
        assert policy["spec"]["failurePolicy"] == "Fail"
        spec = bindings[name]["spec"]
        assert spec == {"policyName": name, "validationActions": ["Deny"]}
        assert f"| `{name}` |" in page
        (condition,) = policy["spec"]["matchConditions"]
        owner = re.match(r"seawall-(agent|observer)-", name)
        if owner:
            account = f"system:serviceaccount:{NAMESPACE}:seawall-{owner[1]}"
            assert condition["expression"] == f"request.userInfo.username == '{account}'"


def test_without_the_actors_folder_nothing_of_it_is_there(
    whole: list[dict[str, Any]], acting: list[dict[str, Any]]
) -> None:
    def places(documents: list[dict[str, Any]]) -> set[tuple[str, str | None, str]]:
        return {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
                for one in documents}  # fmt: skip

    assert len(places(acting)) == len(acting)
    assert not places(whole) & places(acting)
    assert not [name for _, _, name in places(whole) if "actor" in name or "quarantined" in name]
    assert not of_kind(whole, "MutatingAdmissionPolicy")
    assert set(of_kind(acting, "MutatingAdmissionPolicy")) == {"seawall-quarantined-pods"}
    assert {one["kind"] for one in documents(ACTOR, ACTOR_FILE)}.isdisjoint(
        {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    )


def test_the_actors_rights_are_of_the_page_and_no_more_than_its_levers(
    whole: list[dict[str, Any]], acting: list[dict[str, Any]]
) -> None:
    found = account_rights.of_manifests(whole + acting, NAMESPACE)
    assert found == account_rights.told(with_actor=True)
    for role in [one for one in acting if one["kind"] in {"Role", "ClusterRole"}]:
        for rule in role["rules"]:
            words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not [word for word in words if "*" in word]
            assert not {"escalate", "bind", "impersonate", "approve", "deletecollection"} & set(
                rule["verbs"]
            )


def test_each_fence_of_the_actor_is_about_it_and_shut(acting: list[dict[str, Any]]) -> None:
    policies = of_kind(acting, "ValidatingAdmissionPolicy")
    bindings = of_kind(acting, "ValidatingAdmissionPolicyBinding")
    assert set(policies) == set(bindings)
    page = account_rights.PAGE.read_text()
    for name, policy in policies.items():
        assert f"| `{name}` |" in page
        first = policy["spec"]["matchConditions"][0]["expression"]
        if name == "seawall-quarantined-pods":
            assert policy["spec"]["failurePolicy"] == "Ignore"
            assert bindings[name]["spec"]["paramRef"] == {
                "selector": {}, "parameterNotFoundAction": "Allow",
            }  # fmt: skip
        else:
            assert policy["spec"]["failurePolicy"] == "Fail"
            assert first == ACTORS
        # Deny is said before it is looked at who asks: it would be for everybody.
        reference = bindings[name]["spec"].get("paramRef", {})
        assert reference.get("parameterNotFoundAction", "Allow") == "Allow"
    (mutating,) = of_kind(acting, "MutatingAdmissionPolicy").values()
    assert mutating["spec"]["failurePolicy"] == "Ignore"
    validating = policies["seawall-quarantined-pods"]["spec"]
    for part in ("matchConstraints", "matchConditions", "variables", "paramKind"):
        assert mutating["spec"][part] == validating[part]


def test_the_actors_pods_are_as_the_observers(
    whole: list[dict[str, Any]], acting: list[dict[str, Any]]
) -> None:
    observer, actor = (
        of_kind(documents, "Deployment")[f"seawall-{name}"]
        for documents, name in ((whole, "observer"), (acting, "actor"))
    )
    text = json.dumps(actor).replace("seawall-actor", "seawall-observer")
    text = text.replace('"name": "actor"', '"name": "observer"').replace('"--act", ', "")
    assert json.loads(text.replace("9444", "9443")) == observer
    (container,) = actor["spec"]["template"]["spec"]["containers"]
    assert container["command"][:4] == ["seawall", "cluster", "controller", "--act"]


def test_the_agents_conditions_are_let_through(whole: list[dict[str, Any]]) -> None:
    policy = of_kind(whole, "ValidatingAdmissionPolicy")["seawall-agent-node"]
    (ours,) = [one["expression"] for one in policy["spec"]["variables"] if one["name"] == "ours"]
    assert set(node_conditions.TYPES) <= set(re.findall(r"'(\w+)'", ours))


# --- Pods ------------------------------------------------------------------------------------


def test_the_charts_guard_is_the_daemonsets(whole: list[dict[str, Any]]) -> None:
    """packaging/daemonset.yaml is what tests of nodes run, and says why each line is there."""
    config, theirs = yaml.safe_load_all((PACKAGING / "daemonset.yaml").read_text())
    pod = dict(theirs["spec"]["template"]["spec"])
    del pod["affinity"]  # a trial's nodes, which the values name
    ours = dict(pods(whole)["seawall-guard"])
    assert ours.pop("serviceAccountName") == "seawall-guard"
    assert ours == pod
    assert of_kind(whole, "ConfigMap")["seawall-guard"]["data"] == config["data"]
    update = of_kind(whole, "DaemonSet")["seawall-guard"]["spec"]["updateStrategy"]
    assert update == theirs["spec"]["updateStrategy"]


def test_agent_and_observer_have_no_more_than_they_need(whole: list[dict[str, Any]]) -> None:
    agent, observer = (pods(whole)[f"seawall-{name}"] for name in ("agent", "observer"))
    for pod in (agent, observer):
        (container,) = pod["containers"]
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"]["drop"] == ["ALL"]
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostPID", "hostNetwork", "hostIPC"} & set(pod)
    assert agent["containers"][0]["securityContext"]["capabilities"]["add"] == [
        "IPC_LOCK", "SYS_NICE",
    ]  # fmt: skip
    mounts = agent["containers"][0]["volumeMounts"]
    assert {one["mountPath"] for one in mounts if not one.get("readOnly")} == {
        "/run/seawall/orders", "/var/lib/seawall/orders",
    }  # fmt: skip
    assert "limits" not in agent["containers"][0]["resources"]
    context = observer["containers"][0]["securityContext"]
    assert context["runAsNonRoot"] is True
    assert "add" not in context["capabilities"]
    assert not observer.get("volumes")


def test_two_observers_are_never_on_one_node_nor_on_a_watched_pool(
    whole: list[dict[str, Any]],
) -> None:
    deployment = of_kind(whole, "Deployment")["seawall-observer"]["spec"]
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    (apart,) = deployment["template"]["spec"]["affinity"]["podAntiAffinity"][rule]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    labels = deployment["template"]["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    affinity = deployment["template"]["spec"]["affinity"]["nodeAffinity"][rule]
    (term,) = affinity["nodeSelectorTerms"]
    assert {"key": "nvidia.com/gpu.present", "operator": "NotIn", "values": ["true"]} in term[
        "matchExpressions"
    ]


def test_system_priority_classes_are_within_the_quota(whole: list[dict[str, Any]]) -> None:
    (quota,) = of_kind(whole, "ResourceQuota").values()
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert {pod["priorityClassName"] for pod in pods(whole).values()} == set(scope["values"])


# --- Kinds -----------------------------------------------------------------------------------


def test_the_kinds_are_those_of_the_code(whole: list[dict[str, Any]]) -> None:
    found = {
        (
            one["spec"]["group"], one["spec"]["versions"][0]["name"],
            one["spec"]["names"]["kind"], one["spec"]["names"]["plural"],
            one["spec"]["names"]["shortNames"][0],
            "subresources" in one["spec"]["versions"][0],
        )
        for one in of_kind(whole, "CustomResourceDefinition").values()
    }  # fmt: skip
    assert found == {
        (api_group.GROUP, api_group.VERSION, one.kind, one.plural, one.short_name,
         one.has_status_subresource)
        for one in api_group.CUSTOM_KINDS
    }  # fmt: skip


@pytest.mark.parametrize("definition", custom_resources.definitions(),
                         ids=lambda one: one["spec"]["names"]["singular"])  # fmt: skip
def test_all_that_a_kind_holds_is_bounded_and_keeps_what_is_of_a_later_version(
    definition: dict[str, Any],
) -> None:
    assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    (version,) = definition["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for name in ("apiVersion", "kind", "metadata"):
        del properties[name]
    loose = list(unbounded(properties.items()))
    assert not loose
    for column in version["additionalPrinterColumns"]:
        assert column["type"] in {"string", "integer", "number", "boolean", "date"}


def unbounded(properties: Any, way: str = "") -> Iterator[str]:
    for name, schema in properties:
        here = f"{way}.{name}"
        if "type" not in schema:  # a field of any object, as it was
            assert schema.get("x-kubernetes-preserve-unknown-fields") is True
            assert name in {"before", "after"}
            continue
        kind = schema["type"]
        if kind == "string" and not {"maxLength", "enum", "format"} & set(schema):
            yield here
        if kind == "array":
            if "maxItems" not in schema:
                yield here
            yield from unbounded([("[]", schema["items"])], here)
        if kind == "object":
            if not {"x-kubernetes-preserve-unknown-fields", "maxProperties"} & set(schema):
                yield here
            yield from unbounded(schema.get("properties", {}).items(), here)


def test_what_the_code_writes_is_of_these_kinds(tmp_path: Path) -> None:
    """Each object that observer and agent make, at its fullest, is valid by the schema of its kind;
    rules of CEL are tried on the real API server.
    """
    pages = Pages(tmp_path / "run")
    pages.decide()
    pages.short(decided=True)
    watch = PageWatch(str(pages.folder), HERE, time.monotonic())
    watch.look(time.monotonic())
    assert watch.page is not None
    film = Film(tmp_path / "box")
    film.dying(-30, 0, [group(outside=1900 * MIB, most=1990 * MIB)])
    report = report_body("node-7", {
        "at": "2026-11-23T10:00:31.000000Z", "sequence": 7, "bootID": HERE,
        "guard": guard_part(watch.page),
        "distress": distress_part(watch.page, culprits_of(watch.page, ())),
        "lastDeath": film.death(),
    })  # fmt: skip
    schemas = {
        one["spec"]["names"]["kind"]: one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for one in custom_resources.definitions()
    }
    whole = [thing.document() for thing, _ in READERS.values()] + [json.loads(report)]
    assert {one["kind"] for one in whole} == set(schemas)
    for one in whole:
        jsonschema.validate(one, schemas[one["kind"]])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**whole[0], "spec": {}}, schemas[whole[0]["kind"]])


def test_the_folder_has_nothing_else() -> None:
    assert [path.name for path in sorted(FOLDER.iterdir())] == [
        "0-kinds.yaml", "1-namespace.yaml", "2-seawall.yaml",
    ]  # fmt: skip
    assert [path.name for path in sorted(ACTOR.iterdir())] == [ACTOR_FILE, MUTATING_FILE]
