"""``seawall gpu query WORKLOAD`` against containers that runc runs.

The libraries are stand-ins that really open the nodes that they are given (driver_stand_in), and
what refuses is this machine's kernel.  They write down what they see of the process that loaded
them: the best witness of what it may do.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.containers import node as nodes
from tests.containers.gpu_node import WITHOUT_UVM, Container, GpuNode, Wanted, config_of, set_up
from tests.containers.test_gpu_runc import DEVICES, SOME, missing, rule
from tests.host.driver_stand_in import INSIDE_CUDA, INSIDE_NVML, build, needs_compiler

pytestmark = [pytest.mark.system, pytest.mark.beside, needs_compiler]
DRIVER = "/run/nvidia/driver/usr/lib64"
CUDA = "libcuda.so.550.54.14"
MAPPED = 100_000
SCHEMA = json.loads((files("seawall.views") / "schemas/gpu-query.json").read_text())
HOSTILE = r"""
#include <fcntl.h>
__attribute__((constructor)) static void loaded(void)
{
    open("/dev/shm/loaded", O_CREAT | O_WRONLY, 0666);
    open("/run/loaded", O_CREAT | O_WRONLY, 0666);
}
int cuInit(unsigned int flags) { return 0; }
"""


class QueryNode(GpuNode):
    """Where some containers are made otherwise."""

    def bundle_of(self, wanted: Wanted, cgroup: str) -> Path:
        config = config_of(wanted, cgroup)
        config["process"]["env"] += ["CUDA_VISIBLE_DEVICES=0", "CUDA_INJECTION64_PATH=/evil.so"]
        folder = Path("/run/bundles") / wanted.name
        if wanted.name == "mapped":
            config["linux"]["namespaces"].append({"type": "user"})
            mapping = [{"containerID": 0, "hostID": MAPPED, "size": 65536}]
            config["linux"] |= {"uidMappings": mapping, "gidMappings": mapping}
        if wanted.name == "whole":
            config["mounts"].append(
                {"destination": f"/usr/lib64/{CUDA}", "source": f"{DRIVER}/{CUDA}",
                 "type": "bind", "options": ["bind", "ro"]}
            )  # fmt: skip
        made = nodes.make_bundle(self.folder / wanted.name, config)
        self._give_libraries(made / "rootfs/usr/lib64", wanted.name)
        # The node's /run lets everybody through, which pytest's own folders do not.
        self.node.need("sh", "-c", f"mkdir -p /run/bundles && cp -a {made} {folder}")
        return folder

    def start(self, wanted: Wanted) -> Container:
        if wanted.name != "mapped":
            return super().start(wanted)
        # No user namespace mounts a procfs of which the one outside hides something.
        self.node.need("umount", "/proc/devices")
        try:
            return super().start(wanted)
        finally:
            self.node.need("mount", "--bind", "/run/devices", "/proc/devices")

    def _give_libraries(self, folder: Path, name: str) -> None:
        if name not in ("whole", "hostile"):
            return
        folder.mkdir(parents=True)
        version = CUDA if name == "whole" else "libcuda.so.535.104.05"
        (folder / version).touch()
        (folder / "libcuda.so.1").symlink_to(version)
        if name == "hostile":
            build(HOSTILE, folder / version)

    def query(self, name: str, *words: str) -> dict[str, Any]:
        """``seawall gpu query --json``."""
        ran = self.node.seawall("gpu", "query", f"shop/{name}/app", "--json", *words)
        found = ran.answered().document
        jsonschema.validate(found, SCHEMA)
        return found

    def members(self, name: str) -> list[int]:
        """Who is in its device cgroup."""
        cgroup = self.containers[name].cgroup.strip("/")
        return [int(pid) for pid in (DEVICES / cgroup / "cgroup.procs").read_text().split()]

    def witness(self, name: str) -> dict[str, str]:
        """What the library saw, from the container's /dev/shm."""
        path = Path(f"/proc/{self.containers[name].pid}/root/dev/shm/witness")
        rows = [line.partition(":\t") for line in path.read_text().splitlines()]
        found = {key: value for key, colon, value in rows if colon}
        links = [line.partition("\t") for line in path.read_text().splitlines()
                 if line.startswith(("fd:", "ns:"))]  # fmt: skip
        return found | {key: value for key, _, value in links}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryNode]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("query")
    build(INSIDE_CUDA, folder / CUDA, "-pthread")
    build(INSIDE_NVML, folder / "libnvidia-ml.so.1")
    with nodes.node(folder) as plain:
        set_up(plain)
        plain.need("sh", "-c", f"mkdir -p {DRIVER} && cp {folder}/lib*.so* {DRIVER} && "
                   f"ln -s {CUDA} {DRIVER}/libcuda.so.1")  # fmt: skip
        made = QueryNode(plain, folder)
        try:
            made.start(Wanted(name="whole"))
            made.start(Wanted(name="no-uvm", nodes=SOME, promised=WITHOUT_UVM))
            made.start(Wanted(name="denied"))
            made.start(Wanted(name="user", mode=0o600, uid=1000))
            made.start(Wanted(name="hostile"))
            made.start(Wanted(name="mapped"))
            rule(made.containers["denied"], "devices.deny", "c 510:0 rwm")
            yield made
        finally:
            made.end()


