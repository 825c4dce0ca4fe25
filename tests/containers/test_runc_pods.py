"""``seawall pods`` and every form of WORKLOAD against containers that runc really runs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.containers.node import (
    HELD_BYTES,
    Node,
    make_bundle,
    new_id,
    new_uid,
    oci_config,
    remove_cgroups,
)

pytestmark = [pytest.mark.system, pytest.mark.beside]

LIMIT_BYTES = 128 << 20
SLACK_BYTES = 2 << 20
ADJ = 996
"""As the kubelet writes it for a request of 4 thousandths of the node."""


@dataclass(frozen=True)
class Container:
    key: str
    uid: str
    cgroup: str
    pid: int


@pytest.fixture
def container(node: Node, tmp_path: Path) -> Iterator[Container]:
    """As the kubelet's cgroupfs driver would place it; only its log's name tells who it is."""
    key, uid = new_id(), new_uid()
    cgroup = f"/kubepods/burstable/pod{uid}/{key}"
    config = oci_config(cgroup, LIMIT_BYTES)
    config["process"]["oomScoreAdj"] = ADJ
    config["linux"]["resources"]["cpu"] = {"shares": 512, "quota": 150_000, "period": 100_000}
    bundle = make_bundle(tmp_path / "bundle", config)
    try:
        pid = node.start_pod("web-7d9f4c-x2v9k", uid, key, bundle)
        node.wait_for_hold("shop/web-7d9f4c-x2v9k/app")
        yield Container(key, uid, cgroup, pid)
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)


def test_row_of_a_pods_container(node: Node, container: Container) -> None:
    row = node.row("shop/web-7d9f4c-x2v9k/app")
    assert row["kind"] == "container"
    assert (row["namespace"], row["pod"]) == ("shop", "web-7d9f4c-x2v9k")
    assert row["container"] == "app"
    assert row["container_id"] == container.key
    assert row["pod_uid"] == container.uid
    assert row["cgroup"] == container.cgroup
    assert row["qos"] == "Burstable"
    assert row["limit_bytes"] == LIMIT_BYTES
    assert abs(row["anon_bytes"] - HELD_BYTES) <= SLACK_BYTES
    assert row["anon_bytes"] <= row["charge_bytes"] <= LIMIT_BYTES
    assert row["distance_bytes"] == LIMIT_BYTES - row["charge_bytes"]
    assert row["distance_cgroup"] == container.cgroup
    assert row["processes"] == 3  # sh, dd, sleep
    assert row["danger"] is None


def test_what_it_asked_for(node: Node, container: Container) -> None:
    """Nobody is asked but the node; the memory request is known to a thousandth of it."""
    row = node.row("shop/web-7d9f4c-x2v9k/app")
    if "cpu_limit_cores" not in row:
        pytest.skip("no cpu controller here: mount -t cgroup -o cpu cpu /sys/fs/cgroup/cpu")
    assert row["cpu_limit_cores"] == 1.5
    if "cpu_shares" in row:
        assert row["cpu_shares"] == 512
        assert row["cpu_request_cores"] == 0.5
    else:
        assert row["cpu_weight"] < 100
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert abs(row["request_least_bytes"] - total * 4 / 1000) < total / 1e6
    assert abs(row["request_most_bytes"] - total * 5 / 1000) < total / 1e6


def test_every_form_of_workload_names_it(node: Node, container: Container) -> None:
    pod = f"/kubepods/burstable/pod{container.uid}"
    for text in (
        "shop/web-7d9f4c-x2v9k/app",
        "shop/web-7d9f4c-x2v9k",
        container.key[:12],
        f"pid:{container.pid}",
        container.cgroup,
        pod,
    ):
        found = [row["cgroup"] for row in node.rows(text) if row["is_leaf"]]
        assert found == [container.cgroup], text
    unknown = node.seawall("pods", "shop/web-7d9f4c-x2v9k/ap")
    assert unknown.status == 2
    assert b"near: shop/web-7d9f4c-x2v9k/app" in unknown.err
    assert unknown.err.count(b"\n") == 1


def test_parents_are_listed_and_counted_once(node: Node, container: Container) -> None:
    page = node.seawall("pods", "--json", "--all").answered().document
    rows = {row["cgroup"]: row for row in page["workloads"]}
    pod = rows[f"/kubepods/burstable/pod{container.uid}"]
    assert pod["kind"] == "pod"
    assert not pod["is_leaf"]
    assert pod["nested"] == 1
    assert pod["charge_bytes"] >= HELD_BYTES
    leaves = [row["charge_bytes"] for row in page["workloads"] if row["is_leaf"]]
    assert page["totals"]["workloads"] == len(leaves)
    tops = sum(r["charge_bytes"] for path, r in rows.items() if path.count("/") == 1)
    # The rows and the sum are of one reading; parents hold what no leaf does.
    assert page["totals"]["charge_bytes"] + page["totals"]["parents_own_bytes"] == tops


def test_text_shows_it_within_80_columns(node: Node, container: Container) -> None:
    text = node.seawall("pods", "--sort", "distance").answered().text
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if "x2v9k/app" in line)
    assert "128M" in row
    assert any(line.startswith("Could not see") for line in lines)
    assert "never-read-this" not in text


def test_near_its_limit_it_is_marked(node: Node, tmp_path: Path) -> None:
    """runc's own state tells the cgroup of a container that no orchestrator knows."""
    cgroup = f"/seawall-{new_id()[:8]}/inner"
    bundle = make_bundle(tmp_path / "bundle", oci_config(cgroup, HELD_BYTES + (3 << 20)))
    key = "tight." + new_id()[:6]
    try:
        node.start("runc", "run", "-d", "-b", str(bundle), key)
        name = f"container:{key[:12]}"
        row = node.wait_for_hold(name)
        assert row["runtime"] == "runc"
        assert row["cgroup"] == cgroup
        assert row["danger"] == {"level": "critical", "what": "near_limit"}
        text = node.seawall("pods").answered().text
        head = text.splitlines()[1]
        assert "need" in head
        assert "!! " + name in text
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)
