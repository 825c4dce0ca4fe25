"""Client, watches and lease on a real API server, which is killed and comes back."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.lease_writer import PATH as CONFIG_MAPS
from tests.cluster.waiting import wait_until

from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.kube.kube_client import (
    METADATA_LIST_ONLY,
    ClusterAccess,
    KubeClient,
    KubeRefusal,
)
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind
from seawall.cluster.kube.node_row import NodeRow, RowFields
from seawall.cluster.kube.node_watch import NodeWatch
from seawall.cluster.observer.node_life import NodeLife, NodeLifeEvent, NodeLifeKind

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).parents[2]
FIELDS = RowFields(
    ("node.kubernetes.io/instance-type",), (), (), ("karpenter.sh/disrupted",), (),
)  # fmt: skip
LEASE_SECONDS = 17


def access(plane: ControlPlane, user: str = "admin") -> ClusterAccess:
    server = f"https://127.0.0.1:{plane.port}"
    return ClusterAccess(server, str(plane.folder / "tls.crt"), token=plane.tokens[user])


@pytest.fixture
def kube(plane: ControlPlane) -> Iterator[KubeClient]:
    client = KubeClient(access(plane))
    yield client
    client.close()


class Watcher:
    """A watch of nodes in its thread, its events, and what they mean for the nodes' lives."""

    def __init__(self, client: KubeClient, life: NodeLife | None = None) -> None:
        self.life = NodeLife() if life is None else life
        self.events: list[ObjectEvent[NodeRow]] = []
        self.lives: list[NodeLifeEvent] = []
        self.client = client
        self.watch = NodeWatch(client, FIELDS, self.hear, relist_jitter_seconds=1.0)
        self.thread = threading.Thread(target=self.watch.run)

    def hear(self, event: ObjectEvent[NodeRow]) -> None:
        self.events.append(event)
        row, now = event.value, event.at_seconds
        if event.kind is ObjectEventKind.BROKEN:
            self.life.interrupt(now)
        elif row is None:
            self.lives += self.life.sign(now)
        elif event.kind is ObjectEventKind.GONE:
            self.lives += self.life.gone(row.name, now)
        else:
            self.lives += self.life.see(row, now)

    def __enter__(self) -> "Watcher":  # noqa: PYI034 - Self is of 3.11
        self.thread.start()
        wait_until(lambda: self.watch.is_synced, 30, "the first list is whole")
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.stop()
        self.thread.join(10)
        assert not self.thread.is_alive()

    def rows(self) -> dict[str, NodeRow]:
        return {row.name: row for row in self.watch.values()}

    def kinds(self) -> list[tuple[NodeLifeKind, str]]:
        return [(one.kind, one.row.name) for one in self.lives]


