"""The image that `make dist` makes: what is in it, and under containerd ``why`` of the host and the
guard as the DaemonSet runs it.
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers.cri_node import ON_HOST, ON_HOST_WHOLLY, CriNode, message
from tests.containers.image_pod import MOST_SECONDS, ImagePod, container_config, debugger_config
from tests.containers.node import Node, missing, new_id, remove_cgroups
from tests.containers.test_containerd_pods import Containerd
from tests.end_to_end.guard_room import within
from tests.release import newcomer_road

from release import image

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(1200)]
NAME = f"docker.io/library/{image.NAME}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if os.uname().machine != "x86_64" or not shutil.which("apt-get"):
        pytest.skip("the image is made on Debian, of packages for amd64")
    try:
        archive, sbom = image.build(tmp_path_factory.mktemp("dist"))
    except image.NoSuchPackage as gone:
        pytest.skip(str(gone))
    return archive, sbom


def blobs(archive: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(archive) as layout:
        for name in layout.getnames():
            file = layout.extractfile(name)
            assert file
            found[name] = file.read()
    return found


def test_what_is_in_it(made: tuple[Path, Path]) -> None:
    """Small, of the sums that it names, without a shell, and each package has its line."""
    archive, sbom = made
    assert archive.stat().st_size < 60_000_000
    files = blobs(archive)
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]
    (described,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(files["blobs/sha256/" + described["digest"][7:]])
    names: list[str] = []
    for layer in manifest["layers"]:
        packed = io.BytesIO(files["blobs/sha256/" + layer["digest"][7:]])
        with tarfile.open(fileobj=packed) as tar:
            members = tar.getmembers()
        names += [member.name for member in members]
        assert {(member.uid, member.gid) for member in members} == {(0, 0)}
    assert len(names) == len(set(names))
    programs = {name.rpartition("/")[2] for name in names if name.startswith("usr/bin/")}
    assert {"python3", "python3.11", "seawall"} <= programs
    assert not programs & {"sh", "bash", "dash", "apt-get", "dpkg"}
    assert not [name for name in names if ".case" in name]
    assert [name for name in names if name.startswith("usr/lib/seawall/") and "version.cpy" in name]
    bill = json.loads(sbom.read_text())
    told = {(row["name"], row["versionInfo"]) for row in bill["packages"]}
    assert told >= {(name, version) for name, version, _ in image.pinned_packages()}
    assert {"msgspec", "prometheus_client", "urllib3"} <= {name for name, _ in told}


@pytest.fixture
def containerd(node: Node, tmp_path: Path, made: tuple[Path, Path]) -> Iterator[Containerd]:
    if why := missing("containerd", "ctr"):
        pytest.skip(why)
    running = Containerd(node)
    try:
        running.begin(tmp_path)
        done = running.ctr("default", "image", "import", "--snapshotter", "native", str(made[0]))
        assert done.status == 0, done.err
        yield running
    finally:
        running.end()


def test_it_explains_the_host(containerd: Containerd) -> None:
    """As ``kubectl debug node/N --profile=sysadmin`` runs it, but for the namespace of pids."""
    key = f"seawall-{new_id()[:6]}"
    try:
        asked = containerd.node.run(
            "ctr", "--address", "/run/containerd/containerd.sock", "run", "--rm", "--snapshotter",
            "native", "--privileged", "--read-only", "--net-host", "--mount",
            "type=bind,src=/,dst=/host,options=rbind:ro", NAME, key, "/usr/bin/seawall", "why",
            "--json", "--root", "/host",
        )  # fmt: skip
        assert asked.status == 0, asked.err
        answer: dict[str, Any] = json.loads(asked.text)
        assert answer["schema"].startswith("seawall.why/")
        assert answer["host"]["kernel"] == os.uname().release
    finally:
        containerd.ctr("default", "container", "rm", key)
        remove_cgroups(f"/default/{key}")


@pytest.fixture
def runtime(node: Node, tmp_path: Path) -> Iterator[CriNode]:
    """A node without the image."""
    if why := missing("containerd", "ctr"):
        pytest.skip(why)
    running = CriNode(node, tmp_path)
    try:
        node.need("mount", "--make-rshared", "/")  # as systemd has it on a node
        running.begin()
        yield running
    finally:
        running.end()


@pytest.fixture
def guard(runtime: CriNode, tmp_path: Path, made: tuple[Path, Path]) -> ImagePod:
    if not os.path.isdir("/sys/kernel/tracing"):
        pytest.skip("a kernel without tracefs: no runtime could mount /sys/kernel/tracing")
    words = ("images", "import", "--snapshotter", "native", str(made[0]))
    runtime.node.need("ctr", "-n", "k8s.io", *words)
    runtime.run_sandbox("seawall-guard", ON_HOST)
    config = container_config(runtime.node, tmp_path / "volumes")
    return ImagePod(runtime, runtime.start(config))


def test_it_guards_and_ends_as_the_daemonset_asks(guard: ImagePod) -> None:
    def is_ready() -> bool:
        page = guard.page()
        return page.get("can_kill") is True and page["watcher"].startswith("heard ")

    assert within(MOST_SECONDS, is_ready), (guard.page(), guard.log())
    page = guard.page()
    assert (page["mode"], page["mode_why"]) == ("observe", "")
    assert page["scope"] == ["/kubepods.slice", "/kubepods"]
    processes = {"seawall-guard", "seawall-helper", "seawall-reader", "seawall-record"}
    processes |= {"seawall-spare", "seawall-watcher"}
    assert within(MOST_SECONDS, lambda: set(guard.names()) == processes)
    out, errors, status = guard.execute("seawall", "guard", "status")
    assert (errors, status) == ("", 0)
    assert out.splitlines()[1].startswith("seawall guard OBSERVE"), out
    assert "can kill: proved" in out
    # What its preStop says, and then what the kubelet does.
    assert guard.execute("seawall", "guard", "undo") == ("Nothing was left to undo.\n", "", 0)
    guard.answers("StopContainer", message((1, guard.key), (2, 30)))
    assert within(MOST_SECONDS, lambda: guard.exit_code() is not None)
    assert guard.exit_code() == 0, guard.log()
    assert guard.page()["state"] == "stopped"
    traces = Path("/sys/kernel/tracing/instances")
    assert not [path for path in traces.glob("seawall-*") if f"-{page['pid']}-" in path.name]
    left = [path for path in Path("/sys/fs/cgroup").rglob("seawall*") if guard.key in str(path)]
    assert left == []


def test_a_newcomers_road(
    runtime: CriNode, made: tuple[Path, Path], record_property: Callable[[str, object], None]
) -> None:
    """The import that docs/install.md shows, and of ``kubectl debug`` what the kubelet does for it:
    here is no API server.
    """
    line = newcomer_road.line_with("kubectl debug")
    asked, _, command = line.partition(" -- ")
    assert asked == f"kubectl debug node/N -it --profile=sysadmin --image={image.NAME}"
    shown = "ctr -n k8s.io images import seawall-image-amd64.tar"
    assert shown in (image.REPOSITORY / "docs/install.md").read_text()
    with newcomer_road.timed("image", line, record_property):
        # Where the tests themselves run in a container there can be no overlay.
        runtime.node.need(
            "env", f"--chdir={made[0].parent}", "CONTAINERD_SNAPSHOTTER=native", *shown.split()
        )
        runtime.run_sandbox("node-debugger", ON_HOST_WHOLLY, is_privileged=True)
        pod = ImagePod(runtime, runtime.start(debugger_config(command)))
        assert within(MOST_SECONDS, lambda: pod.exit_code() is not None), pod.log()
        assert pod.exit_code() == 0, pod.log()
        newcomer_road.check(pod.log())
