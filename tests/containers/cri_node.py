"""A pod on a real containerd, made through its CRI as a kubelet would: with our own client.

The daemon has its own root, state and socket, the latter two at the usual places of the node's
own /run.  The sandbox is on the host's network: no CNI is needed.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.containers.node import Node, make_image, new_uid, remove_cgroups

from seawall.formats.protobuf_wire import field, fields
from seawall.host.grpc_unix.call import Connection

SOCKET = "/run/containerd/containerd.sock"
IMAGE = "seawall.test/sleep:1"
SERVICE = "/runtime.v1.RuntimeService/"
CONFIG = f"""\
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "/run/no-cni"
"""
SLEEP = ("/bin/busybox", "sleep", "1000")


def message(*parts: tuple[int, str | bytes | int]) -> bytes:
    """Fields of a protobuf message; numbers as varints of one byte."""
    return b"".join(
        bytes([number << 3, value])
        if isinstance(value, int)
        else field(number, value.encode() if isinstance(value, str) else value)
        for number, value in parts
    )


ON_HOST_NETWORK = message((1, 2))
ON_HOST = message((1, 2), (2, 2))
"""Its pids, too."""
ON_HOST_WHOLLY = message((1, 2), (2, 2), (3, 2))
"""And its IPC."""


class CriNode:
    """The daemon, and the one pod on it."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self._folder = node, folder
        self.uid = new_uid()
        self._cgroups: list[str] = []
        self._sandbox = ""
        self._config = b""

    def begin(self) -> None:
        """The daemon answers, and has the image."""
        (self._folder / "config.toml").write_text(CONFIG)
        self.node.need(
            "sh", "-c",
            f"containerd --config {self._folder}/config.toml --root {self._folder}/root --state "
            f"/run/containerd --address {SOCKET} >{self._folder}/log 2>&1 </dev/null & "
            "echo $! >/run/containerd.pid",
        )  # fmt: skip
        image = self._folder / "image.tar"
        make_image(image, IMAGE, SLEEP)
        deadline = time.monotonic() + 20
        words = ("image", "import", "--snapshotter", "native", str(image))
        while self.node.run("ctr", "--address", SOCKET, "-n", "k8s.io", *words).status:
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.1)

    def log(self) -> str:
        """The daemon's own."""
        return (self._folder / "log").read_text()[-4000:]

    @property
    def socket(self) -> str:
        """The daemon's socket, as it is seen from outside the node."""
        return f"/proc/{self.node.pid}/root{SOCKET}"

    def call(self, method: str, question: bytes = b"") -> dict[int, bytes]:
        """The answer's fields of bytes, the last of each number."""
        with Connection(self.socket, 20) as runtime:
            answer = runtime.call(SERVICE + method, question)
        return {number: value for number, value in fields(answer) if isinstance(value, bytes)}

    def run_sandbox(
        self, name: str, spaces: bytes = ON_HOST_NETWORK, *, is_privileged: bool = False
    ) -> None:
        """A pod on the host's network.  ``spaces``: a NamespaceOption."""
        parent = f"/kubepods/burstable/pod{self.uid}"
        linux = message((1, parent), (2, message((1, spaces), (6, int(is_privileged)))))
        self._config = message(
            (1, message((1, name), (2, self.uid), (3, "ml"))),
            (3, f"/var/log/pods/ml_{name}_{self.uid}"),
            (8, linux),
        )
        self._cgroups.append(parent)
        self._sandbox = self.call("RunPodSandbox", message((1, self._config)))[1].decode()
        self._cgroups.append(f"{parent}/{self._sandbox}")

    def run(
        self, name: str, devices: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> str:
        """The id of a container that sleeps."""
        config = message(
            (1, message((1, name))),
            (2, message((1, IMAGE))),
            *((3, word) for word in SLEEP),
            *((6, message((1, key), (2, value))) for key, value in (environment or {}).items()),
            *((8, message((1, path), (2, path), (3, "rw"))) for path in devices),
            (11, f"{name}/0.log"),
            (15, message((1, message((3, 100))))),
        )
        return self.start(config)

    def start(self, config: bytes) -> str:
        """The id of a container of this ContainerConfig, which runs."""
        asked = message((1, self._sandbox), (2, config), (3, self._config))
        key = self.call("CreateContainer", asked)[1].decode()
        self._cgroups.append(f"/kubepods/burstable/pod{self.uid}/{key}")
        self.call("StartContainer", message((1, key)))
        return key

    def end(self) -> None:
        """Pod, daemon and cgroups."""
        try:
            if self._sandbox:
                self.call("StopPodSandbox", message((1, self._sandbox)))
                self.call("RemovePodSandbox", message((1, self._sandbox)))
        finally:
            self.node.run("sh", "-c", "kill $(cat /run/containerd.pid)")
            remove_cgroups(*self._cgroups)
