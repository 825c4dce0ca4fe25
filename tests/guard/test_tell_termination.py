"""The termination message: real files, and a container that planted something there."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.guard.telling import CGROUP, CONTAINER, POD_UID

from seawall.guard.tell.termination import (
    MOST_BYTES,
    KilledContainer,
    MessagePlaces,
    message_files,
    write,
)

SENTENCE = "Killed by seawall guard: it held 1.1 GiB outside its charge."
BELOW = f"pods/{POD_UID}/containers/worker/0a1b2c3d"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kubelet" / BELOW
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def places(tmp_path: Path, *sources: Any) -> MessagePlaces:
    config = {"mounts": [{"destination": "/dev/termination-log", "source": s} for s in sources]}
    (tmp_path / f"{CONTAINER}.json").write_text(json.dumps(config))
    return MessagePlaces(
        (f"{tmp_path}/kubelet",), (f"{tmp_path}/{{id}}.json",), ("",), f"{tmp_path}/log-links"
    )


def written(where: MessagePlaces, cgroup: str = CGROUP, **more: Any) -> dict[str, Any]:
    return write({"cgroup": cgroup, "words": SENTENCE, **more}, where)


def beside(file: Path, name: str = "sidecar") -> Path:
    """A file of another container of the pod."""
    other = file.parent.parent / name / "11112222"
    other.parent.mkdir()
    other.touch()
    return other


def test_the_sentence_stands_behind_what_the_container_said(file: Path, tmp_path: Path) -> None:
    where = places(tmp_path, "/var/lib/other", str(file))
    assert written(where) == {"path": str(file), "problem": ""}
    assert file.read_text() == SENTENCE + "\n"
    file.write_text("cannot allocate")
    written(where)
    assert file.read_text() == f"cannot allocate\n{SENTENCE}\n"


def test_the_kubelet_shows_it_however_much_the_container_wrote(file: Path, tmp_path: Path) -> None:
    with file.open("wb") as filled:
        filled.truncate(1 << 40)  # sparse
    assert written(places(tmp_path, str(file)))["problem"] == ""
    with file.open("rb") as filled:
        filled.seek(-MOST_BYTES, os.SEEK_END)
        assert filled.read().endswith(f"\n{SENTENCE}\n".encode())


def test_a_link_that_was_planted_is_not_followed(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "shadow"
    target.write_text("root")
    file.unlink()
    file.symlink_to(target)
    assert "is no plain file" in written(places(tmp_path, str(file)))["problem"]
    assert target.read_text() == "root"


def test_nor_one_on_the_way(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    assert "Not a directory" in written(places(tmp_path, str(file)))["problem"]
    assert (elsewhere / file.name).read_text() == ""


def test_a_second_name_of_another_file_is_not_written(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "shadow"
    target.write_text("root")
    file.unlink()
    os.link(target, file)
    assert "is no plain file" in written(places(tmp_path, str(file)))["problem"]
    assert target.read_text() == "root"


def test_a_pipe_holds_nobody_up(file: Path, tmp_path: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    assert "is no plain file" in written(places(tmp_path, str(file)))["problem"]


@pytest.mark.parametrize(
    "source",
    [
        "{kubelet}/pods/{other}/containers/worker/0a1b2c3d",
        "{kubelet}/pods/{uid}/containers/worker/../../../../shadow",
        "{kubelet}/pods/{uid}/volumes/worker/0a1b2c3d",
        "{kubelet}/../shadow",
        "/etc/shadow",
        "",
        7,
        None,
    ],
)
def test_a_source_that_is_not_its_own_file_is_left_alone(
    file: Path, tmp_path: Path, source: Any
) -> None:
    if isinstance(source, str):
        other = "ffffffff" + POD_UID[8:]
        source = source.format(kubelet=f"{tmp_path}/kubelet", uid=POD_UID, other=other)
    (tmp_path / "shadow").write_text("root")
    beside(file)
    assert written(places(tmp_path, source)) == {"problem": "its termination message was not found"}
    assert (tmp_path / "shadow").read_text() == "root"
    assert file.read_text() == ""


@pytest.mark.parametrize("config", [b"", b"[", b"[]", b"7", b'{"mounts": 7}', b'{"mounts": [7]}',
                                    b"[" * 100_000, b" " * (3 << 20)])  # fmt: skip
def test_a_config_that_is_none(file: Path, tmp_path: Path, config: bytes) -> None:
    where = places(tmp_path)
    beside(file)
    (tmp_path / f"{CONTAINER}.json").write_bytes(config)
    assert written(where) == {"problem": "its termination message was not found"}


def test_of_a_whole_pod_every_container_is_told(file: Path, tmp_path: Path) -> None:
    older, other = file.parent / "00000001", file.parent.parent / "sidecar/11112222"
    other.parent.mkdir()
    for path in (older, other):
        path.touch()
    os.utime(older, (1, 1))
    file.touch()
    os.chmod(file, 0o600)  # the last change
    pod = CGROUP.rpartition("/")[0]
    assert written(places(tmp_path), pod)["path"] == f"{other} {file}"
    assert [p.read_text() for p in (file, other, older)] == [SENTENCE + "\n", SENTENCE + "\n", ""]


def test_cgroupfs_names_of_pods_are_known_too(file: Path, tmp_path: Path) -> None:
    cgroup = f"/kubepods/burstable/pod{POD_UID}/{CONTAINER}"
    assert written(places(tmp_path, str(file)), cgroup)["problem"] == ""
    assert file.read_text() == SENTENCE + "\n"


SLICE = f"kubepods-burstable-pod{POD_UID.replace('-', '_')}.slice"
SCOPE = f"cri-containerd-{CONTAINER}.scope"
MANAGER = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    "cgroup",
    [
        f"/kubepods/pod{POD_UID}/{CONTAINER}",
        f"/kubepods/besteffort/pod{POD_UID}",
        f"/nested/kubepods/burstable/pod{POD_UID}/{CONTAINER}",
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-{SLICE}/{SCOPE}",
        f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/crio-{CONTAINER}.scope",
        f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/kata_{CONTAINER}",
        f"/system.slice/containerd.service/{SLICE}:cri-containerd:{CONTAINER}",
    ],
)
def test_every_layout_of_the_kubelets_is_known(file: Path, tmp_path: Path, cgroup: str) -> None:
    assert written(without_config(tmp_path), cgroup) == {"path": str(file), "problem": ""}


def test_a_mirror_pods_uid_has_no_dashes(file: Path, tmp_path: Path) -> None:
    uid = POD_UID.replace("-", "")
    file = shutil.move(tmp_path / f"kubelet/pods/{POD_UID}", tmp_path / f"kubelet/pods/{uid}")
    for pod in (f"/kubepods/pod{uid}", f"/x.slice/x-kubepods-pod{uid}.slice"):
        cgroup = f"{pod}/{CONTAINER}"
        told = written(without_config(tmp_path), cgroup)
        assert told["path"] == f"{file}/containers/worker/0a1b2c3d"


@pytest.mark.parametrize(
    "cgroup",
    [
        f"{MANAGER}/pod{POD_UID}.service",
        f"{MANAGER}/app.slice/{SLICE}/{SCOPE}",
        f"{MANAGER}/containerd.service/kubepods/pod{POD_UID}/{CONTAINER}",
        f"{MANAGER}/{SLICE}:cri-containerd:{CONTAINER}",
        f"/system.slice/theirs.service/kubepods/pod{POD_UID}/{CONTAINER}",
        f"/system.slice/theirs.service/containerd.service/{SLICE}:cri-containerd:{CONTAINER}",
        f"/user.slice/user-1000.slice/session-3.scope/{SLICE}",
        f"/kubepods/pod{'f' * 8 + POD_UID[8:]}/{'cd' * 32}/kubepods/pod{POD_UID}/{CONTAINER}",
        f"/system.slice/docker-{CONTAINER}.scope/kubepods/pod{POD_UID}",
        f"/pod{POD_UID}/kubepods/podx/{CONTAINER}",
        f"/batch.slice/pod{POD_UID}",
    ],
)
def test_what_somebody_named_like_another_ones_pod_is_none(
    file: Path, tmp_path: Path, cgroup: str
) -> None:
    assert written(without_config(tmp_path), cgroup)["note"].startswith("no pod")
    assert file.read_text() == ""


@pytest.mark.parametrize("cgroup", ["/", "", "/system.slice/x.service", "/kubepods/podx/y"])
def test_what_is_in_no_pod_has_none(tmp_path: Path, cgroup: str) -> None:
    assert written(places(tmp_path), cgroup)["note"].startswith("no pod")


def test_a_guard_in_a_container_finds_the_hosts_files(file: Path, tmp_path: Path) -> None:
    root = tmp_path / "host"
    (root / "kubelet").mkdir(parents=True)
    os.rename(tmp_path / "kubelet" / "pods", root / "kubelet/pods")
    (root / f"{CONTAINER}.json").write_text(
        json.dumps({"mounts": [{"source": f"/kubelet/{BELOW}"}]})
    )
    where = MessagePlaces(("/kubelet",), ("/{id}.json",), ("", str(root)))
    assert message_files(KilledContainer(CGROUP, POD_UID, 1e12), where, str(root)) == [
        (f"{root}/kubelet", BELOW)
    ]
    assert written(where)["problem"] == ""


def test_what_can_only_be_read_here_is_written_through_the_next_root(
    file: Path, tmp_path: Path
) -> None:
    """As under the unit, whose own /var is read-only, where the kubelet came later."""
    (tmp_path / f"{CONTAINER}.json").write_text(json.dumps({"mounts": [{"source": str(file)}]}))
    second = tmp_path / "root"
    shutil.copytree(tmp_path / "kubelet", second / str(tmp_path)[1:] / "kubelet")
    shutil.copy(tmp_path / f"{CONTAINER}.json", second / str(tmp_path)[1:])
    os.link(file, file.with_name("9"))  # two names: it is not written
    where = places(tmp_path, str(file))._replace(roots=("", str(second)))
    told = written(where)
    assert told["path"] == f"{second}{file}"
    assert "is no plain file of its own" in told["problem"]
    assert file.read_text() == ""


# --- a runtime that has already forgotten the container ----------------------------------------


def link_of_log(tmp_path: Path, uid: str = POD_UID, name: str = "worker") -> None:
    folder = tmp_path / "log-links"
    folder.mkdir()
    (folder / f"cart_shop_other-{'cd' * 32}.log").symlink_to(f"/x/shop_cart_{POD_UID}/other/0.log")
    target = f"/var/log/pods/shop_cart_{uid}/{name}/3.log"
    (folder / f"cart_shop_{name}-{CONTAINER}.log").symlink_to(target)


def without_config(tmp_path: Path) -> MessagePlaces:
    """containerd removes the bundle of a container as soon as it is dead."""
    where = places(tmp_path)
    (tmp_path / f"{CONTAINER}.json").unlink()
    return where


def test_the_kubelets_own_link_tells_the_name(file: Path, tmp_path: Path) -> None:
    other = beside(file)
    link_of_log(tmp_path)
    assert written(without_config(tmp_path)) == {"path": str(file), "problem": ""}
    assert (file.read_text(), other.read_text()) == (SENTENCE + "\n", "")


@pytest.mark.parametrize(
    ("uid", "name"), [("f" * 8 + POD_UID[8:], "worker"), (POD_UID, ".."), (POD_UID, "nobody")]
)
def test_a_link_to_another_pod_or_nowhere_tells_nothing(
    file: Path, tmp_path: Path, uid: str, name: str
) -> None:
    other = beside(file)
    link_of_log(tmp_path, uid, name)
    assert written(without_config(tmp_path)) == {"problem": "its termination message was not found"}
    assert (file.read_text(), other.read_text()) == ("", "")


def test_the_only_container_of_a_pod_needs_no_name(file: Path, tmp_path: Path) -> None:
    assert written(without_config(tmp_path))["path"] == str(file)


def test_after_many_starts_it_is_the_last_one_before_the_kill(file: Path, tmp_path: Path) -> None:
    """A start gets a file of its own; what began after the kill tells of another life."""
    for number in range(40):
        (file.parent / f"{number:08x}").touch()
        os.utime(file.parent / f"{number:08x}", (1, 1))
    os.chmod(file, 0o600)
    killed = file.stat().st_ctime
    later = file.parent / "ffffffff"
    while not later.exists() or later.stat().st_ctime <= killed:
        later.unlink(missing_ok=True)
        later.touch()
    found_at = written(without_config(tmp_path), unix_seconds=killed)["path"]
    assert (found_at, later.read_text()) == (str(file), "")


def test_a_kubelet_that_lives_elsewhere(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kubelet"
    where = without_config(tmp_path)._replace(kubelet=("/nowhere",))
    assert "not found" in written(where)["problem"]
    assert written(where, kubelet_root=str(folder))["path"] == str(file)
