"""The guard as a DaemonSet's container: what packaging/daemonset.yaml gives is enough.

runc starts it with the manifest's own capabilities and mounts, no privilege beside them; it
observes, and its scope is a cgroup of the test's own.  Once out of this source tree, once out of
the image that Docker built of packaging/Containerfile.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.architecture.manifest import PACKAGING, manifest
from tests.containers.docker_engine import Engine
from tests.containers.node import BUSYBOX, Node, make_bundle, new_id, oci_config, remove_cgroups
from tests.containers.ring_container import FOLDERS, PYTHON
from tests.end_to_end.guard_room import within
from tests.end_to_end.verbs import SOURCES
from tests.kernels import vm

from seawall.version import VERSION

pytestmark = pytest.mark.system
CGROUP = f"/seawall-TEST-daemonset-{os.getpid()}"
PROGRAM = f'#!/bin/sh\nPYTHONPATH=/opt/seawall exec {PYTHON} -S -m seawall "$@"\n'
FROM_KUBELET = -997
"""oom_score_adj of a pod that is system-node-critical."""


def may_resource() -> bool:
    """CAP_SYS_RESOURCE is number 24; a machine of tests may lack it."""
    status = Path("/proc/self/status").read_text()
    return bool(int(status.split("CapBnd:")[1].split()[0], 16) >> 24 & 1)


class Guard:
    """The container."""

    def __init__(self, node: Node, key: str) -> None:
        self._node, self._key = node, key

    def page(self) -> dict[str, Any]:
        ran = self._node.run("cat", "/run/seawall/status.json")
        found: dict[str, Any] = json.loads(ran.text.strip() or "{}")
        return found

    def runs(self) -> bool:
        return self._node.run("runc", "state", self._key).status == 0

    def log(self) -> str:
        return self._node.run("cat", "/run/last-error").text

    def runc(self, *words: str) -> str:
        return self._node.need("runc", *(word.replace("KEY", self._key) for word in words))


def bound(node: Node, folder: Path, place: dict[str, Any], volume: dict[str, Any]) -> Any:
    """One mount as the kubelet and containerd make it of a volume."""
    if "emptyDir" in volume:
        source = folder / "empty"
        source.mkdir()
    elif "configMap" in volume:
        source = folder / "config"
        source.mkdir()
        text = manifest()["ConfigMap"]["data"]["guard.toml"]
        lines = [line for line in text.splitlines() if not line.startswith("scope")]
        lines += [f'scope = ["{CGROUP}"]', "tick_most_seconds = 1", ""]
        (source / "guard.toml").write_text("\n".join(lines))
    else:
        source = Path(volume["hostPath"]["path"])
        if source.parts[1] == "run" or source.parts[1:3] == ("var", "log"):  # the node's own
            node.need("mkdir", "-p", str(source))
        elif not source.exists():
            source = folder / source.name
            source.mkdir()
    options = ["rbind", "rprivate", "ro" if place.get("readOnly") == "true" else "rw"]
    return {"destination": place["mountPath"], "type": "bind", "source": str(source),
            "options": options}  # fmt: skip


def config(node: Node, folder: Path, binds: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The manifest's pod as the runtime would ask runc for it; ``binds``: beside its volumes."""
    pod = manifest()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    made = oci_config(CGROUP, 1 << 30)
    made["linux"]["resources"].pop("memory")
    wanted = [f"CAP_{name}" for name in container["securityContext"]["capabilities"]["add"]]
    made["process"]["capabilities"] = dict.fromkeys(("bounding", "effective", "permitted"), wanted)
    made["process"]["noNewPrivileges"] = False
    if may_resource():
        made["process"]["oomScoreAdj"] = FROM_KUBELET
    else:
        wanted.remove("CAP_SYS_RESOURCE")
    made["process"]["args"] = container["command"]
    shared = {"pid" if pod["hostPID"] == "true" else "", "network"}
    spaces = [one for one in made["linux"]["namespaces"] if one["type"] not in {*shared, "cgroup"}]
    made["linux"]["namespaces"] = [*spaces, {"type": "cgroup"}]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    places = sorted(container["volumeMounts"], key=lambda place: place["mountPath"])
    made["mounts"] = [one for one in made["mounts"] if one["type"] != "cgroup"]
    made["mounts"] += [
        {"destination": path, "type": "bind", "source": source, "options": ["rbind", "ro"]}
        for path, source in binds
    ]
    made["mounts"] += [bound(node, folder, one, volumes[one["name"]]) for one in places]
    return made


