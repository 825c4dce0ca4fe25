"""Pods of the image, as a kubelet asks for them.

The guard as packaging/daemonset.yaml runs it: out of the image of `make dist`, by containerd,
with the manifest's own command, rights, mounts and settings, asked for as the kubelet asks.

It observes, as the manifest says.
"""

import json
from pathlib import Path
from typing import Any

from tests.architecture.manifest import manifest
from tests.containers.cri_node import ON_HOST, ON_HOST_WHOLLY, SERVICE, CriNode, message
from tests.containers.node import Node
from tests.containers.test_guard_runc import may_resource
from tests.end_to_end import cgroups

from release import image
from seawall.formats.protobuf_wire import fields
from seawall.host.grpc_unix.call import Connection

MOST_SECONDS = 120
"""For what takes seconds, on a machine that others keep busy."""
CONTAINER_EXITED = 2
MASKED = ("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/sched_debug", "/proc/scsi", "/sys/firmware")  # fmt: skip
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""What the kubelet asks for where a manifest does not say procMount."""
OWN = ("run", "var/log")
"""Of these the node has its own; of /var/lib the test."""


def volume_path(node: Node, folder: Path, volume: dict[str, Any]) -> Path:
    """Where the kubelet would find it."""
    if "hostPath" not in volume:
        place = folder / volume["name"]
        place.mkdir(parents=True)
        if "configMap" in volume:
            (place / "guard.toml").write_text(manifest()["ConfigMap"]["data"]["guard.toml"])
        return place
    path = Path(volume["hostPath"]["path"])
    if str(path)[1:].startswith(OWN):
        node.need("mkdir", "-p", str(path))
    elif str(path).startswith("/var/lib"):
        path = folder / path.relative_to("/")
        path.mkdir(parents=True)
    return path


def container_config(node: Node, folder: Path) -> bytes:
    """The manifest's container as a ContainerConfig of the CRI."""
    pod = manifest()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {v["name"]: volume_path(node, folder, v) for v in pod["volumes"]}
    mounts = [
        message(
            (1, place["mountPath"]), (2, str(volumes[place["name"]])),
            (3, int(place.get("readOnly") == "true")),
            (5, int(place.get("mountPropagation") == "HostToContainer")),
        )
        for place in container["volumeMounts"]
    ]  # fmt: skip
    rights = container["securityContext"]["capabilities"]
    added = [name for name in rights["add"] if name != "SYS_RESOURCE" or may_resource()]
    security = message(
        (1, message(*((1, name) for name in added), *((2, name) for name in rights["drop"]))),
        (3, ON_HOST),
        (7, int(container["securityContext"]["readOnlyRootFilesystem"] == "true")),
        *((13, path) for path in MASKED),
        *((14, path) for path in READ_ONLY),
        (15, message((1, 1))),
    )
    return message(
        (1, message((1, container["name"]))),
        (2, message((1, f"docker.io/library/{image.NAME}"))),
        *((3, word) for word in container["command"]),
        *((7, mount) for mount in mounts),
        (11, "guard/0.log"),
        (15, message((2, security))),
    )


def debugger_config(command: str) -> bytes:
    """What ``kubectl debug node/N --profile=sysadmin --image=... -- COMMAND`` asks for: privileged,
    the host's namespaces, its root below /host.
    """
    return message(
        (1, message((1, "debugger"))),
        (2, message((1, f"docker.io/library/{image.NAME}"))),
        *((3, word) for word in command.split()),
        (7, message((1, "/host"), (2, "/"))),
        (11, "debugger/0.log"),
        (15, message((2, message((2, 1), (3, ON_HOST_WHOLLY))))),
    )


class ImagePod:
    """A container of it, on this node."""

    def __init__(self, runtime: CriNode, key: str) -> None:
        self.runtime, self.key = runtime, key

    def page(self) -> dict[str, Any]:
        found = self.runtime.node.run("cat", "/run/seawall/status.json")
        page: dict[str, Any] = json.loads(found.text.strip() or "{}")
        return page

    def answers(self, method: str, question: bytes) -> list[tuple[int, Any]]:
        with Connection(self.runtime.socket, MOST_SECONDS) as runtime:
            return list(fields(runtime.call(SERVICE + method, question)))

    def execute(self, *words: str) -> tuple[str, str, int]:
        """``kubectl exec``: output, errors, status."""
        asked = message((1, self.key), *((2, word) for word in words), (3, MOST_SECONDS))
        told: dict[int, Any] = dict(self.answers("ExecSync", asked))
        return told.get(1, b"").decode(), told.get(2, b"").decode(), told.get(3, 0)

    def exit_code(self) -> int | None:
        """Of its first process; None: it runs."""
        answer: dict[int, Any] = dict(self.answers("ContainerStatus", message((1, self.key))))
        told: dict[int, Any] = dict(fields(answer[1]))
        return int(told.get(7, 0)) if told.get(3) == CONTAINER_EXITED else None

    def log(self) -> str:
        """``kubectl logs``: what it printed, without the runtime's stamps."""
        raw = self.runtime.node.run("sh", "-c", "tail -n 100 /var/log/pods/*/*/0.log").text
        return "\n".join(line.split(" ", 3)[-1] for line in raw.splitlines())

    def names(self) -> list[str]:
        """Of the processes in its cgroup."""
        home = cgroups.memory_home()
        assert home
        (procs,) = home.rglob(f"{self.key}/cgroup.procs")
        pids = procs.read_text().split()
        return sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids)
