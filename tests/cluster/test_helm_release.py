"""The chart by helm itself: what it says of wrong values, and install, upgrade, rollback, uninstall
on a real API server.  What the cluster has learnt outlives all of them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster import quarantined
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.background_loop import BackgroundLoop
from tests.cluster.control_plane import ControlPlane, exists
from tests.cluster.custom_resources import API, DEFINITIONS
from tests.cluster.helm_build import built
from tests.cluster.installed_seawall import pods_of
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.quarantined import GATE, QUARANTINES, quarantine, service_account
from tests.cluster.rendered_manifests import CHART, NAMESPACE, HelmProblem, helm, template
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import namespace

from seawall.cluster.changes.change_patch import ChangeOutcome
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import SUSPEND, TOLERATIONS
from seawall.cluster.changes.object_change import ObjectChange, object_address
from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture(scope="session")
def helm_program() -> Path:
    path = built()
    if path is None:
        pytest.skip("no helm is built: make plane (needs Go)")
    return path


# --- Values ----------------------------------------------------------------------------------


def test_helm_has_nothing_to_say_against_the_chart(helm_program: Path) -> None:
    words = helm(helm_program, "lint", "--strict", str(CHART))
    assert "1 chart(s) linted, 0 chart(s) failed" in words
    assert "WARNING" not in words


@pytest.mark.parametrize(("values", "words"), [
    ("imagee.tag=1", "imagee"), ("guard.enabled=maybe", "guard/enabled"),
    ("image.digest=sha256:12", "image/digest"), ("image.registry=r.test/", "image/registry"),
    ("observer.replicas=0", "observer/replicas"), ("agent.metricsPort=70000", "agent/metricsPort"),
    ("image.pullPolicy=Sometimes", "image/pullPolicy"), ("podMonitor.interval=soon", "interval"),
    ("observer.owners[0].apiGroup=*", "owners/0/apiGroup"), ("guard.toleration=x", "toleration"),
    ("guard.config=", "guard/config"), ("criticalPods=0", "criticalPods"),
    ("actor.levers.kill=true", "actor/levers"), ("actor.levers.hold=maybe", "actor/levers/hold"),
    ("actor.dryRun=false", "dryRun"), ("actor.protectedNamespaces={a}", "protectedNamespaces"),
    ("actor.protectedNamespaces={kube-system,A'}", "protectedNamespaces/1"),
    ("actor.switches[0].apiGroup=*", "switches/0/apiGroup"), ("actor.replicas=0", "actor/replicas"),
])  # fmt: skip
def test_a_wrong_value_is_refused_with_its_name(
    helm_program: Path, values: str, words: str
) -> None:
    with pytest.raises(HelmProblem) as refused:
        template(helm_program, "--set", values)
    assert words in str(refused.value)
    assert "values don't meet the specifications of the schema" in str(refused.value)


def test_the_image_is_what_the_values_say(helm_program: Path) -> None:
    def images(*values: str) -> set[str]:
        found = pods_of_text(template(helm_program, *(f"--set={value}" for value in values)))
        return {pod["containers"][0]["image"] for pod in found.values()}

    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert images() == {f"seawall:{version}"}
    assert images("image.registry=r.test:5000/team", "image.tag=v9") == {
        "r.test:5000/team/seawall:v9"
    }
    assert images("image.registry=r.test", "image.tag=v9", f"image.digest={DIGEST}") == {
        f"r.test/seawall@{DIGEST}"
    }


def pods_of_text(text: str) -> dict[str, Object]:
    """Of each workload its pod's spec."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in yaml.safe_load_all(text)
        if one and one["kind"] in {"DaemonSet", "Deployment"}
    }


def test_each_part_can_be_left_out_with_all_that_is_its(helm_program: Path) -> None:
    for part in ("guard", "agent", "observer"):
        text = template(helm_program, "--set", f"{part}.enabled=false")
        names = [one["metadata"]["name"] for one in yaml.safe_load_all(text) if one]
        assert not [name for name in names if name.startswith(f"seawall-{part}")]
        assert len(pods_of_text(text)) == 2


