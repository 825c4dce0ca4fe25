"""``seawall cluster`` asks a real API server: without our kinds, without rights, and with both."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster import custom_resources
from tests.cluster.api_client import ApiClient
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API, DEFINITIONS, is_served
from tests.cluster.waiting import wait_until
from tests.cluster_pages.cluster_dumps import dump, hog_deaths, lease

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PLURALS = {
    "NodeDeath": "nodedeaths", "WorkloadQuarantine": "workloadquarantines",
    "SeawallPolicy": "seawallpolicies",
}  # fmt: skip
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def ask(plane: ControlPlane, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    config = str(plane.kubeconfig(user))
    return subprocess.run(
        [sys.executable, "-m", "seawall", "cluster", *words, "--kubeconfig", config],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def remove_kinds(client: ApiClient) -> None:
    for one in client.items(DEFINITIONS):
        if one["spec"]["group"] == "seawall.internal":
            client.delete(f"{DEFINITIONS}/{one['metadata']['name']}")
    wait_until(lambda: not is_served(client, f"{API}/nodedeaths"), 20, "no NodeDeath is served")


def write_objects(client: ApiClient) -> None:
    for one in dump(hog_deaths())["items"]:
        path = f"{API}/{PLURALS[one['kind']]}"
        if one["kind"] == "NodeDeath":
            client.create(path, one)
            continue
        status = one.pop("status")
        made = client.create(path, one)
        client.request(
            "PUT", f"{path}/{made['metadata']['name']}/status", {**made, "status": status}
        )


def test_the_verbs_ask_a_cluster(plane: ControlPlane, client: ApiClient, tmp_path: Path) -> None:
    remove_kinds(client)
    bare = ask(plane, "admin", "why")
    assert bare.returncode == 2
    assert "has no seawall.internal/v1alpha1: Seawall is not installed there" in bare.stderr
    custom_resources.install(client)
    write_objects(client)
    refused = ask(plane, "system:kube-scheduler", "why")
    assert refused.returncode == 2
    assert "you may not list nodedeaths" in refused.stderr
    assert refused.stderr.count("\n") == 1
    nobody = ask(plane, "admin", "why")
    assert nobody.returncode == 0, nobody.stderr
    assert "NOBODY WATCHES" in nobody.stdout
    assert "CONVICTED: Deployment ml/trainer kills nodes: 4 nodes dead" in nobody.stdout
    client.create(LEASES, lease(time.time()) | {"metadata": {"name": "seawall-observer"}})
    watched = ask(plane, "admin", "why", "--json")
    document = json.loads(watched.stdout)
    assert document["watch"]["state"] == "watching"
    assert document["suspect"]["chance"]["deaths_with_workload"] == 4
    page = tmp_path / "page.html"
    assert ask(plane, "admin", "report", "--html", str(page)).returncode == 0
    assert page.stat().st_size > 10_000
    client.delete(f"{LEASES}/seawall-observer")
    remove_kinds(client)