def test_requests_are_answered_as_the_api_promises(
    plane: ControlPlane, kube: KubeClient, nodes: KwokNodes, space: str
) -> None:
    names = nodes.add(3)
    maps = f"/api/v1/namespaces/{space}/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    made = kube.apply(f"{maps}/m", body, manager="one")
    with pytest.raises(KubeRefusal) as refused:
        kube.apply(f"{maps}/m", {**body, "data": {"a": "2"}}, manager="two")
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    assert kube.apply(f"{maps}/m", {**body, "data": {"a": "2"}}, manager="two", force=True)[
        "data"
    ] == {"a": "2"}
    assert kube.merge(f"{maps}/m", {"data": {"b": "3"}})["data"] == {"a": "2", "b": "3"}
    for write in (
        lambda: kube.replace(f"{maps}/m", made),  # of an old version
        lambda: kube.delete(f"{maps}/m", resource_version=made["metadata"]["resourceVersion"]),
        lambda: kube.delete(f"{maps}/m", uid="another"),
        lambda: kube.create(maps, body),
    ):
        with pytest.raises(KubeRefusal) as refused:
            write()
        assert refused.value.status == 409
    kube.delete(f"{maps}/m", uid=made["metadata"]["uid"])
    with pytest.raises(KubeRefusal) as refused:
        kube.get(f"{maps}/m")
    assert (refused.value.status, refused.value.reason) == (404, "NotFound")
    listed = kube.items("/api/v1/nodes", {"labelSelector": "kubernetes.io/os=linux"}, limit=1)
    assert sorted(one["metadata"]["name"] for one in listed) == names
    slim = kube.items("/api/v1/nodes", accept=METADATA_LIST_ONLY)
    assert {one["kind"] for one in slim} == {"PartialObjectMetadata"}
    status = {"status": {"conditions": []}}
    assert kube.merge(f"/api/v1/nodes/{names[0]}/status", status)["metadata"]["name"] == names[0]
    assert abs(kube.server_seconds() - time.time()) < 2.0
    counts = kube.request_counts()
    assert counts["list", "nodes", "200"] == 4
    assert counts["patch", "nodes/status", "200"] == 1
    with pytest.raises(KubeRefusal) as refused:
        KubeClient(access(plane, "system:kube-scheduler")).get("/api/v1/secrets")
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_an_account_of_a_pod_is_let_in_by_its_token_file(
    plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    request = kube.create(
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    (tmp_path / "token").write_text(request["status"]["token"])
    (tmp_path / "ca.crt").write_bytes((plane.folder / "tls.crt").read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1",
                   "KUBERNETES_SERVICE_PORT": str(plane.port)}  # fmt: skip
    client = KubeClient(ClusterAccess.in_cluster(environment, str(tmp_path)))
    with pytest.raises(KubeRefusal, match="system:serviceaccount:default:default") as refused:
        client.get("/api/v1/nodes")
    assert refused.value.status == 403
    (tmp_path / "token").write_text("none of yours")
    with pytest.raises(KubeRefusal) as refused:
        KubeClient(ClusterAccess.in_cluster(environment, str(tmp_path))).get("/api/v1/nodes")
    assert refused.value.status == 401


def test_lives_of_nodes_as_the_core_tells_them(
    kube: KubeClient, client: ApiClient, nodes: KwokNodes
) -> None:
    first, second, third, fourth = nodes.add(4)
    with Watcher(kube) as watcher:
        assert {row.stratum.pool for row in watcher.rows().values()} == {"gpu"}
        nodes.die(first)
        wait_until(lambda: (NodeLifeKind.DEATH, first) in watcher.kinds(), 60, "the death is seen")
        (death,) = watcher.lives
        assert death.death_kind is DeathKind.SILENT
        assert 0 <= death.observed_seconds - death.heartbeat_seconds < 5
        assert death.stratum_nodes == 4
        nodes.come_back(first)
        wait_until(lambda: len(watcher.lives) == 2, 10, "it is back")
        assert watcher.kinds()[1] == (NodeLifeKind.RECOVERED, first)
        # Meant to go: a mark more than 5 s before.
        taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
        client.patch(f"/api/v1/nodes/{second}", {"spec": {"taints": [taint]}})
        client.patch(f"/api/v1/nodes/{third}", {"spec": {"unschedulable": True}})
        nodes.die(second, third)
        wait_until(lambda: len(watcher.lives) == 4, 60, "both are seen")
        assert {kind for kind, _ in watcher.kinds()[2:]} == {NodeLifeKind.PLANNED}
        # A partition that ends.
        nodes.die(fourth)
        wait_until(lambda: len(watcher.lives) == 5, 60, "the partition is seen")
        nodes.come_back(fourth, rebooted=False)
        wait_until(lambda: len(watcher.lives) == 6, 10, "it is over")
        assert watcher.kinds()[4:] == [
            (NodeLifeKind.DEATH, fourth), (NodeLifeKind.RETRACTED, fourth),
        ]  # fmt: skip
        # A reset that is too short to be silent.
        nodes.come_back(first)
        wait_until(lambda: len(watcher.lives) == 7, 10, "the reset is seen")
        assert watcher.lives[6].death_kind is DeathKind.RESET


def test_a_watch_outlives_the_api_server_with_one_list_at_most(
    plane: ControlPlane, kube: KubeClient, client: ApiClient, nodes: KwokNodes
) -> None:
    names = nodes.add(5)
    with Watcher(kube) as watcher:
        for number in range(2):
            relists = watcher.watch.relists
            with plane.without_apiserver(client):
                wait_until(lambda: watcher.watch.problem, 30, "it is told that the API is away")
                time.sleep(3)
            label = {"metadata": {"labels": {"node.kubernetes.io/instance-type": f"p{number}"}}}
            client.patch(f"/api/v1/nodes/{names[number]}", label)
            took = wait_until(
                lambda name=names[number], pool=f"p{number}": watcher.rows()[name].pool == pool,
                30, "the change is heard of",
            )  # fmt: skip
            print(f"heard {took:.1f} s after the API server was back;", watcher.watch.restarts)
            assert watcher.watch.relists <= relists + 1
            assert not watcher.watch.problem
        kinds = [event.kind for event in watcher.events]
        assert ObjectEventKind.BROKEN in kinds
        assert watcher.watch.undecodable == 0


def test_an_outage_of_the_api_kills_nobody(
    plane: ControlPlane, kube: KubeClient, client: ApiClient, nodes: KwokNodes
) -> None:
    """Longer than the grace: the core says Unknown of everybody when it is back."""
    names = nodes.add(6)
    with Watcher(kube) as watcher:
        with plane.without_apiserver(client):
            nodes.die(*names)  # no lease is renewed until their kubelets have found the API again
            time.sleep(plane.times.grace + 4)
        wait_until(
            lambda: any(row.ready == "Unknown" for row in watcher.rows().values()),
            60, "the core calls them silent",
        )  # fmt: skip
        time.sleep(plane.times.check * 4)
        nodes.come_back(*names, rebooted=False)
        wait_until(
            lambda: all(row.ready == "True" for row in watcher.rows().values()), 60,
            "all are Ready again",
        )  # fmt: skip
        assert watcher.lives == []
        assert watcher.life.waiting == ()


class Writer:
    """``lease_writer`` as a process."""

    def __init__(self, plane: ControlPlane, identity: str) -> None:
        one = access(plane)
        self.identity = identity
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.lease_writer", one.server, one.ca_file,
             one.token, identity],
            cwd=REPOSITORY, stdout=subprocess.PIPE, text=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "src:."},
        )  # fmt: skip
        self.lines: list[str] = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def leads(self) -> int:
        return sum(line.startswith("leads") for line in self.lines)

    def __enter__(self) -> "Writer":  # noqa: PYI034 - Self is of 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def writes(audit: AuditLog, mark: int, identity: str) -> list[str]:
    """When this one's ConfigMap was written, in words of one length."""
    return [one.time for one in audit.since(mark) if one.resource == "configmaps" and one.is_write
            and one.status < 300 and one.name == identity]  # fmt: skip


