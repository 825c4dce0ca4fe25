"""A node with stand-ins for GPUs: character devices by mknod, made known as a driver's would be.

Everything that says so is private to the node's mount namespace: its own /dev, its own
/var/lib, and a /proc/devices that names majors which no driver has.  What refuses is this
machine's kernel: cgroups, nodes and modes are real.
"""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.containers.node import Node, make_bundle, new_id, new_uid, oci_config, remove_cgroups

from seawall.formats import protobuf_wire

LIMIT_BYTES = 64 << 20
MAJORS = {"nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 510}
NODES = {
    "/dev/nvidia0": (195, 0),
    "/dev/nvidiactl": (195, 255),
    "/dev/nvidia-uvm": (510, 0),
    "/dev/nvidia-uvm-tools": (510, 1),
}
BARE = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
        "tty": (5, 0)}  # fmt: skip
WITHOUT_UVM = tuple(path for path in NODES if "uvm" not in path)
CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
SETUP = r"""
set -e
mkdir /run/upper /run/work
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/upper,workdir=/run/work overlay /var/lib
mkdir -p /var/lib/kubelet/device-plugins
mount -t tmpfs -o mode=755 tmpfs /dev
mkdir /dev/pts /dev/shm /dev/char
"""


def mknod(path: str, number: tuple[int, int], mode: int = 0o666) -> str:
    """The shell line that makes a character device."""
    return f"mknod -m {mode:o} {path} c {number[0]} {number[1]}"


def set_up(node: Node, nodes: Mapping[str, tuple[int, int]] = NODES) -> None:
    """The host: its nodes, and a /proc/devices that has their drivers."""
    own = Path("/proc/devices").read_text()
    for name, major in MAJORS.items():
        own = own.replace("\n\nBlock", f"\n{major:3} {name}\n\nBlock")
    lines = [mknod(f"/dev/{name}", number) for name, number in BARE.items()]
    lines += [mknod(path, number) for path, number in nodes.items()]
    lines += [f"cat > /run/devices <<'END'\n{own}END", "mount --bind /run/devices /proc/devices"]
    node.need("sh", "-c", SETUP + "\n".join(lines))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A container to be made."""

    name: str
    nodes: Mapping[str, tuple[int, int]] = field(default_factory=lambda: NODES)
    """In its config: made in its /dev and allowed."""
    promised: Sequence[str] | None = tuple(NODES)
    """Paths in the plugin's answer to the kubelet; None: nobody promised it anything."""
    resource: str = "nvidia.com/gpu"
    mode: int = 0o666
    uid: int = 0
    program: str = "exec busybox sleep 1000"


@dataclass(frozen=True)
class Container:
    """One that runs."""

    name: str
    key: str
    uid: str
    cgroup: str
    pid: int

    @property
    def workload(self) -> str:
        return f"shop/{self.name}/app"

    def inside(self, node: Node, line: str) -> str:
        """Run a line of shell in its mount namespace, as the host's root."""
        enter = ["nsenter", "-t", str(self.pid), "-m", "--", "/bin/busybox", "sh", "-c", line]
        return node.need(*enter)


def config_of(wanted: Wanted, cgroup: str) -> dict[str, Any]:
    """Its OCI config."""
    config = oci_config(cgroup, LIMIT_BYTES)
    config["process"]["args"] = ["/bin/busybox", "sh", "-c", wanted.program]
    config["process"]["user"] = {"uid": wanted.uid, "gid": wanted.uid}
    config["linux"]["devices"] = [
        {"path": path, "type": "c", "major": major, "minor": minor, "fileMode": wanted.mode,
         "uid": 0, "gid": 0}
        for path, (major, minor) in wanted.nodes.items()
    ]  # fmt: skip
    config["linux"]["resources"]["devices"] = [
        {"allow": False, "access": "rwm"},
        *({"allow": True, "type": "c", "major": major, "minor": minor, "access": "rw"}
          for major, minor in wanted.nodes.values()),
    ]  # fmt: skip
    return config


class GpuNode:
    """The node, and the containers that were started on it."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.containers: dict[str, Container] = {}
        self._promises: list[tuple[Wanted, str]] = []

    def start(self, wanted: Wanted) -> Container:
        """Make it, as the kubelet's cgroupfs driver would place it, and write its promise down."""
        key, uid = new_id(), new_uid()
        cgroup = f"/kubepods/burstable/pod{uid}/{key}"
        bundle = self.bundle_of(wanted, cgroup)
        try:
            pid = self.node.start_pod(wanted.name, uid, key, bundle)
        except AssertionError as error:
            raise AssertionError(self.node.run("cat", "/run/last-error").text) from error
        made = Container(wanted.name, key, uid, cgroup, pid)
        self.containers[wanted.name] = made
        if wanted.promised is not None:
            self._promises.append((wanted, uid))
            self.write_checkpoint()
        return made

    def bundle_of(self, wanted: Wanted, cgroup: str) -> Path:
        """Its config and its root."""
        return make_bundle(self.folder / wanted.name, config_of(wanted, cgroup))

    def write_checkpoint(self) -> None:
        """What the kubelet would have written of all of them."""
        rows = [
            {
                "PodUID": uid, "ContainerName": "app", "ResourceName": wanted.resource,
                "DeviceIDs": {"-1": [f"GPU-{uid}"]}, "AllocResp": answer(wanted.promised or ()),
            }
            for wanted, uid in self._promises
        ]  # fmt: skip
        ids = [f"GPU-{uid}" for _, uid in self._promises]
        inner = {"PodDeviceEntries": rows, "RegisteredDevices": {"nvidia.com/gpu": ids}}
        document = {"Data": inner, "Checksum": 0}
        self.node.need("sh", "-c", f"cat > {CHECKPOINT} <<'END'\n{json.dumps(document)}\nEND")

    def gpu(self, *words: str) -> dict[str, Any]:
        """``seawall gpu --json``."""
        return self.node.seawall("gpu", "--json", *words).answered().document

    def end(self) -> None:
        """All of them, and their cgroups."""
        for one in self.containers.values():
            self.node.run("runc", "delete", "-f", one.key)
        time.sleep(0.1)
        remove_cgroups(*(one.cgroup for one in self.containers.values()))


def answer(paths: Sequence[str]) -> str:
    """ContainerAllocateResponse of deviceplugin/v1beta1 with these devices, in base64."""
    put = protobuf_wire.field
    given = (put(1, path) + put(2, path) + put(3, b"rw") for path in map(str.encode, paths))
    return base64.b64encode(b"".join(put(3, one) for one in given)).decode()
