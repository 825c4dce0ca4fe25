"""``seawall numbers`` of a real runc container in which known amounts were planted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

pytestmark = pytest.mark.system

MIB = 1 << 20
LIMIT_BYTES = 256 * MIB
READ_BYTES, SHARED_BYTES = 30 * MIB, 20 * MIB
SCRIPT = (
    "busybox dd if=/dev/zero of=/file bs=1M count=30 2>/dev/null;"
    " busybox dd if=/dev/zero of=/dev/shm/shared bs=1M count=20 2>/dev/null;"
    " busybox dd if=/dev/zero bs=50M count=1 2>/dev/null | busybox sleep 1000"
)


@pytest.fixture
def address(node: Node, tmp_path: Path) -> Iterator[str]:
    """50 MiB anonymous, a file of 30 MiB written once, 20 MiB in /dev/shm."""
    key, uid = new_id(), new_uid()
    cgroup = f"/kubepods/burstable/pod{uid}/{key}"
    config = oci_config(cgroup, LIMIT_BYTES)
    config["root"]["readonly"] = False
    config["process"]["args"] = ["/bin/busybox", "sh", "-c", SCRIPT]
    bundle = make_bundle(tmp_path / "bundle", config)
    node.need("mkdir", "-p", f"/var/log/pods/shop_web-0_{uid}/app")
    try:
        node.start_pod("web-0", uid, key, bundle)
        node.wait_for_hold("shop/web-0/app")
        yield "shop/web-0/app"
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)


def test_every_value_is_what_was_planted(node: Node, address: str) -> None:
    page = node.seawall("numbers", address, "--json").answered().document
    assert page["workload"] == address
    assert page["limit_bytes"] == LIMIT_BYTES
    parts = page["parts"]
    other = parts["kernel_bytes"] + parts["rest_bytes"]
    assert other < 8 * MIB
    whole = HELD_BYTES + READ_BYTES + SHARED_BYTES + other
    expected = {
        "container_memory_rss": HELD_BYTES,
        "container_memory_cache": READ_BYTES + SHARED_BYTES,
        "container_memory_total_inactive_file_bytes": READ_BYTES,
        "container_memory_total_active_file_bytes": 0,
        "container_memory_usage_bytes": whole,
        "container_memory_working_set_bytes": whole - READ_BYTES,
        "20.10 and later": whole - READ_BYTES,
        "MEM": whole - READ_BYTES,
        "5.6 and later": whole - READ_BYTES,
        "before 17.06": whole,
    }
    if page["cgroup_version"] == 1:
        expected["17.06 to 19.03"] = HELD_BYTES + other
    shown = {row["name"]: row["bytes"] for row in page["values"]}
    far = {name: shown[name] - count for name, count in expected.items()
           if abs(shown[name] - count) > MIB}  # fmt: skip
    assert not far
    assert abs(parts["shmem_bytes"] - SHARED_BYTES) <= MIB
    assert parts["shmem_is_estimate"] is False
    # What could be dropped may also be kept: the file was written and is on its way.
    assert abs(page["held_bytes"] - (whole - READ_BYTES)) <= MIB
    check_processes(page)


def check_processes(page: dict[str, Any]) -> None:
    """Three busyboxes share their program; only dd holds 50 MiB."""
    seen = page["processes"]
    assert seen["processes"] == 3
    assert abs(seen["resident_anon_bytes"] - HELD_BYTES) <= MIB
    assert seen["shares_bytes"] < seen["resident_bytes"]
    assert seen["times_counted"] > 1
    assert "RES" in next(row["name"] for row in page["values"] if row["tool"] == "top, ps")


def test_a_pod_is_its_cgroup_and_its_containers(node: Node, address: str) -> None:
    page = node.seawall("numbers", "shop/web-0", "--json").answered().document
    assert page["kind"] == "pod"
    (inside,) = page["containers"]
    assert inside["workload"] == address
    top = next(row for row in page["values"] if row["tool"] == "kubectl top pod")
    assert top["inputs"] == [
        {"name": "app", "bytes": inside["working_set_bytes"], "sign": 1,
         "source": top["inputs"][0]["source"]}
    ]  # fmt: skip
    assert abs(inside["working_set_bytes"] - (HELD_BYTES + SHARED_BYTES)) < 8 * MIB
    assert not [row for row in page["values"] if row["tool"] == "docker stats"]
    text = node.seawall("numbers", "shop/web-0").answered().text
    assert "IN THE POD" in text
    tools = {row["tool"] for row in page["values"]}
    assert "crictl statsp" in tools
    assert "crictl stats" not in tools


def test_free_inside_shows_the_node(node: Node, address: str) -> None:
    page = node.seawall("numbers", address, "--json").answered().document
    assert page["has_lxcfs"] is False
    total = next(
        part["bytes"]
        for row in page["inside"]
        for part in row["inputs"]
        if part["name"] == "MemTotal"
    )
    kilobytes = int(Path("/proc/meminfo").read_text().split()[1])
    assert total == kilobytes << 10
    assert total > LIMIT_BYTES
