"""The map of quarantines in force, as an observer with the chart's rights keeps it."""

from pathlib import Path

import pytest
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.observed_cluster import assert_only_own_objects
from tests.cluster.observer_process import (
    NAMESPACE,
    RBAC,
    ObserverProcess,
    create,
    ready_for_observers,
    watched_for_a_month,
)
from tests.cluster.quarantined import LABEL, QUARANTINES, pod, quarantine, service_account
from tests.cluster.rendered_manifests import ACTOR, documents
from tests.cluster.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MAP = f"{MAPS}/seawall-in-force"
PLACES = {
    "ConfigMap": MAPS, "Role": f"{RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
}  # fmt: skip


def test_the_observer_keeps_it_through_all_states_and_a_new_leader(
    plane: ControlPlane, client: ApiClient, tmp_path: Path
) -> None:
    ready_for_observers(client)
    watched_for_a_month(client)
    for document in documents(ACTOR):
        if document["metadata"]["name"] == "seawall-in-force":
            create(client, PLACES[document["kind"]], document)

    def stands() -> dict[str, str]:
        return dict(client.get(MAP).get("data") or {})

    match = {"namespace": "ml", "generateNamePrefix": "hog-"}
    client.create(QUARANTINES, quarantine("hog", match, state="Active", mode="hold"))
    client.patch(MAP, {"data": {"of-long-ago": "Active gate"}})
    with ObserverProcess(plane, tmp_path) as observer:
        wait_until(lambda: stands() == {"hog": "Active hold"}, 30, f"hog\n{observer.log()}")
        client.patch(f"{QUARANTINES}/hog", {"spec": {"state": "Canary", "mode": "gate"}})
        wait_until(lambda: stands() == {"hog": "Canary gate"}, 10, "the state is seen")
        client.create(QUARANTINES, quarantine("web", match, state="Active", mode="tell"))
        wait_until(lambda: len(stands()) == 2, 10, "both")
        client.patch(f"{QUARANTINES}/hog", {"spec": {"state": "Released"}})
        wait_until(lambda: stands() == {"web": "Active tell"}, 10, "hog is over")
        client.delete(f"{QUARANTINES}/web")
        wait_until(lambda: stands() == {}, 10, "none is left")


def test_without_an_actor_a_quarantine_is_a_remark(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, audit: AuditLog,
    tmp_path: Path,
) -> None:  # fmt: skip
    """Its pods are made, scheduled and run on; the observer writes its own objects and no map."""
    ready_for_observers(client)
    watched_for_a_month(client)
    client.delete(MAPS, labelSelector="app.kubernetes.io/name=seawall-actor")
    nodes.add(2)
    service_account(client, space, "trainer")
    for mode in ("gate", "suspend", "probation"):
        match = {"namespace": space, "generateNamePrefix": "hog-"}
        client.create(QUARANTINES, quarantine(f"hog-{mode}", match, mode=mode))
    mark = audit.mark()
    with ObserverProcess(plane, tmp_path) as observer:
        wait_until(observer.leads, 30, "it leads")
        made = client.create(f"/api/v1/namespaces/{space}/pods", pod(space))
        path = f"/api/v1/namespaces/{space}/pods/{made['metadata']['name']}"
        wait_until(lambda: client.get(path)["status"].get("phase") == "Running", 30, "it runs")
        wait_until(lambda: watched(client), 20, f"it goes on\n{observer.log()}")
        assert "again in" not in observer.log(), observer.log()
        found = client.get(path)
        assert not found["spec"].get("schedulingGates")
        assert "nodeSelector" not in found["spec"]
        assert not {LABEL, "deletionTimestamp"} & {*found["metadata"], *found["metadata"]["labels"]}
        assert_only_own_objects(audit, mark, observer.user)
    names = [one["metadata"]["name"] for one in client.items(MAPS)]
    assert "seawall-in-force" not in names


def watched(client: ApiClient) -> bool:
    found = client.get("/apis/seawall.internal/v1alpha1/seawallpolicies/default")
    return found.get("status", {}).get("observedGeneration") is not None
