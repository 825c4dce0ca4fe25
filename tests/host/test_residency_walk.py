"""Folders in slices: nothing twice, nothing lost when the reading child is."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.host.live import LiveHost

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def host() -> Iterator[LiveHost]:
    live = LiveHost()
    yield live
    live.close()


def ask(host: LiveHost, folder: str | None, **more: Any) -> dict[str, Any]:
    request = {"folder": folder, "seconds": 5.0, "keep": 10, "above": 0, **more}
    answer = host.ask("residency_walk", json.dumps(request))
    assert isinstance(answer, dict), answer
    return answer


def tree(folder: Path, folders: int, files: int) -> Path:
    for number in range(folders):
        (folder / f"{number}").mkdir()
        for name in range(files):
            (folder / f"{number}/{name}").write_bytes(b"x" * PAGE)
    return folder


def test_tiny_slices_give_the_same(host: LiveHost, tmp_path: Path) -> None:
    tree(tmp_path, 7, 150)
    whole = ask(host, str(tmp_path))
    assert (whole["files"], whole["folders"], whole["rest"]) == (1050, 8, [])
    todo: list[str] = [str(tmp_path)]
    files = cached = slices = 0
    goes_on = False
    while todo or goes_on:
        part = ask(host, None if goes_on else todo.pop(), seconds=0.0)
        goes_on = part["goes_on"]
        todo += part["rest"]
        files += part["files"]
        cached += part["cached"]
        slices += 1
    assert (files, cached) == (1050, whole["cached"])
    assert slices > 14, "a slice ends inside a folder"


def test_the_largest_come_back(host: LiveHost, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}").write_bytes(bytes(PAGE * (number + 1)))
    part = ask(host, str(tmp_path), keep=3)
    assert [Path(row["path"]).name for row in part["rows"]] == ["29", "28", "27"]
    assert part["files"] == 30
    assert not ask(host, str(tmp_path), above=30)["rows"]


def test_names_of_one_file_count_once_though_the_child_dies(host: LiveHost, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/one").write_bytes(b"x")
    (tmp_path / "b/two").hardlink_to(tmp_path / "a/one")
    status = (tmp_path / "a/one").stat()
    assert ask(host, str(tmp_path / "a"))["files"] == 1
    assert host._residency
    host._residency._expendable.close()
    assert ask(host, str(tmp_path / "b"))["files"] == 0
    host.close()
    fresh = LiveHost()
    assert ask(fresh, str(tmp_path), seen=[[status.st_dev, status.st_ino]])["files"] == 0
    fresh.close()


def test_mount_points_are_not_entered(host: LiveHost) -> None:
    part = ask(host, "/", seconds=0.02)
    assert "/proc" in part["mounts"]
    assert "/proc" not in part["rest"]


def test_kernel_files_are_no_files(host: LiveHost) -> None:
    assert ask(host, "/proc/self")["files"] == 0


def test_devices_fifos_and_links_are_not_opened(host: LiveHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    part = ask(host, str(tmp_path))
    assert (part["files"], part["folders"]) == (0, 1)


def test_a_folder_that_is_gone_is_counted(host: LiveHost, tmp_path: Path) -> None:
    part = ask(host, str(tmp_path / "gone"))
    assert part["refused"] == 1
    assert part["first_refused"] == [str(tmp_path / "gone")]


def test_over_is_over(tmp_path: Path) -> None:
    host = LiveHost(until=0.0)
    for probe in ("residency", "residency_walk"):
        request = json.dumps({"folder": str(tmp_path), "open": [str(tmp_path)], "seconds": 1.0})
        answer = host.ask(probe, request)
        assert getattr(answer, "why", None) == "not_reached", probe
    host.close()


def test_a_tree_of_files_has_no_page_cache(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    answer = LiveHost(str(tmp_path)).ask("residency", "/proc/1/exe")
    assert getattr(answer, "why", None) == "not_captured"


def test_a_root_is_not_left(tmp_path: Path) -> None:
    """Through --root, an absolute link in a path of the host means the host's."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("/etc/real")
    host = LiveHost(str(tmp_path))
    assert host._rooted is not None
    fd = host._enter("/link", os.O_RDONLY)
    assert os.read(fd, 1) == b"x"
    os.close(fd)
