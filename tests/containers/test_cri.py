"""``seawall gpu`` and a real containerd's CRI: what it has on record, before and after updates."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers import node as nodes
from tests.containers.cri_node import SOCKET, CriNode, message
from tests.containers.gpu_node import set_up
from tests.containers.node import Node
from tests.host.grpc_server import SETTINGS, answer, serving

pytestmark = [pytest.mark.system, pytest.mark.beside]

RECORD = "the runtime's own record (CRI)"
TASKS = "/run/containerd/io.containerd.runtime.v2.task"
UVM, CTL, GPU = "/dev/nvidia-uvm", "/dev/nvidiactl", "/dev/nvidia0"
CPU_SHARES = 3  # LinuxContainerResources
CHANGED_SHARES = 77


@pytest.fixture
def cri(node: Node, tmp_path: Path) -> Iterator[CriNode]:
    if why := nodes.missing("containerd", "ctr", "runc"):
        pytest.skip(why)
    set_up(node)
    made = CriNode(node, tmp_path)
    try:
        made.begin()
        made.run_sandbox("llm-0")
        yield made
    finally:
        made.end()


def rows(cri: CriNode) -> dict[str, Any]:
    """Path -> row, of the one container that has devices."""
    page = cri.node.seawall("gpu", "--json").answered().document
    (one,) = page["containers"]
    return {row["path"]: row for row in one["devices"]}


def configured(row: Any) -> tuple[str, str]:
    layer = row["layers"]["configured"]
    return layer["says"], layer["why"]


def info(cri: CriNode, key: str) -> Any:
    """The runtime's record, unsieved."""
    entry = cri.call("ContainerStatus", message((1, key), (2, 1)))[2]
    return json.loads(entry[entry.index(b"{") :])


def test_the_record_of_a_real_containerd(cri: CriNode, tmp_path: Path) -> None:
    told = cri.call("Version")
    assert told[2] == b"containerd"
    key = cri.run("server", [CTL, UVM, GPU], {"TOKEN": "never-read-this"})
    found = rows(cri)
    assert set(found) == {CTL, UVM, GPU}
    for row in found.values():
        assert configured(row)[0] == "yes"
        assert RECORD in configured(row)[1]
        assert row["layers"]["kernel"]["says"] == row["layers"]["access"]["says"] == "yes"

    # An update writes the record anew, and the file as it was started stays.
    resources = message((CPU_SHARES, CHANGED_SHARES))
    cri.call("UpdateContainerResources", message((1, key), (2, resources)))
    started = json.loads(cri.node.need("cat", f"{TASKS}/k8s.io/{key}/config.json"))
    shares = info(cri, key)["runtimeSpec"]["linux"]["resources"]["cpu"]["shares"]
    assert (shares, started["linux"]["resources"]["cpu"]["shares"]) == (CHANGED_SHARES, 100)
    assert {configured(row)[0] for row in rows(cri).values()} == {"yes"}

    # The file as a program that wraps runc leaves it: less, and more, than the record.
    devices = started["linux"]["devices"]
    started["linux"]["devices"] = [one for one in devices if one["path"] != UVM]
    text = json.dumps(started)
    cri.node.need("sh", "-c", f"cat > {TASKS}/k8s.io/{key}/config.json <<'END'\n{text}\nEND")
    says, why = configured(rows(cri)[UVM])
    assert says == "yes"
    assert "as it was started, otherwise: " + TASKS in why

    # No file at all: the record alone tells it, and a bundle tells the same.
    cri.node.need("mount", "-t", "tmpfs", "tmpfs", TASKS)
    alone = rows(cri)
    assert {path: configured(row)[0] for path, row in alone.items()} == dict.fromkeys(found, "yes")
    bundle = tmp_path / "node.bundle"
    assert cri.node.seawall("capture", "--for", "2", "-o", str(bundle)).status == 0
    page = cri.node.seawall("gpu", "--from", str(bundle), "--json").answered().document
    cri.node.need("umount", TASKS)
    replayed = {row["path"]: row for row in page["containers"][0]["devices"]}
    assert replayed == alone
    unpacked = cri.node.run("sh", "-c", f"zcat {bundle}").out
    assert key.encode() in unpacked
    assert b"never-read-this" not in unpacked


def test_what_a_kubelet_lists_is_a_promise(cri: CriNode) -> None:
    """Its socket by a stand-in; the pod is containerd's, and the checkpoint knows nothing of it."""
    cri.run("server", [CTL, GPU])
    devices = message((1, "nvidia.com/gpu"), (2, "GPU-a"))
    container = message((1, "server"), (2, devices))
    pods = message((1, message((1, "llm-0"), (2, "ml"), (3, container))))
    cri.node.need("mkdir", "-p", "/var/lib/kubelet/pod-resources")
    path = Path(f"/proc/{cri.node.pid}/root/var/lib/kubelet/pod-resources/kubelet.sock")
    with serving(path, SETTINGS, answer(pods), answer(b"", 3)):
        page = cri.node.seawall("gpu", "--json").answered().document
    (one,) = page["containers"]
    assert one["promised_by"] == "kubelet pod-resources: 1 x nvidia.com/gpu"
    found = {row["path"]: row for row in one["devices"]}
    assert found[UVM]["layers"]["promised"]["says"] == "yes"
    assert configured(found[UVM])[0] == "no"
    assert found[UVM]["broken_at"] == "configured"
    assert one["diagnosis"]["mode"] == "F1"


def test_a_daemon_that_stands_still_is_told_and_costs_no_more_than_its_time(cri: CriNode) -> None:
    cri.run("server", [CTL, UVM, GPU])
    cri.node.need("sh", "-c", "kill -STOP $(cat /run/containerd.pid)")
    try:
        page = cri.node.seawall("gpu", "--json").answered().document
    finally:
        cri.node.need("sh", "-c", "kill -CONT $(cat /run/containerd.pid)")
    (one,) = page["containers"]
    assert {configured(row)[0] for row in one["devices"]} == {"yes"}
    assert not [row for row in one["devices"] if RECORD in configured(row)[1]]
    (words,) = [words for words in page["could_not_see"] if "CRI" in json.dumps(words)]
    assert SOCKET in json.dumps(words)
    assert "no answer in the time given" in json.dumps(words)