def test_the_next_leads_after_a_kill_and_a_stopped_one_writes_nothing(
    plane: ControlPlane, client: ApiClient, audit: AuditLog
) -> None:
    mark = audit.mark()
    with Writer(plane, "one") as one:
        wait_until(one.leads, 20, "the first leads")
        with Writer(plane, "two") as two, Writer(plane, "three") as three:
            time.sleep(5)
            assert not two.leads()
            assert not three.leads()
            one.process.send_signal(signal.SIGKILL)
            took = wait_until(lambda: two.leads() or three.leads(), 30, "another one leads")
            print(f"{took:.1f} s from the kill to the next leader")
            assert took <= LEASE_SECONDS
            leader, other = (two, three) if two.leads() else (three, two)
            wait_until(lambda: writes(audit, mark, leader.identity), 10, "it writes")
            # Stopped in the middle of its writes, for longer than its lease.
            leader.process.send_signal(signal.SIGSTOP)
            took = wait_until(other.leads, 30, "the last one leads")
            print(f"{took:.1f} s from the stop to the next leader")
            assert took <= LEASE_SECONDS
            wait_until(lambda: writes(audit, mark, other.identity), 10, "it writes")
            leader.process.send_signal(signal.SIGCONT)
            wait_until(lambda: "fenced 1" in leader.lines, 10, "its next write is held back")
            time.sleep(3)
            last, first = writes(audit, mark, leader.identity)[-1], writes(
                audit, mark, other.identity)[0]  # fmt: skip
            assert last < first
            assert leader.leads() == 1
    for name in ("one", "two", "three"):
        client.delete(f"{CONFIG_MAPS}/{name}")
