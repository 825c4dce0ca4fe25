"""runc in the VM: the program, the one library that the guest lacks, a bundle, lines for a job."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.containers.node import oci_config
from tests.containers.ring_container import FOLDERS, LIMIT_BYTES, PYTHON, with_net_raw

UID = "5ea0a11d-0061-4000-8000-{:012x}"
HOME = "/root/bundles"


def missing() -> str | None:
    """Why there is no runc to take along."""
    if shutil.which("runc") is None:
        return "runc is missing: apt-get install runc"
    return None


def files() -> dict[str, bytes]:
    """``$JOB/runc`` and its libraries."""
    program = shutil.which("runc")
    assert program
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    wanted = {m[2]: m[1] for m in re.finditer(r"(libseccomp\S*) => (/\S+)", listed)}
    found = {Path(path).name: Path(path).read_bytes() for path in wanted}
    return {"runc": Path(program).read_bytes(), **found, "setup-runc.sh": _SETUP.encode()}


_SETUP = r"""
mkdir -p /lib/x86_64-linux-gnu; cp $JOB/libseccomp* /lib/x86_64-linux-gnu/; cp $JOB/runc /bin/runc
"""


def cgroup_of(number: int) -> str:
    """As the kubelet's cgroupfs driver would place it."""
    return f"/kubepods/burstable/pod{UID.format(number)}/{key_of(number)}"


def key_of(number: int) -> str:
    """The container's id."""
    return f"{number:064x}"


def name_of(number: int) -> str:
    """As Seawall names it, by its log."""
    return f"shop/render-{number}/app"


def bundle_file(number: int, size: int, mib_per_second: int) -> dict[str, bytes]:
    """Its config: rings of ``size`` bytes once ``/go`` is in its root."""
    config: dict[str, Any] = oci_config(cgroup_of(number), LIMIT_BYTES)
    with_net_raw(config)
    config["root"]["readonly"] = False
    config["mounts"] = [m for m in config["mounts"] if m["type"] not in ("cgroup", "mqueue")]
    config["mounts"] += [
        {"destination": name, "type": "bind", "source": name, "options": ["rbind", "ro"]}
        for name in FOLDERS
    ]
    program = f"exec {PYTHON} -S -E /kernel_loads.py rings {size} {mib_per_second} /go >/out 2>&1"
    config["process"]["args"] = ["/bin/sh", "-c", program]
    return {f"config-{number}.json": json.dumps(config).encode()}


def start(number: int) -> str:
    """Lines that start it; its root is ``/root/bundles/NUMBER/rootfs``."""
    root, key = f"{HOME}/{number}/rootfs", key_of(number)
    folders = " ".join(f"{root}{name}" for name in (*FOLDERS, "/proc", "/dev", "/sys", "/bin"))
    uid = UID.format(number)
    return (
        f"mkdir -p {folders} {root}/tmp /var/log/containers; cp /bin/busybox {root}/bin/sh\n"
        f"cp $JOB/kernel_loads.py {root}/\n"
        f"cp $JOB/config-{number}.json {HOME}/{number}/config.json\n"
        f"ln -s /var/log/pods/shop_render-{number}_{uid}/app/0.log "
        f"/var/log/containers/render-{number}_shop_app-{key}.log\n"
        f"runc run -d -b {HOME}/{number} {key} </dev/null >/run/runc-{number}.log 2>&1 || "
        f"cat /run/runc-{number}.log\n"
        f"tries=0; until grep -q waiting {root}/out || [ $((tries += 1)) -gt 200 ]\n"
        "do sleep 0.1; done\n"
    )


def wait_until_held(number: int) -> str:
    """Lines that wait for its rings."""
    out = f"{HOME}/{number}/rootfs/out"
    return (
        f"tries=0; until grep -q ready {out} || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done\n"
    )