LEVERS: dict[str, set[tuple[str, str, str]]] = {
    "hold": {("patch", "", "pods")}, "gate": {("patch", "", "pods")},
    "stopCopies": {("delete", "", "pods"), ("patch", "", "pods")},
    "moveInnocents": {("delete", "", "pods")},
    "probation": {("patch", "", "nodes"), ("patch", "", "pods")},
    "suspend": {
        ("patch", "batch", "jobs"), ("patch", "batch", "cronjobs"),
        ("patch", "jobset.x-k8s.io", "jobsets"), ("patch", "kueue.x-k8s.io", "workloads"),
        ("patch", "ray.io", "rayjobs"), ("patch", "argoproj.io", "workflows"),
    },
    "scaleToZero": {("patch", "apps", "deployments"), ("patch", "apps", "statefulsets")},
    "rescue": {("create", "seawall.internal", "rescueorders"),
               ("delete", "seawall.internal", "rescueorders"),
               ("get", "seawall.internal", "rescueorders"),
               ("list", "seawall.internal", "rescueorders"),
               ("watch", "seawall.internal", "rescueorders")},
}  # fmt: skip


def test_each_lever_has_its_rights_and_no_other(helm_program: Path) -> None:
    def rights(*on: str) -> set[tuple[str, str, str]]:
        values = [f"actor.levers.{name}={str(name in on).lower()}" for name in LEVERS]
        text = template(helm_program, *(f"--set={one}" for one in ("actor.enabled=true", *values)))
        (role,) = [
            one for one in yaml.safe_load_all(text)
            if one and one["kind"] == "ClusterRole" and one["metadata"]["name"] == "seawall-actor"
        ]  # fmt: skip
        return {
            (verb, group, resource)
            for rule in role["rules"]
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }

    none = rights()
    writes = {(verb, *what) for verb, *what in none if verb not in {"get", "list", "watch"}}
    assert writes == {
        ("patch", "seawall.internal", "workloadquarantines"),
        ("patch", "seawall.internal", "workloadquarantines/status"),
        ("patch", "seawall.internal", "seawallpolicies/status"),
        ("create", "events.k8s.io", "events"),
    }
    for name, added in LEVERS.items():
        assert rights(name) - none == added, name
    assert rights(*LEVERS) - none == set().union(*LEVERS.values())


def test_the_mutating_policy_is_there_where_the_server_has_its_kind(helm_program: Path) -> None:
    def versions(*served: str) -> set[str]:
        flags = [f"--api-versions=admissionregistration.k8s.io/{one}/MutatingAdmissionPolicy"
                 for one in served]  # fmt: skip
        text = template(helm_program, "--set=actor.enabled=true", *flags)
        found = [one for one in yaml.safe_load_all(text) if one]
        return {one["apiVersion"] for one in found if one["kind"].startswith("Mutating")}

    assert versions() == set()
    assert versions("v1beta1") == {"admissionregistration.k8s.io/v1beta1"}
    assert versions("v1beta1", "v1") == {"admissionregistration.k8s.io/v1"}


def test_places_secrets_and_paths_are_what_the_values_say(helm_program: Path) -> None:
    values = [
        "image.pullSecrets={one,two}", "agent.nodeSelector.pool=a", "agent.tolerations[0].key=k",
        "observer.tolerations[0].operator=Exists", "observer.keepOff[0].key=pool",
        "observer.keepOff[0].operator=In", "observer.keepOff[0].values={system}",
        "guard.resources.requests.memory=1Gi", "guard.tracing=false",
        "guard.containerdTasks=/run/k3s/tasks", "observer.replicas=3",
    ]  # fmt: skip
    pods = pods_of_text(template(helm_program, *(f"--set={value}" for value in values)))
    for pod in pods.values():
        assert pod["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    guard, agent, observer = (pods[f"seawall-{x}"] for x in ("guard", "agent", "observer"))
    assert agent["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "a"}
    assert agent["tolerations"] == [{"key": "k"}]
    assert observer["tolerations"] == [{"operator": "Exists"}]
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    (term,) = observer["affinity"]["nodeAffinity"][rule]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "pool", "operator": "In", "values": ["system"]}]
    assert observer["affinity"]["podAntiAffinity"][rule][0]["topologyKey"] == (
        "kubernetes.io/hostname"
    )
    assert guard["containers"][0]["resources"]["requests"]["memory"] == "1Gi"
    places = {mount["mountPath"] for mount in guard["containers"][0]["volumeMounts"]}
    assert "/run/k3s/tasks" in places
    assert not [path for path in places if path.startswith("/sys/kernel")]


