"""A runc container that takes packet rings as a pod could, with CAP_NET_RAW and a limit.

Named as the kubelet names them; it waits until ``go`` and then takes them.
"""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.containers.node import Node, make_bundle, new_id, new_uid, oci_config, remove_cgroups
from tests.end_to_end.innocents import PROGRAM

MIB = 1 << 20
PYTHON = "/usr/bin/python3.11"
FOLDERS = ("/usr", "/lib", "/lib64")
LIMIT_BYTES = 200 * MIB


@dataclass(frozen=True)
class RingContainer:
    """One that holds rings, or will."""

    name: str
    cgroup: str
    pid: int
    root: Path

    def go(self) -> None:
        """Let it begin; returns when it holds all that it wants."""
        (self.root / "go").touch()
        until = time.monotonic() + 60
        while "ready" not in (self.root / "out").read_text():
            assert time.monotonic() < until, (self.root / "out").read_text()
            time.sleep(0.05)


def with_net_raw(config: dict[str, Any]) -> None:
    """The capability that many images ask for, for ping."""
    for kind in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][kind].append("CAP_NET_RAW")


@contextlib.contextmanager
def ring_container(
    node: Node, folder: Path, size: int, *, mib_per_second: int = 0, pod: str = "render-5f6d8-zt2kq"
) -> Iterator[RingContainer]:
    """In a network namespace of its own, as pods are."""
    key, uid = new_id(), new_uid()
    cgroup = f"/kubepods/burstable/pod{uid}/{key}"
    config = oci_config(cgroup, LIMIT_BYTES)
    with_net_raw(config)
    config["root"]["readonly"] = False
    config["mounts"] += [
        {"destination": name, "type": "bind", "source": name, "options": ["rbind", "ro"]}
        for name in FOLDERS
    ]
    program = ["/kernel_loads.py", "rings", str(size), str(mib_per_second), "/go"]
    config["process"]["args"] = ["/bin/sh", "-c", f"exec {PYTHON} -S -E {' '.join(program)} >/out"]
    bundle = make_bundle(folder / f"bundle-{pod}", config)
    root = bundle / "rootfs"
    for name in FOLDERS:
        (root / name[1:]).mkdir(parents=True, exist_ok=True)
    shutil.copy(PROGRAM, root / "kernel_loads.py")
    try:
        pid = node.start_pod(pod, uid, key, bundle)
        until = time.monotonic() + 30
        while "waiting" not in ((root / "out").read_text() if (root / "out").exists() else ""):
            assert time.monotonic() < until, "the container's program did not start"
            time.sleep(0.05)
        yield RingContainer(f"shop/{pod}/app", cgroup, pid, root)
    finally:
        node.run("runc", "delete", "-f", key)
        remove_cgroups(cgroup)
