"""``seawall pods`` against containers of a real containerd, named by their OCI annotations."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.containers import node as nodes
from tests.containers.node import HELD_BYTES, HOLD, Node, make_image, new_id, new_uid

pytestmark = [pytest.mark.system, pytest.mark.beside]

IMAGE = "seawall.test/hold:1"
LIMIT_BYTES = 128 << 20
SLACK_BYTES = 2 << 20
CONFIG = """\
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
"""


class Containerd:
    """Its state is at the usual place, in the node's own /run."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._socket = "/run/containerd/containerd.sock"
        self._made: list[tuple[str, str]] = []
        self._cgroups: list[str] = []

    def begin(self, folder: Path) -> None:
        (folder / "config.toml").write_text(CONFIG)
        self.node.need(
            "sh", "-c",
            f"containerd --config {folder}/config.toml --root {folder}/root --state "
            f"/run/containerd --address {self._socket} >{folder}/log 2>&1 </dev/null & "
            "echo $! >/run/containerd.pid",
        )  # fmt: skip
        make_image(folder / "image.tar", IMAGE)
        deadline = time.monotonic() + 20
        while self.ctr("k8s.io", "version").status:
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)

    def ctr(self, namespace: str, *words: str) -> nodes.Ran:
        return self.node.run("ctr", "--address", self._socket, "-n", namespace, *words)

    def run(
        self, namespace: str, key: str, cgroup: str, annotations: dict[str, str], script: str
    ) -> None:
        image = str(self.node.folder / "image.tar")
        done = self.ctr(namespace, "image", "import", "--snapshotter", "native", image)
        assert done.status == 0, done.err
        notes = [word for k, v in annotations.items() for word in ("--annotation", f"{k}={v}")]
        self._made.append((namespace, key))
        self._cgroups.append(cgroup)
        where = ["--cgroup", cgroup] if cgroup else []
        self.node.start(
            "ctr", "--address", self._socket, "-n", namespace, "run", "-d", "--null-io",
            "--snapshotter", "native", "--memory-limit", str(LIMIT_BYTES), *where, *notes,
            IMAGE, key, "/bin/busybox", "sh", "-c", script,
        )  # fmt: skip

    def end(self) -> None:
        for namespace, key in self._made:
            self.ctr(namespace, "task", "kill", "-s", "KILL", key)
            deadline = time.monotonic() + 10
            while self.ctr(namespace, "task", "rm", key).status and time.monotonic() < deadline:
                time.sleep(0.1)
            self.ctr(namespace, "container", "rm", key)
            self._cgroups.append(f"/{namespace}/{key}")
        self.node.run("sh", "-c", "kill $(cat /run/containerd.pid)")
        nodes.remove_cgroups(*filter(None, self._cgroups))


@pytest.fixture
def containerd(node: Node, tmp_path: Path) -> Iterator[Containerd]:
    if why := nodes.missing("containerd", "ctr"):
        pytest.skip(why)
    made = Containerd(node)
    try:
        made.begin(tmp_path)
        yield made
    finally:
        made.end()


def annotations(uid: str, sandbox: str, kind: str) -> dict[str, str]:
    """As containerd's CRI plugin writes them, and one that is nobody's business."""
    told = {
        "io.kubernetes.cri.container-type": kind,
        "io.kubernetes.cri.sandbox-id": sandbox,
        "io.kubernetes.cri.sandbox-name": "llm-0",
        "io.kubernetes.cri.sandbox-namespace": "ml",
        "io.kubernetes.cri.sandbox-uid": uid,
        "my.company/password": "hunter2",
    }
    return told if kind == "sandbox" else told | {"io.kubernetes.cri.container-name": "server"}


def test_pod_with_its_sandbox(containerd: Containerd) -> None:
    uid, sandbox, server = new_uid(), new_id(), new_id()
    pod = f"/kubepods/pod{uid}"
    told = annotations(uid, sandbox, "sandbox")
    containerd.run("k8s.io", sandbox, f"{pod}/{sandbox}", told, "busybox sleep 1000")
    told = annotations(uid, sandbox, "container")
    containerd.run("k8s.io", server, f"{pod}/{server}", told, HOLD)
    node = containerd.node
    row = node.wait_for_hold("ml/llm-0/server")
    assert (row["namespace"], row["pod"], row["container"]) == ("ml", "llm-0", "server")
    assert row["runtime"] == "containerd"
    assert row["qos"] == "Guaranteed"
    assert row["pod_uid"] == uid
    assert row["limit_bytes"] == LIMIT_BYTES
    assert abs(row["anon_bytes"] - HELD_BYTES) <= SLACK_BYTES
    assert not row["is_sandbox"]
    pause = node.row("ml/llm-0/POD")
    assert pause["is_sandbox"]
    assert pause["container_id"] == sandbox
    assert pause["anon_bytes"] < 4 << 20
    whole = node.row("ml/llm-0", "--all")
    assert whole["cgroup"] == pod
    assert whole["processes"] == row["processes"] + pause["processes"]


def test_plain_containerd_container_is_known_by_its_config(containerd: Containerd) -> None:
    """``ctr run`` gives no hex id: the cgroup's path alone would say nothing."""
    key = "plain-" + new_id()[:6]
    containerd.run("default", key, "", {}, HOLD)
    row = containerd.node.wait_for_hold(f"container:{key[:12]}")
    assert row["kind"] == "container"
    assert row["runtime"] == "containerd"
    assert row["container_id"] == key
    assert row["cgroup"] == f"/default/{key}"
    assert abs(row["anon_bytes"] - HELD_BYTES) <= SLACK_BYTES
    assert containerd.node.rows(key)[0]["cgroup"] == row["cgroup"]


def test_captured_bundle_names_it_too_and_keeps_no_secret(
    containerd: Containerd, tmp_path: Path
) -> None:
    uid, key = new_uid(), new_id()
    told = annotations(uid, new_id(), "container")
    containerd.run("k8s.io", key, f"/kubepods/besteffort/pod{uid}/{key}", told, HOLD)
    node = containerd.node
    live = node.wait_for_hold("ml/llm-0/server")
    bundle = tmp_path / "node.bundle"
    node.need(
        "sh", "-c", f"{nodes.sys.executable} -m seawall capture --for 2 -o {bundle} 2>/dev/null"
    )
    read = node.row("ml/llm-0/server", "--from", str(bundle))
    for field in ("cgroup", "qos", "limit_bytes", "container_id", "pod_uid"):
        assert read[field] == live[field]
    unpacked = node.run("sh", "-c", f"zcat {bundle}")
    assert unpacked.status == 0
    assert key.encode() in unpacked.out
    assert b"hunter2" not in unpacked.out
