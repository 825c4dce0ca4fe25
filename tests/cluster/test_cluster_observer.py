"""The observer on a real control plane: who is named, when, and what it wrote."""

import threading
import time
from pathlib import Path

import pytest
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import Hardware, KwokNodes, condition, now
from tests.cluster.observer_process import (
    NAMESPACE,
    ObserverProcess,
    objects,
    ready_for_observers,
    shown,
    watched_for_a_month,
)
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, pod_spec, pods, running_nodes, runs

from seawall.cluster.judge.cluster_judge import ClusterJudge
from seawall.cluster.objects.api_group import (
    API_VERSION,
    CLUSTER_POLICY,
    NODE_DEATH,
    NODE_REPORT,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.node_death_object import NodeDeathObject, node_death_object
from seawall.cluster.objects.seawall_policy_object import seawall_policy_object
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

NODES = 24
APART_SECONDS = 26
"""Deaths within 20 s of each other are one incident, and count once."""


@pytest.fixture
def observed(plane: ControlPlane, client: ApiClient) -> None:
    ready_for_observers(client)
    watched_for_a_month(client)


class SlowKiller:
    """A workload that kills the node under one of its pods, then the next not before 26 s."""

    def __init__(self, plane: ControlPlane, nodes: KwokNodes, space: str, name: str,
                 report: bool = False) -> None:  # fmt: skip
        self.plane, self.nodes, self.space, self.name = plane, nodes, space, name
        self.report = report
        self.killed: list[str] = []
        self.reported_at: list[float] = []
        self.most = 0
        self.last = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self) -> "SlowKiller":  # noqa: PYI034 - Self is of 3.11
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def kill(self, more: int = 1) -> None:
        self.most += more

    def run(self) -> None:
        with self.plane.client("kubelets") as client:
            while not self.ended.wait(0.25):
                due = time.monotonic() - self.last >= APART_SECONDS
                if not due or len(self.killed) >= self.most:
                    continue
                for pod in pods(client, self.space, self.name):
                    node = pod["spec"].get("nodeName")
                    if runs(pod) and node in self.nodes.alive:
                        if self.report:
                            tell_as_its_agent(client, node, pod)
                            self.reported_at.append(time.monotonic())
                        self.nodes.die(node)
                        self.killed.append(node)
                        self.last = time.monotonic()
                        break


def tell_as_its_agent(client: ApiClient, node: str, pod: Object) -> None:
    boot = client.get(f"/api/v1/nodes/{node}")["status"]["nodeInfo"]["bootID"]
    culprit = {
        "podUID": pod["metadata"]["uid"], "namespace": pod["metadata"]["namespace"],
        "pod": pod["metadata"]["name"], "container": "main", "certainBytes": 80 << 30,
        "mostBytes": 90 << 30, "isProved": True,
    }  # fmt: skip
    at = now(micro=True)
    distress = {
        "at": at, "headroomBytes": 1 << 28, "headroomSeconds": 4.5,
        "uncountedBytes": 100 << 30, "culprits": [culprit], "decision": "observe",
    }  # fmt: skip
    guard = {"version": "0.1.0", "mode": "observe", "canKill": False, "state": "short"}
    report = {"at": at, "sequence": 1, "bootID": boot, "guard": guard, "distress": distress}
    client.create(path_of(NODE_REPORT), {
        "apiVersion": API_VERSION, "kind": NODE_REPORT.kind, "metadata": {"name": node},
        "spec": {"nodeName": node}, "report": report,
    })  # fmt: skip


def add_nodes(nodes: KwokNodes) -> None:
    """Each in a rack of its own: deaths in one rack within half an hour count once."""
    for rack in range(NODES):
        nodes.add(1, Hardware(labels={"topology.kubernetes.io/rack": f"rack-{rack}"}))


def start_workloads(client: ApiClient, space: str) -> None:
    deploy(client, space, "web", 8, pod_spec("registry.test/web:1"))
    deploy(client, space, "api", 3, pod_spec("registry.test/api:1"))
    deploy(client, space, "hog", 3, pod_spec("registry.test/hog:1"))
    for name, count in (("web", 8), ("api", 3), ("hog", 3)):
        wait_until(
            lambda name=name, count=count: len(running_nodes(client, space, name)) == count,
            60, f"{count} of {name} run",
        )  # fmt: skip


def counting(client: ApiClient) -> list[NodeDeathObject]:
    deaths = [node_death_object(one) for one in objects(client, NODE_DEATH)]
    return sorted(
        (one for one in deaths if one.counts), key=lambda one: (one.heartbeat_seconds, one.name)
    )


def verdicts(client: ApiClient) -> dict[str, str]:
    """By name of the workload."""
    found = {}
    for document in objects(client, WORKLOAD_QUARANTINE):
        one = workload_quarantine_object(document)
        found[one.workload.name] = one.status.verdict.value if one.status else ""
    return found


