"""Pins of containers that runc really runs on overlayfs: the right inode, and no other.

Every layer and the host have a /bin/busybox; which one is held is judged by device and inode as
the kernel prints them, and page frame by page frame.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.containers.node import (
    Node,
    make_bundle,
    new_id,
    new_uid,
    oci_config,
    remove_cgroups,
)
from tests.pinner import pinner_room
from tests.pinner.pinner_room import Room
from tests.pinner.text_program import frames, segments

pytestmark = pytest.mark.system
NAME = "/bin/busybox"


@dataclass
class Container:
    """One on an overlay of its own over a shared lower layer."""

    cgroup: str
    key: str
    pid: int
    upper: Path
    lower: Path


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with pinner_room.room(tmp_path) as made:
        yield made


@pytest.fixture
def containers(node: Node, tmp_path: Path) -> Iterator[list[Container]]:
    """Two of one image; in the second the program was replaced in its own layer."""
    made: list[Container] = []
    lower = make_bundle(tmp_path / "image", oci_config("/x", 1 << 30)) / "rootfs"
    try:
        made.append(_start(node, tmp_path / "c0", lower, is_replaced=False))
        made.append(_start(node, tmp_path / "c1", lower, is_replaced=True))
        yield made
    finally:
        for one in made:
            node.run("runc", "delete", "-f", one.key)
            remove_cgroups(one.cgroup)


def _start(node: Node, folder: Path, lower: Path, *, is_replaced: bool) -> Container:
    key, uid = new_id(), new_uid()
    cgroup = f"/kubepods/burstable/pod{uid}/{key}"
    config = oci_config(cgroup, 256 << 20)
    config["process"]["args"] = ["/bin/busybox", "sleep", "1000"]
    for name in ("upper", "work", "rootfs"):
        (folder / name).mkdir(parents=True)
    if is_replaced:
        (folder / "upper/bin").mkdir()
        shutil.copy("/bin/busybox", folder / "upper/bin/busybox")
    layers = f"lowerdir={lower},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    node.need("mount", "-t", "overlay", "overlay", "-o", layers, str(folder / "rootfs"))
    (folder / "config.json").write_text(json.dumps(config))
    node.need("mkdir", "-p", f"/var/log/pods/shop_web-{key[:5]}_{uid}/app")
    pid = node.start_pod(f"web-{key[:5]}", uid, key, folder)
    return Container(cgroup, key, pid, folder / "upper", lower)


def rows(page: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in page["files"] if row["name"] == NAME and row["pinned_bytes"]]


def test_each_container_has_its_own_program_held(room: Room, containers: list[Container]) -> None:
    room.start(*(one.cgroup for one in containers))
    page = room.page(lambda page: len(rows(page)) == 2)
    for one in containers:
        theirs = segments(one.pid, NAME)[0]
        found = [row for row in rows(page) if (row["device"], row["inode"]) == theirs.key]
        assert len(found) == 1, (theirs, rows(page))
        assert found[0]["pinned_bytes"] == found[0]["pinned_resident_bytes"]
    host = os.stat("/bin/busybox")
    assert all(row["inode"] != host.st_ino or row["device"] != device(host) for row in rows(page))


def test_their_frames_are_the_very_ones(room: Room, containers: list[Container]) -> None:
    """Of each alone: what the pinner maps of that name is that container's."""
    for one in containers:
        room.start(one.cgroup)
        room.page(lambda page: len(rows(page)) == 1)
        theirs, ours = frames(one.pid, NAME), frames_of_pinner(room)
        both = theirs.keys() & ours.keys()
        assert len(both) > 20
        assert all(theirs[at] == ours[at] for at in both)
        room.end()


def frames_of_pinner(room: Room) -> dict[int, int]:
    """Whatever path its mapping of the container's file is called by."""
    maps = Path(f"/proc/{room.pid}/maps").read_text().splitlines()
    names = {
        words[5] for line in maps
        if len(words := line.split(None, 5)) == 6 and words[1] == "r--s" and "busybox" in words[5]
    }  # fmt: skip
    found: dict[int, int] = {}
    for name in names:
        found |= frames(room.pid, name)
    return found


def device(status: os.stat_result) -> str:
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"


def test_what_was_copied_up_meanwhile_is_not_taken_for_it(
    room: Room, node: Node, containers: list[Container]
) -> None:
    """The path leads to the copy by then; what runs is the lower layer's."""
    one = containers[0]
    node.need("chmod", "0777", f"{one.upper.parent}/rootfs/bin/busybox")
    assert (one.upper / "bin/busybox").exists(), "it was copied up"
    room.start(one.cgroup)
    page = room.page(lambda page: page["round"])
    held = frames_of_pinner(room)
    theirs = frames(one.pid, NAME)
    assert all(theirs[at] == held[at] for at in theirs.keys() & held.keys())
    print(f"{len(held)} pages held: {page['refused'][:1]}")  # noqa: T201 - shown by -rP
    if not held:
        assert "another file is there" in page["refused"][0]["why"]


def test_by_namespace_and_pod(room: Room, node: Node, containers: list[Container]) -> None:
    """Names are the kubelet's folders; the pinner looks where the node's are."""
    pod = f"shop/web-{containers[0].key[:5]}"
    ran = node.seawall("guard", "pins", "--json", "--config", str(write(room, pod)))
    page = ran.answered().document
    theirs = segments(containers[0].pid, NAME)[0]
    (row,) = [row for row in page["files"] if row["name"] == NAME]
    assert (row["device"], row["inode"]) == theirs.key
    assert row["program"] == f"busybox in {pod}"
    assert not page["is_pinning"]
    assert page["names_nobody"] == []


def write(room: Room, pod: str) -> Path:
    path = room.folder / "guard.toml"
    path.write_text(f'pin = ["{pod}"]\n')
    path.chmod(0o644)
    return path


def test_a_container_that_ends_is_let_go_at_once(
    room: Room, node: Node, containers: list[Container]
) -> None:
    """So that its file system can be unmounted."""
    one = containers[0]
    room.start(one.cgroup)
    room.page(lambda page: page["pinned_bytes"])
    node.run("runc", "delete", "-f", one.key)
    page = room.page(lambda page: not page["pinned_bytes"], 10)
    assert page["by_kernel_bytes"] == 0
    assert "rootfs" not in Path(f"/proc/{room.pid}/maps").read_text()