def of_sources(node: Node, folder: Path) -> Path:
    """A bundle that runs what is in this checkout."""
    binds = (*((f, f) for f in FOLDERS), ("/opt/seawall", str(SOURCES)))
    bundle = make_bundle(folder / "bundle", config(node, folder, binds))
    seawall = bundle / "rootfs/bin/seawall"
    seawall.write_text(PROGRAM)
    seawall.chmod(0o755)
    return bundle


def of_image(node: Node, folder: Path) -> Path:
    """A bundle of the image, on an interpreter like that of its base."""
    base = folder / "base"
    (base / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, base / "bin/busybox")
    for name in ("sh", "test"):
        (base / "bin" / name).symlink_to("busybox")
    vm.install_python(base)
    (base / "usr/bin/python3").symlink_to("python3.11")
    subprocess.run(["tar", "cf", folder / "base.tar", "-C", base, "."], check=True, timeout=60)
    engine = Engine(node, folder / "docker")
    engine.folder.mkdir()
    try:
        engine.begin()
        engine.need("import", str(folder / "base.tar"), "seawall-test-base:1")
        engine.need(
            "build", "--network", "none", "--build-arg", "BASE=seawall-test-base:1",
            "-f", str(PACKAGING / "Containerfile"), "-t", "seawall-test:1", str(PACKAGING.parent),
        )  # fmt: skip
        told = engine.need("run", "--rm", "--network", "none", "seawall-test:1", "--version")
        assert told == f"seawall {VERSION}\n"
        engine.keys.append(engine.need("create", "seawall-test:1").strip())
        bundle = make_bundle(folder / "bundle", config(node, folder, ()))
        shutil.rmtree(bundle / "rootfs")
        (bundle / "rootfs").mkdir()
        engine.need("export", "-o", str(folder / "root.tar"), engine.keys[0])
    finally:
        engine.end()
        subprocess.run(["umount", "-R", engine.folder], capture_output=True, check=False)
    subprocess.run(["tar", "xf", folder / "root.tar", "-C", bundle / "rootfs"], check=True,
                   timeout=60)  # fmt: skip
    return bundle


@pytest.fixture(params=[of_sources, of_image])
def guard(
    node: Node, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Guard]:  # fmt: skip
    if not os.path.isdir("/sys/kernel/tracing"):
        pytest.skip("a kernel without tracefs: no runtime could mount /sys/kernel/tracing")
    if not os.path.exists(PYTHON):
        pytest.skip("python3.11 is missing: apt-get install python3.11")
    bundle, key = request.param(node, tmp_path), new_id()
    try:
        made = Guard(node, key)
        with contextlib.suppress(AssertionError):  # the log says why
            node.start("runc", "run", "-d", "-b", str(bundle), key)
        assert made.runs(), made.log()
        yield made
    finally:
        node.run("runc", "delete", "-f", key)
        with contextlib.suppress(OSError):
            remove_cgroups(f"{CGROUP}/seawall-self-test", CGROUP)


def test_it_sees_and_proves_that_it_could_kill(guard: Guard) -> None:
    assert within(30, lambda: guard.page().get("can_kill") is True), (guard.page(), guard.log())
    assert within(20, lambda: guard.page()["watcher"].startswith("heard ")), guard.log()
    page = guard.page()
    assert (page["mode"], page["mode_why"], page["scope"]) == ("observe", "", [CGROUP])
    pid = json.loads(guard.runc("state", "KEY"))["pid"]
    assert page["pid"] == pid, "its pids are the host's"
    own = Path(f"/proc/{pid}")
    assert "THP_enabled:\t0\n" in (own / "status").read_text()
    if may_resource():
        assert (own / "oom_score_adj").read_text() == "-999\n"
    # Cgroup v1 may have no real-time budget below its root.
    is_first = os.sched_getscheduler(pid) & 7 == os.SCHED_FIFO
    assert is_first or os.getpriority(os.PRIO_PROCESS, pid) == -20
    lacks = re.findall(r"CAP_(?:IPC_LOCK|SYS_NICE|SYS_ADMIN|NET_ADMIN)", " ".join(page["blind"]))
    assert lacks == []
    assert [words.partition(":")[0] for words in page["problems"]] == ["/dev/kmsg"]
    assert f":{CGROUP}\n" in (own / "cgroup").read_text()
    assert guard.runc("exec", "KEY", "seawall", "guard", "undo") == "Nothing was left to undo.\n"
    guard.runc("kill", "KEY", "TERM")
    assert within(10, lambda: guard.page()["state"] == "stopped")
    assert not list(Path("/sys/fs/cgroup").glob(f"*{CGROUP}/*/cgroup.procs"))