def replayed(client: ApiClient, deaths: list[NodeDeathObject]) -> ClusterJudge:
    """A judge that reads what stands in the cluster."""
    policy = seawall_policy_object(client.get(path_of(CLUSTER_POLICY, "default")))
    judge = ClusterJudge(policy.judge_policy())
    assert policy.status.watched_since_seconds is not None
    judge.watch_from(policy.status.watched_since_seconds)
    for one in deaths:
        judge.add(one.to_judge())
    return judge


def score_is_replayed(client: ApiClient) -> float:
    """Of the worst quarantine: as a judge says it that reads the same deaths."""
    (document,) = [one for one in objects(client, WORKLOAD_QUARANTINE)
                   if one["spec"]["workload"]["name"] == "hog"]  # fmt: skip
    one = workload_quarantine_object(document)
    (said,) = replayed(client, counting(client)).judge([one.key])
    assert one.status is not None
    assert one.status.score_log10 is not None
    assert abs(said.score_log10 - one.status.score_log10) < 1e-9
    assert said.deaths == one.deaths
    return said.score_log10


def test_the_right_one_is_named_by_the_third_death_and_nobody_else(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, audit: AuditLog,
    observed: None, tmp_path: Path,
) -> None:  # fmt: skip
    """No agent says a word."""
    mark = audit.mark()
    add_nodes(nodes)
    start_workloads(client, space)
    with (
        ObserverProcess(plane, tmp_path) as observer,
        SlowKiller(plane, nodes, space, "hog") as killer,
    ):
        wait_until(observer.leads, 30, "it leads")
        killer.kill()
        wait_until(lambda: len(counting(client)) == 1, 40, f"one death\n{observer.log()}")
        time.sleep(2)
        assert verdicts(client) == {}, "one death tells nothing"
        killer.kill()
        wait_until(lambda: len(counting(client)) == 2, 60, f"two deaths\n{observer.log()}")
        wait_until(lambda: verdicts(client).get("hog") == "suspected", 10,
                   f"hog is suspected\n{observer.log()}")  # fmt: skip
        assert "convicted" not in verdicts(client).values()
        killer.kill()
        wait_until(lambda: len(counting(client)) == 3, 60, f"three deaths\n{observer.log()}")
        wait_until(lambda: verdicts(client) == {"hog": "convicted"}, 10,
                   f"hog alone is convicted\n{observer.log()}")  # fmt: skip
        assert {one.node for one in counting(client)} == set(killer.killed)
        score = score_is_replayed(client)
        (document,) = objects(client, WORKLOAD_QUARANTINE)
        one = workload_quarantine_object(document)
        assert one.status is not None
        assert one.status.named_after_seconds is not None
        assert one.status.named_after_seconds <= 5
        assert (one.state.value, one.mode.value) == ("proposed", "tell")
        numbers = observer.metrics()
        requests = numbers["seawall_death_requests_sum"] / numbers["seawall_death_requests_count"]
        print(f"score {score:.2f}, mark {one.status.threshold_log10:.2f}, named after "
              f"{one.status.named_after_seconds:.2f} s, {requests:.1f} requests a death, "
              f"{observer.resident_bytes() >> 20} MiB")  # fmt: skip
        print(shown(document))
        assert numbers["seawall_death_to_name_seconds_count"] == 1
        assert numbers["seawall_leader"] == 1
        assert_events(client, space, killer.killed)
    assert observer.process is not None
    assert observer.process.returncode == 0, observer.log()
    lease = client.get(
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/seawall-observer"
    )
    assert not lease["spec"].get("holderIdentity"), "the lease was given back"
    assert_only_own_objects(audit, mark, observer.user)


