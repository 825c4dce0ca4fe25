"""The observer on a real control plane: who is named, when, and what it wrote."""

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API
from tests.cluster.kwok_nodes import KwokNodes, condition
from tests.cluster.observed_cluster import (
    add_nodes,
    assert_only_own_objects,
    counting,
    replayed,
    silent,
    start_workloads,
    verdicts,
)
from tests.cluster.observer_process import (
    NAMESPACE,
    ObserverProcess,
    objects,
    ready_for_observers,
    shown,
    watched_for_a_month,
)
from tests.cluster.slow_killer import SlowKiller
from tests.cluster.waiting import wait_until

from seawall.cluster.objects.api_group import NODE_DEATH, WORKLOAD_QUARANTINE
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture
def observed(plane: ControlPlane, client: ApiClient) -> None:
    ready_for_observers(client)
    watched_for_a_month(client)


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
    add_nodes(client, nodes)
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


def test_with_a_record_it_is_suspect_at_the_first_and_convicted_at_the_second(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, observed: None,
    tmp_path: Path,
) -> None:  # fmt: skip
    add_nodes(client, nodes)
    start_workloads(client, space)
    with (
        ObserverProcess(plane, tmp_path) as observer,
        SlowKiller(plane, nodes, space, "hog", delivered=1.0) as killer,
    ):
        wait_until(observer.leads, 30, "it leads")
        killer.kill()
        wait_until(lambda: verdicts(client) == {"hog": "suspected"}, 40,
                   f"hog is suspected\n{observer.log()}")  # fmt: skip
        after = time.monotonic() - killer.reported_at[0]
        assert after < 15
        others = others_status(client)
        killer.kill()
        wait_until(lambda: verdicts(client) == {"hog": "convicted"}, 60,
                   f"hog is convicted\n{observer.log()}")  # fmt: skip
        assert len(killer.killed) == 2
        (found,) = client.items(f"{API}/workloadquarantines")
        assert found["status"].items() >= others.items()
        deaths = counting(client)
        assert [one.phase.value for one in deaths] == ["explained"] * 2
        assert {one.culprit.name for one in deaths if one.culprit} == {"hog"}
        print(f"suspected {after:.1f} s after the report, score {score_is_replayed(client):.2f}")


def others_status(client: ApiClient) -> Object:
    """What actor and people write into the one quarantine's status, which no observer knows."""
    (found,) = client.items(f"{API}/workloadquarantines")
    action = {"lever": "hold", "at": "2026-11-29T01:02:03Z", "result": "done", "later": [1]}
    status = {"actions": [action], "approvedBy": "ada", "canary": {"pod": "a"}, "later": {"a": 1}}
    client.patch(f"{API}/workloadquarantines/{found['metadata']['name']}/status",
                 {"status": status})  # fmt: skip
    return status


@contextlib.contextmanager
def two_observers(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, folder: Path
) -> Iterator[tuple[ObserverProcess, ObserverProcess, SlowKiller]]:
    """The first leads; hog is suspected, after two deaths."""
    add_nodes(client, nodes)
    start_workloads(client, space)
    with (
        ObserverProcess(plane, folder, "first") as first,
        SlowKiller(plane, nodes, space, "hog") as killer,
    ):
        wait_until(first.leads, 30, "the first leads")
        with ObserverProcess(plane, folder, "second") as second:
            killer.kill(2)
            wait_until(lambda: verdicts(client).get("hog") == "suspected", 90,
                       f"hog is suspected\n{first.log()}")  # fmt: skip
            yield first, second, killer


def test_a_dead_leader_is_followed_by_one_that_says_the_same(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, observed: None,
    tmp_path: Path,
) -> None:  # fmt: skip
    """The first is killed by SIGKILL, and gives nothing back."""
    with two_observers(plane, client, nodes, space, tmp_path) as (first, second, _):
        before = score_is_replayed(client)
        first.signal(signal.SIGKILL)
        killed_at = time.monotonic()
        wait_until(second.leads, 20, f"the second leads\n{second.log()}")
        taken = time.monotonic() - killed_at
        assert score_is_replayed(client) == before
        assert len(objects(client, NODE_DEATH)) == 2
        print(f"the next led after {taken:.1f} s; score {before:.3f}")


def test_a_leader_that_was_stopped_writes_nothing_when_it_goes_on(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, audit: AuditLog,
    observed: None, tmp_path: Path,
) -> None:  # fmt: skip
    """The next leader is stopped in turn before the third death is visible, so that there is
    something to write when the first goes on: it must leave that to the one who holds the lease.
    """
    with two_observers(plane, client, nodes, space, tmp_path) as (first, second, killer):
        wait_until(lambda: time.monotonic() > killer.last + 14, 14, "the next death is near")
        killer.kill()
        first.signal(signal.SIGSTOP)
        taken = wait_until(second.leads, 20, f"the second leads\n{second.log()}")
        second.signal(signal.SIGSTOP)
        assert len(silent(client)) == 2
        wait_until(lambda: len(silent(client)) == 3, 30, "the third death is visible")
        mark = audit.mark()
        first.signal(signal.SIGCONT)
        time.sleep(4)  # the lease of the second runs on
        own = [one for one in audit.since(mark) if one.user == first.user and one.is_write]
        assert own == []
        assert len(objects(client, NODE_DEATH)) == 2
        second.signal(signal.SIGCONT)
        wait_until(lambda: verdicts(client).get("hog") == "convicted", 20,
                   f"hog is convicted\n{first.log()}\n{second.log()}")  # fmt: skip
        score = score_is_replayed(client)
        deaths = objects(client, NODE_DEATH)
        assert sorted(one["spec"]["nodeName"] for one in deaths) == sorted(killer.killed)
        print(f"the next led after {taken:.1f} s; score {score:.3f}")


def test_an_api_server_that_was_away_kills_nobody(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, observed: None,
    tmp_path: Path,
) -> None:  # fmt: skip
    """All leases run out at once meanwhile, and the core says of all nodes that they are silent."""
    add_nodes(client, nodes)
    start_workloads(client, space)
    with ObserverProcess(plane, tmp_path) as observer:
        wait_until(observer.leads, 30, "it leads")
        plane.kill_apiserver()
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