def test_monitoring_is_there_when_it_is_asked_for(helm_program: Path) -> None:
    on = [f"--set={name}.enabled=true" for name in ("podMonitor", "prometheusRule", "dashboards")]
    documents = [one for one in yaml.safe_load_all(template(helm_program, *on)) if one]
    monitors = [one for one in documents if one["kind"] == "PodMonitor"]
    assert {one["metadata"]["name"] for one in monitors} == {"seawall-agent", "seawall-observer"}
    with_actor = template(helm_program, "--set=actor.enabled=true", *on)
    assert "seawall-actor" in {
        one["metadata"]["name"] for one in yaml.safe_load_all(with_actor)
        if one and one["kind"] == "PodMonitor"
    }  # fmt: skip
    ports = {
        port["name"]
        for name in ("seawall-agent", "seawall-observer")
        for port in pods_of_text(template(helm_program))[name]["containers"][0]["ports"]
    }
    assert {end["port"] for one in monitors for end in one["spec"]["podMetricsEndpoints"]} == ports
    for path in sorted((CHART / "files/dashboards").glob("*.json")):
        (found,) = [one["data"][path.name] for one in documents if one["kind"] == "ConfigMap"
                    and path.name in one["data"]]  # fmt: skip
        assert json.loads(found) == json.loads(path.read_text())
    off = [one["kind"] for one in yaml.safe_load_all(template(helm_program)) if one]
    assert not {"PodMonitor", "PrometheusRule"} & set(off)


# --- A release -------------------------------------------------------------------------------


class Release:
    """Helm's commands against one control plane."""

    def __init__(self, plane: ControlPlane, program: Path, home: Path) -> None:
        self.program = program
        self.environment = {
            "KUBECONFIG": str(plane.kubeconfig("admin")), "HOME": str(home),
            "PATH": os.environ["PATH"],
        }  # fmt: skip

    def run(self, *arguments: str) -> str:
        return helm(self.program, *arguments, "--namespace", NAMESPACE,
                    environment=self.environment)  # fmt: skip


@pytest.fixture(scope="module")
def new_plane(program: Path, kwok: Path) -> Iterator[ControlPlane]:
    with ControlPlane(program, kwok=kwok) as plane:
        yield plane


def test_what_was_learnt_outlives_upgrade_rollback_and_uninstall(
    new_plane: ControlPlane, helm_program: Path, tmp_path: Path
) -> None:
    release = Release(new_plane, helm_program, tmp_path)
    with KwokNodes(new_plane) as nodes, new_plane.client() as admin:
        nodes.add(3)
        namespace(admin, NAMESPACE)
        words = release.run("install", "seawall", str(CHART))
        notes_of_a_first_install(words)
        wait_until(lambda: len(pods_of(admin, "seawall-agent")) == 3, 60, "three agents run")
        wait_until(lambda: len(pods_of(admin, "seawall-observer")) == 2, 60, "two observers run")
        learn(admin)
        kept = definitions(admin)

        label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
        admin.patch(f"/api/v1/namespaces/{NAMESPACE}", label)
        words = release.run(
            "upgrade", "seawall", str(CHART), "--set", "image.tag=next,agent.enabled=false"
        )
        assert "has no label for privileged pods" not in words
        assert image_of(admin, "daemonsets", "seawall-guard") == "seawall:next"
        assert not has(admin, "/apis/apps/v1", "daemonsets", "seawall-agent")
        assert not any("agent" in name for name in policies(admin))

        release.run("rollback", "seawall", "1")
        assert image_of(admin, "daemonsets", "seawall-guard") != "seawall:next"
        assert has(admin, "/apis/apps/v1", "daemonsets", "seawall-agent")
        assert definitions(admin) == kept

        release.run("uninstall", "seawall")
        left = [name for name in policies(admin) if name.startswith("seawall")]
        assert not left
        assert not has(admin, "/apis/apps/v1", "deployments", "seawall-observer")
        assert definitions(admin) == kept
        remembered(admin)

        release.run("install", "seawall", str(CHART))
        assert definitions(admin) == kept
        remembered(admin)
        release.run("uninstall", "seawall")
        admin.delete(f"/api/v1/namespaces/{NAMESPACE}")


