"""The image that `make dist` makes: what is in it, and ``why`` of the host under containerd."""

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers.node import Node, missing, new_id, remove_cgroups
from tests.containers.test_containerd_pods import Containerd

from release import image

pytestmark = [pytest.mark.system, pytest.mark.beside]
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
