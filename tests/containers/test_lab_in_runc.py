"""``seawall lab`` inside a real container: below its cgroup from the host, and from within."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.containers.node import Node, make_bundle, new_id, oci_config, remove_cgroups
from tests.end_to_end.innocents import why_no_rings
from tests.end_to_end.verbs import SOURCES, Ran

pytestmark = [pytest.mark.system, pytest.mark.beside]
MIB = 1 << 20
CONTAINER = 192 * MIB
LIMIT = 64 * MIB
PYTHON = "/usr/bin/python3.11"
SCHEMA = json.loads((SOURCES / "seawall/views/schemas/lab.json").read_text())
RUNS = {
    "hog": ("hog", "--size", "128MiB", "--for", "8"),
    "fill": ("fill", "--size", "160MiB", "--for", "3"),
    "swarm": ("swarm", "--processes", "120", "--each", "4MiB", "--for", "3"),
    "thrash": ("thrash", "--programs", "20", "--code", "4MiB", "--for", "3"),
}


@pytest.fixture
def container(node: Node, tmp_path: Path) -> Iterator[str]:
    """One that sleeps; its cgroup.  Its processes must live through what the lab does."""
    cgroup, key = f"/seawall-{new_id()[:8]}/inner", "lab." + new_id()[:6]
    config = oci_config(cgroup, CONTAINER)
    config["process"]["args"] = ["/bin/busybox", "sleep", "1000"]
    bundle = make_bundle(tmp_path / "bundle", config)
    try:
        node.start("runc", "run", "-d", "-b", str(bundle), key)
        yield cgroup
        state = json.loads(node.need("runc", "state", key))
        assert state["status"] == "running", "the lab killed the container"
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)


def report(ran: Ran) -> dict[str, Any]:
    page = ran.answered().document
    jsonschema.validate(page, SCHEMA)
    assert page["removed"]
    assert 0.9 * LIMIT < page["peak"]["bytes"] <= LIMIT
    assert not list(Path("/sys/fs/cgroup").glob("**/seawall-lab-*"))
    return page


def check(kind: str, page: dict[str, Any]) -> None:
    """What each of the four is for."""
    fates, last = page["processes"], page["last"]
    if kind in ("hog", "swarm"):
        assert fates["killed"] >= 1 or page["hung_seconds"]
        assert last["oom_kills"] >= 1 or page["hung_seconds"]
    else:
        assert last["oom_kills"] == 0
        assert fates["killed"] == 0
    if kind == "fill":
        assert last["file_bytes"] > 0.8 * LIMIT
    if kind == "thrash":
        assert page["limit_reached"]
        assert last["file_bytes"] > 0.1 * LIMIT


@pytest.mark.parametrize("kind", RUNS)
def test_below_the_cgroup_of_a_container(node: Node, container: str, kind: str) -> None:
    words = (*RUNS[kind], "--limit", str(LIMIT), "--parent", container, "--json")
    page = report(node.seawall("lab", *words))
    assert page["cgroup"].startswith(f"{container}/seawall-lab-")
    check(kind, page)


@pytest.mark.parametrize("kind", ["hog", "fill"])
def test_from_within_a_container(node: Node, tmp_path: Path, kind: str) -> None:
    """Python, the sources and a disk are mounted into it; its cgroup is its root there."""
    if not os.path.exists(PYTHON):
        pytest.skip("Debian's Python is missing: apt-get install python3.11")
    cgroup, key = f"/seawall-{new_id()[:8]}/inner", "lab." + new_id()[:6]
    config = oci_config(cgroup, CONTAINER)
    bundle = make_bundle(tmp_path / "bundle", config)
    folders = ["/usr", "/lib", "/lib64", str(SOURCES), str(tmp_path)]
    for name in folders:
        (bundle / "rootfs" / name[1:]).mkdir(parents=True, exist_ok=True)
    config["mounts"] = [mount for mount in config["mounts"] if mount["type"] != "cgroup"]
    config["mounts"] += [
        {"destination": name, "type": "bind", "source": name, "options": ["rbind"]}
        for name in folders
    ]
    config["mounts"] += [{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}]
    words = [*RUNS[kind], "--limit", str(LIMIT), "--json"]
    words += ["--folder", str(tmp_path)] if kind == "fill" else []
    config["process"]["args"] = [PYTHON, "-m", "seawall", "lab", *words]
    config["process"]["env"] += [f"PYTHONPATH={SOURCES}", "PYTHONDONTWRITEBYTECODE=1"]
    (bundle / "config.json").write_text(json.dumps(config))
    try:
        page = report(node.run("runc", "run", "-b", str(bundle), key))
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)
    assert page["cgroup"].startswith("/seawall-lab-"), "the container sees its cgroup as the root"
    check(kind, page)


def from_within(node: Node, tmp_path: Path, words: list[str]) -> Ran:
    """``seawall lab`` in a container as runtimes make them."""
    if not os.path.exists(PYTHON):
        pytest.skip("Debian's Python is missing: apt-get install python3.11")
    cgroup, key = f"/seawall-{new_id()[:8]}/inner", "lab." + new_id()[:6]
    config = oci_config(cgroup, CONTAINER)
    bundle = make_bundle(tmp_path / "bundle", config)
    for name in ("/usr", "/lib", "/lib64", str(SOURCES)):
        (bundle / "rootfs" / name[1:]).mkdir(parents=True, exist_ok=True)
        config["mounts"] += [
            {"destination": name, "type": "bind", "source": name, "options": ["rbind", "ro"]}
        ]
    config["process"]["args"] = [PYTHON, "-m", "seawall", "lab", *words]
    config["process"]["env"] += [f"PYTHONPATH={SOURCES}", "PYTHONDONTWRITEBYTECODE=1"]
    (bundle / "config.json").write_text(json.dumps(config))
    try:
        return node.run("runc", "run", "-b", str(bundle), key)
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)


def test_rings_below_the_cgroup_of_a_container(node: Node, container: str) -> None:
    """Four times what the limit of their cgroup is, for it counts none of them."""
    if why := why_no_rings():
        pytest.skip(why)
    words = ("--size", "64MiB", "--limit", "16MiB", "--rate", "0", "--for", "2")
    page = node.seawall("lab", "rings", *words, "--parent", container, "--json").answered().document
    jsonschema.validate(page, SCHEMA)
    assert page["cgroup"].startswith(f"{container}/seawall-lab-")
    assert page["done_bytes"] == 64 * MIB
    assert page["processes"]["survived"] == 1
    assert page["peak"]["bytes"] < 16 * MIB
    assert page["removed"]
    assert not list(Path("/sys/fs/cgroup").glob("**/seawall-lab-*"))


def test_rings_in_a_container_without_the_capability(node: Node, tmp_path: Path) -> None:
    """As runc starts them: nothing is begun, and the capability is named."""
    ran = from_within(node, tmp_path, ["rings"])
    assert ran.status == 2
    assert b"packet sockets need CAP_NET_RAW" in ran.err


def test_a_container_that_may_not_make_cgroups_says_so(node: Node, tmp_path: Path) -> None:
    """As everywhere: runtimes mount the cgroups read-only."""
    ran = from_within(node, tmp_path, ["hog", "--limit", "16MiB"])
    assert ran.status == 2, ran.err
    assert b"mounted read-only: run on the host or in a privileged container" in ran.err or (
        b"no cgroup tree that counts memory is mounted here" in ran.err
    )