def test_an_actor_comes_and_goes_and_takes_its_policies_along(
    new_plane: ControlPlane, helm_program: Path, tmp_path: Path
) -> None:
    release = Release(new_plane, helm_program, tmp_path)
    with KwokNodes(new_plane) as nodes, new_plane.client() as admin:
        nodes.add(3)
        wait_until(lambda: not exists(admin, f"/api/v1/namespaces/{NAMESPACE}"), 60, "it is free")
        namespace(admin, NAMESPACE)
        namespace(admin, "ml")
        service_account(admin, "ml", "trainer")
        release.run("install", "seawall", str(CHART))
        match = {"namespace": "ml", "generateNamePrefix": "hog-"}
        admin.create(QUARANTINES, quarantine("hog", match))
        assert is_taken(admin)

        on = ("--set", "actor.enabled=true")
        release.run("upgrade", "seawall", str(CHART), *on, "--dry-run=server")
        assert not has(admin, "/apis/apps/v1", "deployments", "seawall-actor")
        words = release.run("upgrade", "seawall", str(CHART), *on)
        assert "dryRun: false" in words
        wait_until(lambda: len(pods_of(admin, "seawall-actor")) == 2, 60, "two actors run")
        wait_until(lambda: not is_taken(admin), 30, "what is in quarantine waits")
        assert exists(admin, IN_FORCE)

        # What a person or the observer wrote in between outlives an upgrade.
        admin.patch(IN_FORCE, {"data": {"hog": "Active gate"}})
        release.run("upgrade", "seawall", str(CHART), *on, "--set", "actor.levers.hold=false")
        assert admin.get(IN_FORCE)["data"] == {"hog": "Active gate"}

        release.run("upgrade", "seawall", str(CHART), "--set", "actor.enabled=false")
        wait_until(lambda: is_taken(admin), 30, "nothing holds it back")
        assert not [name for name in policies(admin) if "actor" in name or "quarantined" in name]
        assert not exists(admin, IN_FORCE)

        release.run("rollback", "seawall", "2")
        wait_until(lambda: not is_taken(admin), 30, "it waits again")
        release.run("uninstall", "seawall", "--no-hooks")
        wait_until(lambda: is_taken(admin), 30, "nothing holds it back")
        assert not [name for name in policies(admin) if name.startswith("seawall")]
        assert exists(admin, f"{QUARANTINES}/hog")
        admin.delete(f"{QUARANTINES}/hog")
        admin.delete(f"/api/v1/namespaces/{NAMESPACE}")


HELD = [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"}
        for taint in ("not-ready", "unreachable")]  # fmt: skip


def test_an_uninstall_in_the_middle_of_each_lever_puts_back_what_was_changed(
    new_plane: ControlPlane, helm_program: Path, tmp_path: Path
) -> None:
    """A pod that is held without an end yet, one that waits, a Job that is suspended."""
    release = Release(new_plane, helm_program, tmp_path)
    with KwokNodes(new_plane) as nodes, new_plane.client() as admin:
        nodes.add(2)
        wait_until(lambda: not exists(admin, f"/api/v1/namespaces/{NAMESPACE}"), 60, "it is free")
        namespace(admin, NAMESPACE)
        namespace(admin, "mid")
        service_account(admin, "mid", "trainer")
        release.run("install", "seawall", str(CHART), "--set", "actor.enabled=true")
        job = admin.create("/apis/batch/v1/namespaces/mid/jobs", quarantined.job("train"))
        held = admin.create("/api/v1/namespaces/mid/pods", quarantined.pod("mid"))
        admin.create(QUARANTINES, quarantine("hog", {"namespace": "mid", "images": ["x"]},
                                             mode="suspend"))  # fmt: skip
        waiting = quarantined.pod("mid")
        waiting["spec"]["schedulingGates"] = [{"name": GATE}]
        waiting = admin.create("/api/v1/namespaces/mid/pods", waiting)
        access = ClusterAccess(f"https://127.0.0.1:{new_plane.port}",
                               ca_file=str(new_plane.folder / "tls.crt"),
                               token=new_plane.tokens["admin"])  # fmt: skip
        client = KubeClient(access)
        writer = ChangeWriter(client, "seawall-actor")
        before = held["spec"]["tolerations"]
        for target, path, was, after in (
            (object_address(held), TOLERATIONS, before, HELD),
            (object_address(job), SUSPEND, False, True),
        ):
            written = writer.apply(ObjectChange(target, "hog", path, was, after))
            assert written.outcome is ChangeOutcome.WRITTEN, written
        client.close()
        with JobRunner(new_plane, tmp_path) as runner:
            release.run("uninstall", "seawall")
        assert runner.status == 0, runner.said
        pods = "/api/v1/namespaces/mid/pods"
        assert admin.get(f"{pods}/{held['metadata']['name']}")["spec"]["tolerations"] == before
        let_go = admin.get(f"{pods}/{waiting['metadata']['name']}")["spec"]
        assert "schedulingGates" not in let_go
        assert admin.get("/apis/batch/v1/namespaces/mid/jobs/train")["spec"]["suspend"] is False
        assert admin.get(f"{QUARANTINES}/hog")["spec"]["state"] == "Released"
        assert not [name for name in policies(admin) if name.startswith("seawall")]
        assert not has(admin, "/apis/batch/v1", "jobs", "seawall-undo")
        admin.delete(f"{QUARANTINES}/hog")
        admin.delete("/api/v1/namespaces/mid")
        admin.delete(f"/api/v1/namespaces/{NAMESPACE}")


