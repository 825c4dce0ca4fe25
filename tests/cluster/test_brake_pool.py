"""The brake over a large pool: whom it reached, whom it did not, and how long it takes."""

import os
import time
from collections.abc import Iterator

import pytest
from tests.cluster.api_client import MERGE, ApiClient, Object
from tests.cluster.background_loop import BackgroundLoop
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API
from tests.cluster.kwok_nodes import KwokNodes, now
from tests.cluster.observer_process import ready_for_observers
from tests.cluster.test_action_verbs import Desk

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

NODES = int(os.environ.get("SEAWALL_BRAKE_NODES", "300"))
REPORTS = f"{API}/nodereports"
POLICY = f"{API}/seawallpolicies/default"
HEARD_SECONDS = (2.0, 30.0)
"""An agent asks for the policy each 30 s, or where it is in trouble more often."""


def report(node: str, state: str = "ample", *, brake: bool = False, at: str = "") -> Object:
    guard = {"version": "0.1.0", "mode": "enforce", "canKill": True, "state": state,
             "brake": brake}  # fmt: skip
    return {"apiVersion": "seawall.internal/v1alpha1", "kind": "NodeReport",
            "metadata": {"name": node}, "spec": {"nodeName": node},
            "report": {"at": at or now(micro=True), "sequence": 1, "bootID": "boot-0123",
                       "guard": guard}}  # fmt: skip


class ManyAgents(BackgroundLoop):
    """In the place of as many agents: each says once that the brake is on, some seconds after."""

    def __init__(self, plane: ControlPlane, names: list[str]) -> None:
        self.plane, self.names = plane, names
        self.last = 0.0
        super().__init__()

    def run(self) -> None:
        first, last = HEARD_SECONDS
        with self.plane.client("kubelets") as client:
            while not self.braked(client):
                if self.ended.wait(0.2):
                    return
            began = time.monotonic()
            for number, name in enumerate(self.names):
                due = began + first + (last - first) * number / len(self.names)
                if self.ended.wait(max(0.0, due - time.monotonic())):
                    return
                body = {"report": report(name, brake=True)["report"]}
                client.request("PATCH", f"{REPORTS}/{name}", body, kind=MERGE)
            self.last = time.monotonic() - began

    def braked(self, client: ApiClient) -> bool:
        spec = next((one["spec"] for one in client.items(f"{API}/seawallpolicies")), {})
        return spec.get("brake") is True


@pytest.fixture
def pool(plane: ControlPlane, client: ApiClient, nodes: KwokNodes) -> Iterator[list[str]]:
    ready_for_observers(client)
    for plural in ("seawallpolicies", "nodereports"):
        client.delete(f"{API}/{plural}")
    names = nodes.add(NODES, prefix="pool")
    earlier = now(micro=True, ahead_seconds=-60.0)
    nodes.each(names, lambda one, name: one.create(REPORTS, report(name, at=earlier)))
    yield names
    for plural in ("seawallpolicies", "nodereports"):
        client.delete(f"{API}/{plural}")


def test_all_that_answer_are_waited_for_and_no_longer(plane: ControlPlane, pool: list[str]) -> None:
    desk = Desk(plane)
    with ManyAgents(plane, pool) as agents:
        began = time.monotonic()
        page = desk("brake", "--reason", "drill", "--json")
        took = time.monotonic() - began
    answers = {one["node"]: one["state"] for one in page.document["guards"]}
    assert {answers[name] for name in pool} == {"observes"}
    print(f"{len(pool)} guards observe after {took:.1f} s, the last said so after "
          f"{agents.last:.1f} s")  # fmt: skip
    assert agents.last <= took < agents.last + 10.0


def test_those_that_it_does_not_reach_within_a_minute_are_listed(
    plane: ControlPlane, client: ApiClient, pool: list[str]
) -> None:
    desk, missing = Desk(plane), pool[::15]
    mute, deaf, unknown = missing[::3], missing[1::3], missing[2::3]
    for name in deaf:  # its agent goes on, and hears nothing of a guard
        client.patch(f"{REPORTS}/{name}", {"report": {"guard": {"state": "silent"}}})
    for name in unknown:
        client.delete(f"{REPORTS}/{name}")
    with ManyAgents(plane, [name for name in pool if name not in missing]):
        began = time.monotonic()
        page = desk("brake", "--reason", "drill", "--json")
        took = time.monotonic() - began
    assert page.status == 1
    rows = {one["node"]: one for one in page.document["guards"] if one["node"] in pool}
    assert len(rows) == len(pool)
    assert sorted(n for n, one in rows.items() if one["state"] != "observes") == sorted(missing)
    for names, words in ((mute, "has not answered since"), (deaf, "hears nothing of a guard"),
                         (unknown, "no agent has said anything")):  # fmt: skip
        assert all(words in rows[name]["words"] for name in names)
    print(f"{len(missing)} of {len(pool)} not reached, said after {took:.1f} s")
    assert 60.0 <= took < 75.0
    text = desk("brake", "--wait", "0")
    assert f"and {len(missing)} of " in text.words
    assert "--whole" in text.words, "one screen, and how to get all of it"