def assert_events(client: ApiClient, space: str, killed: list[str]) -> None:
    def told(namespace: str) -> set[tuple[str, str, str]]:
        events = client.items(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        return {
            (one["reason"], one["regarding"]["kind"], one["regarding"]["name"])
            for one in events
            if one.get("reportingController") == "seawall.internal/observer"
        }

    for node in killed:
        assert ("NodeDeathObserved", "Node", node) in told("default")
    of_space = told(space)
    assert ("WorkloadConvicted", "Deployment", "hog") in of_space
    assert ("WorkloadSuspected", "Deployment", "hog") in of_space
    assert {name for _, kind, name in of_space if kind == "Deployment"} <= {"hog", "api"}
    assert any(kind == "Pod" and name.startswith("hog-") for _, kind, name in of_space)


def assert_only_own_objects(audit: AuditLog, mark: int, user: str) -> None:
    """And all that it wrote was taken: nothing was refused, nothing was tried in vain."""
    own = [one for one in audit.since(mark) if one.user == user and one.is_write]
    written = {(one.verb, one.resource) for one in own if one.status < 300}
    print("written:", *sorted(f"{verb} {resource}" for verb, resource in written), sep=", ")
    group = "seawall.internal"
    assert written <= {
        ("create", f"nodedeaths.{group}"), ("patch", f"nodedeaths.{group}"),
        ("create", f"workloadquarantines.{group}"), ("patch", f"workloadquarantines.{group}"),
        ("delete", f"workloadquarantines.{group}"),
        ("patch", f"workloadquarantines/status.{group}"),
        ("patch", f"seawallpolicies/status.{group}"),
        ("create", "events.events.k8s.io"),
        ("create", "leases.coordination.k8s.io"), ("update", "leases.coordination.k8s.io"),
    }  # fmt: skip
    assert {one.status for one in own} <= {200, 201, 409}, [one for one in own if one.status > 201]


def test_with_a_record_it_is_suspect_at_the_first_and_convicted_at_the_second(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, observed: None,
    tmp_path: Path,
) -> None:  # fmt: skip
    add_nodes(nodes)
    start_workloads(client, space)
    with (
        ObserverProcess(plane, tmp_path) as observer,
        SlowKiller(plane, nodes, space, "hog", report=True) as killer,
    ):
        wait_until(observer.leads, 30, "it leads")
        killer.kill()
        wait_until(lambda: verdicts(client) == {"hog": "suspected"}, 40,
                   f"hog is suspected\n{observer.log()}")  # fmt: skip
        after = time.monotonic() - killer.reported_at[0]
        assert after < 15
        killer.kill()
        wait_until(lambda: verdicts(client) == {"hog": "convicted"}, 60,
                   f"hog is convicted\n{observer.log()}")  # fmt: skip
        assert len(killer.killed) == 2
        deaths = counting(client)
        assert [one.phase.value for one in deaths] == ["explained"] * 2
        assert {one.culprit.name for one in deaths if one.culprit} == {"hog"}
        print(f"suspected {after:.1f} s after the report, score {score_is_replayed(client):.2f}")


def test_a_dead_leader_is_followed_by_one_that_says_the_same(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, observed: None,
    tmp_path: Path,
) -> None:  # fmt: skip
    """The first is killed by SIGKILL, and gives nothing back."""
    add_nodes(nodes)
    start_workloads(client, space)
    with (
        ObserverProcess(plane, tmp_path, "first") as first,
        SlowKiller(plane, nodes, space, "hog") as killer,
    ):
        wait_until(first.leads, 30, "the first leads")
        with ObserverProcess(plane, tmp_path, "second") as second:
            killer.kill(2)
            wait_until(lambda: verdicts(client).get("hog") == "suspected", 90,
                       f"hog is suspected\n{first.log()}")  # fmt: skip
            before = score_is_replayed(client)
            assert first.process is not None
            first.process.kill()
            killed_at = time.monotonic()
            wait_until(second.leads, 20, f"the second leads\n{second.log()}")
            taken = time.monotonic() - killed_at
            assert score_is_replayed(client) == before
            assert len(objects(client, NODE_DEATH)) == 2
        print(f"the next led after {taken:.1f} s; score {before:.3f}")


def test_an_api_server_that_was_away_kills_nobody(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, observed: None,
    tmp_path: Path,
) -> None:  # fmt: skip
    """All leases run out at once meanwhile, and the core says of all nodes that they are silent."""
    add_nodes(nodes)
    start_workloads(client, space)
    with ObserverProcess(plane, tmp_path) as observer:
        wait_until(observer.leads, 30, "it leads")
        part = plane.parts["kube-apiserver"]
        part.kill()
        part.wait()
        time.sleep(40)
        plane.start_apiserver()
        began = time.monotonic()
        wait_until(lambda: plane.is_ready(client), 60, "the API server is back")
        ready = time.monotonic() - began
        # A kubelet says at once that it is Ready, whatever the core wrote meanwhile.
        nodes.come_back(*nodes.names, rebooted=False)
        wait_until(lambda: restarted(observer), 40, f"the watch goes on\n{observer.log()}")
        resumed = time.monotonic() - began - ready
        wait_until(
            lambda: {condition(one) for one in client.items("/api/v1/nodes")} == {"True"},
            60,
            "all nodes are Ready",
        )
        time.sleep(65)  # what was seen in the first minute would count by now
        assert objects(client, NODE_DEATH) == []
        assert objects(client, WORKLOAD_QUARANTINE) == []
        assert resumed < 30
        print(f"ready after {ready:.1f} s, watch resumed {resumed:.1f} s later")
        print(observer.log())


def restarted(observer: ObserverProcess) -> bool:
    numbers = observer.metrics()
    return numbers['seawall_watch_staleness_seconds{resource="nodes"}'] < 5