class JobRunner(BackgroundLoop):
    """In a kubelet's place: the command of the hook's pod, by a token of its account."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder
        self.status: int | None = None
        self.said = ""
        super().__init__()

    def run(self) -> None:
        with self.plane.client() as admin:
            while not self.ended.wait(0.5):
                found = admin.items(f"/api/v1/namespaces/{NAMESPACE}/pods",
                                    labelSelector="job-name=seawall-undo")  # fmt: skip
                running = [one for one in found if one["status"].get("phase") == "Running"]
                if running:
                    self.carry_out(admin, running[0])
                    return

    def carry_out(self, admin: ApiClient, pod: Object) -> None:
        account = pod["spec"]["serviceAccountName"]
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        token = admin.create(f"{accounts}/{account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {},
        })["status"]["token"]  # fmt: skip
        config = self.folder / "undo.kubeconfig"
        config.write_text(json.dumps(self.plane.kubeconfig_of(token)))
        (container,) = pod["spec"]["containers"]
        assert container["command"][0] == "seawall"
        done = subprocess.run(
            [sys.executable, "-m", *container["command"], "--kubeconfig", str(config)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        self.status, self.said = done.returncode, done.stdout + done.stderr
        phase = "Failed" if done.returncode else "Succeeded"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
        admin.patch(path, {"status": {"phase": phase}})


IN_FORCE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/seawall-in-force"


def is_taken(admin: ApiClient) -> bool:
    """Whether a pod of the workload in quarantine would be made, and without a gate."""
    try:
        made = admin.request(
            "POST", "/api/v1/namespaces/ml/pods", quarantined.pod("ml"), dryRun="All"
        )
    except ApiError:
        return False
    return not made["spec"].get("schedulingGates")


def notes_of_a_first_install(words: str) -> None:
    assert "has no label for privileged pods" in words
    assert "kubectl label namespace seawall pod-security.kubernetes.io/enforce=privileged" in words
    assert "image.registry is empty" in words
    assert "kubectl get wq" in words
    lines = words.partition("NOTES:")[2].splitlines()
    assert max(map(len, lines)) <= 110


def learn(admin: ApiClient) -> None:
    at = "2026-11-29T01:02:03.000004Z"
    admin.create(f"{API}/nodedeaths", {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "NodeDeath", "metadata": {"name": "a-1"},
        "spec": {"nodeName": "a", "bootID": "1", "kind": "Silent", "heartbeatAt": at,
                 "observedAt": at},
    })  # fmt: skip


def remembered(admin: ApiClient) -> None:
    assert [one["metadata"]["name"] for one in admin.items(f"{API}/nodedeaths")] == ["a-1"]


def definitions(admin: ApiClient) -> dict[str, str]:
    """uid by name: none was deleted and made again."""
    found = admin.items(DEFINITIONS)
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}


def policies(admin: ApiClient) -> list[str]:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    return [one["metadata"]["name"] for one in admin.items(path)]


def has(admin: ApiClient, api: str, plural: str, name: str) -> bool:
    return exists(admin, f"{api}/namespaces/{NAMESPACE}/{plural}/{name}")


def image_of(admin: ApiClient, plural: str, name: str) -> str:
    found = admin.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/{plural}/{name}")
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])
