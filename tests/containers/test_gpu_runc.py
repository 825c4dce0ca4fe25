"""``seawall gpu`` against containers that runc runs: real refusals of this machine's kernel.

What stands in for the GPU's devices: see gpu_node.
"""

import errno
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers import node as nodes
from tests.containers.gpu_node import NODES, WITHOUT_UVM, Container, GpuNode, Wanted, mknod, set_up

from seawall.formats.iso_time import iso_datetime

pytestmark = [pytest.mark.system, pytest.mark.beside]
DEVICES = Path("/sys/fs/cgroup/devices")
UVM = "/dev/nvidia-uvm"
SOME = {path: NODES[path] for path in WITHOUT_UVM}
OLD = {**NODES, UVM: (509, 0), UVM + "-tools": (509, 1)}
FUSE = (10, 229)
PLUGIN = "nvidia-device-plugin-daemonset-x7k2p"
BUSY = "while :; do :; done"


def missing() -> str | None:
    if why := nodes.missing("runc"):
        return why
    if not (DEVICES / "devices.list").exists():
        return "no devices controller of cgroup v1: mount -t cgroup -o devices cgroup " + str(
            DEVICES
        )
    return None


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuNode]:
    """Containers of every kind, made once."""
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("gpu")
    with nodes.node(folder) as plain:
        set_up(plain)
        made = GpuNode(plain, folder)
        try:
            made.start(Wanted(name="whole"))
            made.start(Wanted(name="no-uvm", nodes=SOME, promised=WITHOUT_UVM))
            made.start(Wanted(name="node-only", nodes=SOME, promised=WITHOUT_UVM))
            made.start(Wanted(name="by-hand", nodes=SOME, promised=WITHOUT_UVM))
            made.start(Wanted(name="old-major", nodes=OLD))
            made.start(Wanted(name="user", mode=0o600, uid=1000))
            made.start(Wanted(name="root", mode=0o600))
            made.start(Wanted(name="denied"))
            made.start(Wanted(name="hostile"))
            made.start(Wanted(name="nothing", nodes={}, promised=None))
            made.start(Wanted(name=PLUGIN, nodes=SOME, promised=None))
            _change(made)
            yield made
        finally:
            made.end()


def _change(made: GpuNode) -> None:
    """What a hook, a person and an attacker do to containers that run."""
    for name in ("node-only", "by-hand"):
        made.containers[name].inside(made.node, mknod(UVM, NODES[UVM]))
    rule(made.containers["by-hand"], "devices.allow", "c 510:0 rw")
    rule(made.containers["denied"], "devices.deny", "c 510:0 rwm")
    made.containers["hostile"].inside(
        made.node, f"rm {UVM} /dev/nvidia0; mkfifo {UVM}; ln -s {UVM} /dev/nvidia0"
    )


def rule(container: Container, file: str, text: str) -> None:
    """A line that somebody writes into the device cgroup of a running container."""
    (DEVICES / container.cgroup.strip("/") / file).write_text(text)


@pytest.fixture(scope="module")
def page(node: GpuNode) -> dict[str, Any]:
    return node.gpu()


def told(page: dict[str, Any], name: str) -> dict[str, Any]:
    """The one container of that name."""
    rows = [row for row in page["containers"] if row["workload"] == f"shop/{name}/app"]
    assert len(rows) == 1, [row["workload"] for row in page["containers"]]
    row: dict[str, Any] = rows[0]
    return row


