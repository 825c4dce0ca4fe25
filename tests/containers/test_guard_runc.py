"""The guard as a DaemonSet's container: what packaging/daemonset.yaml gives is enough.

runc starts it with the manifest's own capabilities and mounts, no privilege beside them; it
observes, and its scope is a cgroup of the test's own.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.architecture.manifest import manifest
from tests.containers.node import Node, make_bundle, new_id, oci_config, remove_cgroups
from tests.containers.ring_container import FOLDERS, PYTHON
from tests.end_to_end.guard_room import within
from tests.end_to_end.verbs import SOURCES

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


def config(node: Node, folder: Path) -> dict[str, Any]:
    """The manifest's pod as the runtime would ask runc for it."""
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
        for path, source in (*((f, f) for f in FOLDERS), ("/opt/seawall", str(SOURCES)))
    ]
    made["mounts"] += [bound(node, folder, one, volumes[one["name"]]) for one in places]
    return made


@pytest.fixture
def guard(node: Node, tmp_path: Path) -> Iterator[Guard]:
    if not os.path.isdir("/sys/kernel/tracing"):
        pytest.skip("a kernel without tracefs: no runtime could mount /sys/kernel/tracing")
    if not os.path.exists(PYTHON):
        pytest.skip("python3.11 is missing: apt-get install python3.11")
    bundle = make_bundle(tmp_path / "bundle", config(node, tmp_path))
    root, key = bundle / "rootfs", new_id()
    (root / "bin/seawall").write_text(PROGRAM)
    (root / "bin/seawall").chmod(0o755)
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
