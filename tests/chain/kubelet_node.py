"""A real kubelet with containerd, in QEMU, that joins a control plane of this host."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.agent_account import AGENT_ACCOUNT
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.rendered_manifests import NAMESPACE
from tests.kernels import vm, vm_monitor
from tests.kernels.power_cut_node import Node

HOST = "10.0.2.2"
"""QEMU's user network: this host's loopback."""
MEMORY_MIB = 1280
DISK_IOPS = 250
DISK = "virtio0"
TOKEN_SECONDS = 7200


class KubeletPlane(ControlPlane):
    """Without kwok: kubelets are real, each with its own name and rights."""

    def __init__(self, program: Path, nodes: tuple[str, ...], **more: object) -> None:
        super().__init__(program, kwok=program, **more)  # type: ignore[arg-type]
        self.nodes = nodes

    def start_kubelets(self) -> None:
        """They boot later."""

    def write_keys(self) -> None:
        super().write_keys()
        with open(self.folder / "tokens.csv", "a") as tokens:
            for name in self.nodes:
                user = f"system:node:{name}"
                tokens.write(f'{self.token_of(name)},{user},{user},"system:nodes"\n')

    def token_of(self, node: str) -> str:
        return f"{self.tokens['kubelets']}-{node}"

    def node_kubeconfig(self, node: str) -> str:
        """As the node sees this host; JSON is YAML."""
        text = json.dumps(self.kubeconfig_of(self.token_of(node)))
        return text.replace("127.0.0.1", HOST).replace(
            str(self.folder / "tls.crt"), "/run/job/ca.crt"
        )


class KubeletNode(Node):
    """Boots when it is made; its disk is fast until ``hold_disk``."""

    cpus = 1
    """Two that share less than one of the host's spin for each other's locks."""
    takes_input = True
    is_own_session = True

    def __init__(
        self, image: vm.Image, folder: Path, name: str, files: Mapping[str, bytes],
        *, keeps_disk: bool = False,
    ) -> None:  # fmt: skip
        folder.mkdir(exist_ok=True)
        self.name, self.image, self.monitor = name, image, folder / "monitor"
        self.monitor.unlink(missing_ok=True)
        self.reads = 0
        super().__init__(
            image, folder, "", (), files=files, memory_mib=MEMORY_MIB, keeps_disk=keeps_disk,
            options=(
                "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
                "-qmp", f"unix:{self.monitor},server=on,wait=off",
            ),
        )  # fmt: skip

    def hold_disk(self) -> None:
        vm_monitor.hold_disk(self.monitor, DISK, DISK_IOPS)

    def use_guard(self, text: str) -> None:
        """Another file for its guard, which reads it now."""
        self.reads += 1
        lines = text.strip().replace("\n", "\\n")
        self.type_line(f"printf '{lines}\\n' > /etc/seawall/guard.toml")
        said = f"=== guard reads {self.reads}"
        self.type_line(f"systemctl reload seawall-guard && echo {said} > /dev/console")
        self.wait_for(said, 120)


def own_disk(image: vm.Image, folder: Path) -> vm.Image:
    """A copy that keeps what is written."""
    disk = folder / "root.ext4"
    subprocess.run(["cp", "--sparse=always", str(image.disk), str(disk)], check=True)
    return vm.Image(image.kernel, image.initramfs, disk)


def files_of(
    plane: KubeletPlane, client: ApiClient, name: str, guard: str | None
) -> dict[str, bytes]:
    """Of the job's disk.  ``guard``: the guard's file; None: nothing of Seawall runs."""
    files = {
        "node.env": f"NODE={name}\nSERVER=https://{HOST}:{plane.port}\n".encode(),
        "kubeconfig": plane.node_kubeconfig(name).encode(),
        "ca.crt": (plane.folder / "tls.crt").read_bytes(),
    }
    if guard is not None:
        files["guard.toml"] = guard.encode()
        files["token"] = agent_token(client, name).encode()
    return files


def agent_token(client: ApiClient, node: str) -> str:
    """Bound to the node's object, which the kubelet takes over when it registers."""
    path = "/api/v1/nodes"
    body: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
    try:
        made = client.create(path, body)
    except ApiError as problem:
        if problem.reason != "AlreadyExists":
            raise
        made = client.get(f"{path}/{node}")
    bound = {"kind": "Node", "apiVersion": "v1", "name": node, "uid": made["metadata"]["uid"]}
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{AGENT_ACCOUNT}/token"
    answer = client.create(account, {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound, "expirationSeconds": TOKEN_SECONDS}})  # fmt: skip
    return str(answer["status"]["token"])