def device(row: dict[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in row["devices"] if one["path"] == path)
    return found


def says(one: dict[str, Any]) -> dict[str, str]:
    return {layer: answer["says"] for layer, answer in one["layers"].items()}


def soon_of(page: dict[str, Any], name: str) -> dict[str, str]:
    """Device -> when, of one container."""
    rows = page["about_to_break"]
    return {row["device"]: row["when"] for row in rows if row["workload"] == f"shop/{name}/app"}


def test_what_works_is_not_blamed(page: dict[str, Any]) -> None:
    for name in ("whole", "root"):
        row = told(page, name)
        assert row["diagnosis"] is None, row["diagnosis"]
        assert {one["path"] for one in row["devices"]} >= {*WITHOUT_UVM, UVM}
        for one in row["devices"]:
            assert one["errno"] == 0, one
            assert one["broken_at"] is None
            assert says(one) == {"promised": "yes", "configured": "yes", "systemd": "none",
                                 "kernel": "yes", "access": "yes"}, one  # fmt: skip
        assert not soon_of(page, name)


def test_who_was_promised_nothing_is_not_there(page: dict[str, Any]) -> None:
    assert "shop/nothing/app" not in {row["workload"] for row in page["containers"]}


def test_f1_no_node(page: dict[str, Any]) -> None:
    """The plugin left it out, so it is neither made nor allowed."""
    row = told(page, "no-uvm")
    assert row["diagnosis"]["mode"] == "F1"
    assert UVM in row["diagnosis"]["headline"]
    assert f"The device plugin shop/{PLUGIN}/app" in row["diagnosis"]["cause"]
    assert row["diagnosis"]["remedy"].startswith("Restart the plugin pod")
    one = device(row, UVM)
    assert (one["errno"], one["broken_at"]) == (errno.ENOENT, "promised")
    assert says(one)["kernel"] == "no"
    assert (one["major"], one["minor"]) == NODES[UVM]
    for path in WITHOUT_UVM:
        assert device(row, path)["errno"] == 0


def test_f1_in_the_making_at_the_plugin(page: dict[str, Any], node: GpuNode) -> None:
    (plugin,) = page["plugin"]
    assert plugin["workload"] == f"shop/{PLUGIN}/app"
    assert plugin["pid"] == node.containers[PLUGIN].pid
    assert set(plugin["lacks"]) == {UVM, UVM + "-tools"}
    assert set(soon_of(page, PLUGIN).values()) == {"the next pod that it serves"}


def test_f1_node_by_a_hook_that_the_cgroup_refuses(page: dict[str, Any]) -> None:
    row = told(page, "node-only")
    assert row["diagnosis"]["mode"] == "F1"
    one = device(row, UVM)
    assert (one["errno"], one["broken_at"]) == (errno.EPERM, "promised")


def test_f7_what_was_written_by_hand_works_and_will_not_last(page: dict[str, Any]) -> None:
    row = told(page, "by-hand")
    one = device(row, UVM)
    assert (one["errno"], one["broken_at"]) == (0, None)
    assert row["diagnosis"] is None
    assert soon_of(page, "by-hand") == {UVM: "the next start of the container"}


def test_an_update_by_this_runc_leaves_it(node: GpuNode) -> None:
    """Since 1.0 (PR 2994): so that is not when it ends."""
    one = node.containers["by-hand"]
    node.node.need("runc", "update", "--pids-limit", "1234", one.key)
    listed = (DEVICES / one.cgroup.strip("/") / "devices.list").read_text()
    assert "c 510:0 rw\n" in listed


def test_f10_old_major(page: dict[str, Any]) -> None:
    row = told(page, "old-major")
    assert row["diagnosis"]["mode"] == "F10"
    assert {"509", "510"} <= set(row["diagnosis"]["headline"].replace(",", " ").split())
    one = device(row, UVM)
    assert one["broken_at"] == "configured"
    assert one["major"] == 510


def test_since_when(page: dict[str, Any], node: GpuNode) -> None:
    """As ps and the nodes' own times tell it."""
    for name, words in (
        ("no-uvm", "the container was started"),
        ("old-major", "the container was started, with a number that was old already"),
        ("denied", "at the earliest: the container was started then"),
    ):
        pid = str(node.containers[name].pid)
        age = float(node.node.need("ps", "-o", "etimes=", "-p", pid))
        since = told(page, name)["diagnosis"]["since"]
        at = iso_datetime(since["at"]).timestamp()
        assert abs(time.time() - age - at) <= 4
        assert since["how"].startswith(words)
    plugin = "made or changed 0 s after the device plugin"
    assert plugin not in told(page, "no-uvm")["diagnosis"]["since"]["how"]


def test_wrong_mode_refuses_users_and_not_root(page: dict[str, Any]) -> None:
    row = told(page, "user")
    assert row["diagnosis"]["mode"] == "mode"
    one = device(row, UVM)
    assert (one["errno"], one["broken_at"]) == (errno.EACCES, "access")
    assert says(one)["kernel"] == "yes"


def test_f6_rules_that_somebody_rewrote(page: dict[str, Any]) -> None:
    row = told(page, "denied")
    assert row["diagnosis"]["mode"] == "F6"
    one = device(row, UVM)
    assert (one["errno"], one["broken_at"]) == (errno.EPERM, "kernel")
    assert device(row, "/dev/nvidia0")["errno"] == 0


def test_a_hostile_dev_is_no_trap(page: dict[str, Any]) -> None:
    """A FIFO would hold whoever opens it."""
    row = told(page, "hostile")
    assert row["diagnosis"] is not None
    assert device(row, UVM)["layers"]["access"]["says"] == "no"
    assert device(row, "/dev/nvidia0")["layers"]["access"]["says"] == "no"
    assert device(row, "/dev/nvidiactl")["errno"] == 0


def test_f2_the_host_lacks_its_nodes(node: GpuNode) -> None:
    """And a container that was started meanwhile."""
    node.node.need("rm", UVM, UVM + "-tools")
    try:
        node.start(Wanted(name="too-early", nodes=SOME, promised=WITHOUT_UVM))
        page = node.gpu()
    finally:
        node.node.need("sh", "-c", f"{mknod(UVM, (510, 0))}; {mknod(UVM + '-tools', (510, 1))}")
    assert {row["mode"] for row in page["host_diagnosis"]} == {"F2"}, page["could_not_see"]
    lacking = {row["path"] for row in page["host_nodes"] if not row["is_there"]}
    assert lacking == {UVM, UVM + "-tools"}
    assert told(page, "too-early")["diagnosis"]["mode"] == "F2"
    assert told(page, "whole")["diagnosis"] is None, "it has its own node, and it works"


def test_nothing_is_left_and_nothing_is_changed(node: GpuNode) -> None:
    one = node.containers["whole"]
    look = "ls -la /dev; /bin/busybox cat /proc/1/mountinfo"
    members = DEVICES / one.cgroup.strip("/") / "cgroup.procs"

    def state() -> tuple[str, str, str]:
        listed = (members.parent / "devices.list").read_text()
        return one.inside(node.node, look), members.read_text(), listed

    before = state()
    ran = node.node.seawall("gpu", "--json")
    assert state() == before
    assert ran.seconds < 10
    assert members.read_text().split() == [str(one.pid)]


def test_text_names_the_device_and_its_refusal(node: GpuNode) -> None:
    text = node.node.seawall("gpu", "shop/no-uvm/app").answered().text
    assert max(map(len, text.splitlines())) <= 80
    assert UVM in text
    assert "F1" in text


def test_a_bundle_of_it_tells_the_same(node: GpuNode, tmp_path: Path) -> None:
    bundle = tmp_path / "node.bundle"
    ran = node.node.seawall("capture", "-o", str(bundle))
    assert ran.status == 0, ran.err
    live, kept = node.gpu(), node.gpu("--from", str(bundle))
    for name in ("containers", "plugin", "about_to_break", "host_nodes"):
        assert kept[name] == live[name], name


def why(node: GpuNode) -> dict[str, dict[str, Any]]:
    """What fires of the rules about devices."""
    found = node.node.seawall("why", "--json").answered().document["findings"]
    return {row["id"]: row for row in found
            if row["id"].startswith("SW4") and row["verdict"] == "fires"}  # fmt: skip


def test_why_says_it(node: GpuNode) -> None:
    found = why(node)
    assert found["SW401"]["severity"] == "critical"
    assert "F1 in 3" in found["SW401"]["headline"]
    names = " ".join(row["name"] for row in found["SW401"]["evidence"])
    assert f"{UVM} in shop/no-uvm/app" in names
    assert "shop/whole/app" not in names
    assert found["SW403"]["workload"] == f"shop/{PLUGIN}/app"
    assert "shop/by-hand/app" in found["SW404"]["headline"]
    assert "SW402" not in found
    assert "SW405" not in found, "all of them sleep"


def test_busy_without_its_device(node: GpuNode, tmp_path: Path) -> None:
    """The symptom, with thresholds that a test can wait for.

    A device with a driver behind it, so that one of them can hold it open.
    """
    node.node.need("sh", "-c", mknod("/dev/fuse", FUSE))
    other = {"nodes": {"/dev/fuse": FUSE}, "promised": ["/dev/fuse"], "resource": "x.org/gpu"}
    node.start(Wanted(name="refused", nodes=SOME, promised=WITHOUT_UVM, program=BUSY))
    node.start(Wanted(name="forgets", **other, program=BUSY))
    node.start(Wanted(name="holds", **other, program="exec 5<>/dev/fuse; " + BUSY))
    rules = tmp_path / "rules.toml"
    rules.write_text(
        "[SW405.thresholds]\nleast_minutes = 0.02\nleast_cpu_minutes = 0.01\nbusy_cpus = 0.1\n"
    )
    try:
        time.sleep(3)
        found = node.node.seawall("why", "--json", "--rules", str(rules)).answered().document
    finally:
        for name in ("refused", "forgets", "holds"):
            node.node.run("runc", "kill", node.containers[name].key, "KILL")
    said = {row["workload"]: row for row in found["findings"] if row["id"] == "SW405"}
    assert said["shop/refused/app"]["severity"] == "critical"
    assert "F1" in said["shop/refused/app"]["headline"]
    assert "shop/holds/app" not in said
    # Where some process may not be looked into, it is not known who holds what.
    if "shop/forgets/app" in said:
        assert said["shop/forgets/app"]["severity"] == "warning"
    else:
        assert "shop/forgets/app" in said[None]["headline"]
        assert said[None]["verdict"] == "blind"