def pid_namespaces(pid: int) -> list[str]:
    """Its number in each that it is in."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))


def test_what_works(node: QueryNode) -> None:
    found = node.query("whole")
    assert (found["problem"], found["failed"]) == (None, [])
    assert [one["name"] for one in found["devices"]] == ["A stand-in"]
    assert (found["workload"], found["libraries_of"]) == ("shop/whole/app", "host")
    assert found["asked_as"] == {"pid": node.containers["whole"].pid, "uid": 0}
    assert found["environment"] == {"CUDA_VISIBLE_DEVICES": "0"}
    (own,) = found["container_libraries"]
    assert own == {"name": "cuda", "path": "/usr/lib64/libcuda.so.1", "version": "550.54.14",
                   "is_the_hosts": True}  # fmt: skip


def test_who_asks_has_what_the_container_has_and_no_more(node: QueryNode) -> None:
    """By what the library itself sees, while it is asked."""
    node.query("whole")
    seen, one = node.witness("whole"), node.containers["whole"]
    status = Path(f"/proc/{one.pid}/status").read_text().splitlines()
    theirs = dict(line.split(":\t") for line in status if line)
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert seen[name] == theirs[name], name
        assert seen[name] != "000001ffffffffff"
    assert int(seen["CapAmb"], 16) == int(seen["CapInh"], 16) == 0
    assert (seen["Uid"].split(), seen["Gid"].split()) == (["0"] * 4, ["0"] * 4)
    assert (seen["NoNewPrivs"], seen["Seccomp"], seen["dumpable"]) == ("1", "2", "0")
    for name in ("mnt", "pid", "ipc", "net", "uts", "cgroup"):
        assert seen[f"ns:{name}"] == os.readlink(f"/proc/{one.pid}/ns/{name}"), name
    descriptors = [value for key, value in seen.items() if key.startswith("fd:")]
    assert all(value.startswith(("pipe:", "/dev/shm/witness", "/proc/")) for value in descriptors)
    assert len({value for value in descriptors if value.startswith("pipe:")}) == 2, descriptors
    assert seen["exe"].startswith("/memfd:"), "no file of the host"
    assert int(seen["write_exe"]) != 0
    for call in ("fork", "exec", "unshare", "ptrace", "undump", "undeath"):
        assert int(seen[call]) != 0, call
    assert (seen["thread"], seen["visible"], seen["secret"]) == ("0", "0", "(null)")


def test_a_node_that_the_plugin_left_out(node: QueryNode) -> None:
    found = node.query("no-uvm")
    (failed,) = found["failed"]
    assert (failed["call"], failed["code"]) == ("cuInit", 999)
    assert "/dev/nvidia-uvm: ENOENT; the layer that refuses it is promised: " in failed["proof"]
    assert found["diagnosis"]["mode"] == "F1"
    text = node.node.seawall("gpu", "query", "shop/no-uvm/app").answered().text
    assert "As shop/no-uvm/app (pid " in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_device_cgroup_that_refuses(node: QueryNode) -> None:
    found = node.query("denied")
    (failed,) = found["failed"]
    assert (failed["call"], failed["code"]) == ("cuInit", 999)
    assert "/dev/nvidia-uvm: EPERM; the layer that refuses it is kernel: " in failed["proof"]
    assert found["diagnosis"]["mode"] == "F6"


def test_a_mode_that_refuses_this_user(node: QueryNode) -> None:
    found = node.query("user")
    assert found["asked_as"]["uid"] == 1000
    assert {(one["call"], one["code"]) for one in found["failed"]} == {
        ("nvmlInitWithFlags", 999), ("cuInit", 100),
    }  # fmt: skip
    assert all("EACCES" in one["proof"] for one in found["failed"])
    assert found["diagnosis"]["mode"] == "mode"


def test_a_user_namespace(node: QueryNode) -> None:
    found = node.query("mapped")
    assert (found["problem"], found["failed"]) == (None, [])
    assert found["asked_as"]["uid"] == MAPPED
    seen, pid = node.witness("mapped"), node.containers["mapped"].pid
    assert seen["uid_map"].split() == ["0", str(MAPPED), "65536"]
    assert seen["Uid"].split() == ["0"] * 4, "as it is called there"
    assert Path(f"/proc/{pid}/root/dev/shm/witness").stat().st_uid == MAPPED
    assert seen["CapEff"] == seen["CapPrm"] != "000001ffffffffff"


def test_a_library_of_the_containers_own_is_never_loaded(node: QueryNode) -> None:
    found = node.query("hostile")
    assert (found["problem"], found["failed"]) == (None, [])
    (own,) = found["container_libraries"]
    assert (own["version"], own["is_the_hosts"]) == ("535.104.05", False)
    pid = node.containers["hostile"].pid
    for path in ("/dev/shm/loaded", "/run/loaded"):
        assert not Path(f"/proc/{pid}/root{path}").exists()
        assert not Path(f"/proc/{node.node.pid}/root{path}").exists()
    assert found["container_library_differs"].startswith(
        "the container has libcuda 535.104.05 of its own (/usr/lib64/libcuda.so.1), the host "
        "550.54.14: the container's was not asked"
    )


LOOK = r"""
for p in /proc/[0-9]*; do
  case $(busybox tr '\0' ' ' < $p/cmdline) in
    /bin/busybox*|busybox*) continue;;
    *" -I -S "*) ;;
    *) continue;;
  esac
  echo found
  for name in environ maps mem; do busybox head -c 1 $p/$name; done
  busybox head -c 1 $p/fd/3; busybox ls $p/root/; busybox readlink $p/exe $p/fd/3
