"""Modes and owners of new nodes, from files of a folder that stands in for a host's root."""

import os
from pathlib import Path

import pytest

from seawall.host import control_nodes
from seawall.host.control_nodes import PARAMS, permissions_of

UVM = "/dev/nvidia-uvm"
SITES = """ResmanDebugLevel: 4294967295
RmLogonRC: 1
ModifyDeviceFiles: 1
DeviceFileUID: 7
DeviceFileGID: 44
DeviceFileMode: 432
RegistryDwords: "DeviceFileMode: 511"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a proc of its own; that of this machine is not asked."""
    read = control_nodes._read

    def only_below(path: str) -> tuple[bytes, int]:
        return read(path) if path.startswith(str(tmp_path)) else (b"", -1)

    monkeypatch.setattr(control_nodes, "_read", only_below)
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    return tmp_path


def _told(root: Path, text: str, path: str = UVM) -> tuple[int, int, int]:
    (root / PARAMS[1:]).write_text(text)
    return permissions_of(f"{root}/", path)


def test_the_drivers_options_are_what_nvidia_modprobe_would_use(root: Path) -> None:
    assert _told(root, SITES) == (0o660, 7, 44)
    assert _told(root, SITES, "/dev/nvidiactl") == (0o660, 7, 44)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0o666, 0, 0)),
        ("nothing of the kind", (0o666, 0, 0)),
        ("DeviceFileMode: 4095\n", (0o777, 0, 0)),
        ("DeviceFileUID: 4294967295\nDeviceFileGID: 9999999999\n", (0o666, 0, 0)),
        ("DeviceFileUID: -1\n", (0o666, 0, 0)),
        ("xDeviceFileMode: 0\nDeviceFileMode:0\n", (0o666, 0, 0)),
    ],
)
def test_what_is_not_told_is_the_drivers_default(
    root: Path, text: str, expected: tuple[int, int, int]
) -> None:
    assert _told(root, text) == expected


@pytest.mark.parametrize("value", ["0", "2"])
def test_who_makes_the_nodes_himself_is_left_to_it(root: Path, value: str) -> None:
    with pytest.raises(PermissionError, match="ModifyDeviceFiles is not 1") as caught:
        _told(root, f"ModifyDeviceFiles: {value}\n")
    assert caught.value.filename == UVM


def test_a_file_that_a_toolkit_mounted_over_it_does_not_speak_for_the_host(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has ModifyDeviceFiles: 0 for the container; the rest is the host's."""
    monkeypatch.setattr(control_nodes, "_device", lambda _: 0)
    assert _told(root, SITES.replace("Files: 1", "Files: 0")) == (0o660, 7, 44)


@pytest.mark.parametrize(
    ("groups", "gid"),
    [
        (None, 0),
        ("root:x:0:\nrender:x:109:alice\n", 109),
        ("xrender:x:5:\nrender2:x:6:\nrender:x:nobody:\n", 0),
    ],
)
def test_kfd_is_for_the_group_render_of_that_host(root: Path, groups: str | None, gid: int) -> None:
    if groups is not None:
        (root / "etc/group").write_text(groups)
    assert _told(root, "ModifyDeviceFiles: 0\n", "/dev/kfd") == (0o660, 0, gid)


def test_a_fifo_holds_nobody(root: Path) -> None:
    os.mkfifo(root / "etc/group")
    assert permissions_of(str(root), "/dev/kfd") == (0o660, 0, 0)