done
"""
"""Whoever asks, as another process of the container finds it."""


def test_a_driver_that_hangs_costs_only_who_asks_and_nobody_there_looks_into_it(
    node: QueryNode,
) -> None:
    one = node.containers["whole"]
    before = node.members("whole")
    one.inside(node.node, "touch /dev/shm/hang")
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(node.query, "whole", "--timeout", "8")
        while len(node.members("whole")) < len(before) + 2:
            assert time.monotonic() < began + 10
            time.sleep(0.05)
        time.sleep(0.2)
        looked = node.node.run("runc", "exec", one.key, "/bin/busybox", "sh", "-c", LOOK)
        hung = asking.result()
    assert time.monotonic() - began < 14
    assert looked.out == b"found\n", "by its command line, and nothing else of it"
    assert looked.err.count(b"Permission denied") >= 5, looked.err
    assert "held up whoever asked for more than " in hung["problem"]
    assert hung["left_behind"] == []
    assert node.members("whole") == before == [one.pid]
    one.inside(node.node, "rm /dev/shm/hang; touch /dev/shm/crash")
    assert "ended there by signal 6" in node.query("whole")["problem"]
    one.inside(node.node, "rm /dev/shm/crash")
    assert node.query("whole")["problem"] is None
    assert node.members("whole") == before


def test_nobody_stays_there_when_whoever_watches_is_killed(node: QueryNode) -> None:
    one = node.containers["whole"]
    one.inside(node.node, "touch /dev/shm/hang")
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(node.query, "whole", "--timeout", "9")
        until = time.monotonic() + 10
        while len(found := sorted(node.members("whole"))) < 3:
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.1)
        outside = [pid for pid in found if len(pid_namespaces(pid)) == 1]
        assert len(outside) == 1, "only whoever asks is in the container's pid namespace"
        os.kill(outside[0], signal.SIGKILL)
        assert asking.result()["problem"] == "whoever asked was ended before it answered"
    one.inside(node.node, "rm /dev/shm/hang")
    assert node.members("whole") == [one.pid]


def test_nothing_is_changed_there(node: QueryNode) -> None:
    one = node.containers["whole"]
    look = "ls -la /dev/nv* /dev/null; /bin/busybox cat /proc/1/mountinfo; /bin/busybox ps"

    def state() -> tuple[str, str]:
        listed = DEVICES / one.cgroup.strip("/") / "devices.list"
        return one.inside(node.node, look), listed.read_text()

    before = state()
    node.query("whole")
    assert state() == before


def test_who_cannot_be_asked_is_told(node: QueryNode) -> None:
    gone = node.start(Wanted(name="gone", promised=None))
    node.node.need("runc", "kill", gone.key, "KILL")
    while Path(f"/proc/{gone.pid}/root").exists():
        time.sleep(0.02)
    for words, expected in (
        (("shop/gone/app",), "shop/gone/app"),
        (("shop/none/app",), "no workload 'shop/none/app'"),
        (("shop/whole/app", "--root", str(node.folder)), "no proc folder"),
    ):
        ran = node.node.seawall("gpu", "query", *words)
        assert ran.status == 2, (words, ran.out)
        assert expected in ran.err.decode()
        assert b"Traceback" not in ran.err


def test_an_ordinary_user_is_told_what_it_takes(node: QueryNode) -> None:
    drop = ["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--"]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing: apt-get install util-linux")
    ran = node.node.run(*drop, nodes.sys.executable, "-m", "seawall", "gpu", "query", "pid:1")
    assert ran.status == 2
    assert "needs root (CAP_SYS_ADMIN, CAP_SYS_PTRACE)" in ran.err.decode()
