"""Looking at control nodes and making them, in a folder that stands in for a host's root."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.host.control_nodes import look, make

UVM = "/dev/nvidia-uvm"
needs_mknod = pytest.mark.skipif(os.geteuid() != 0, reason="mknod needs root: make test-system")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "dev").mkdir()
    mask = os.umask(0o077)
    yield f"{tmp_path}/"
    os.umask(mask)


def test_what_lies_there_is_told_without_following(root: str) -> None:
    Path(root, "dev/file").touch()
    Path(root, "dev/link").symlink_to("/dev/null")
    found = look(root, ["/dev/file", "/dev/link", "/dev/none", "/dev/file/below"])
    assert {path: seen.kind for path, seen in found.items()} == {
        "/dev/file": "other", "/dev/link": "other",
    }  # fmt: skip
    null = look("/", ["/dev/null"])["/dev/null"]
    assert (null.kind, null.major, null.minor, null.mode) == ("c", 1, 3, 0o666)


@pytest.mark.system
@needs_mknod
def test_a_missing_node_is_made_with_its_mode_whatever_the_umask(root: str) -> None:
    assert make(root, UVM, 511, 0) == "/dev/nvidia-uvm made: c 511:0, mode 666"
    assert look(root, [UVM])[UVM][:4] == ("c", 511, 0, 0o666)
    assert make(root, UVM, 511, 0) == "/dev/nvidia-uvm is there: somebody else made it"
    assert make(root, "/dev/nvidia-caps/nvidia-cap1", 236, 1).endswith("c 236:1, mode 666")
    assert os.umask(0o077) == 0o077, "it is left as it was"


@pytest.mark.system
@needs_mknod
def test_a_node_with_an_old_number_is_replaced(root: str) -> None:
    for kind, letter in ((stat.S_IFCHR, "c"), (stat.S_IFBLK, "b")):
        Path(root + UVM).unlink(missing_ok=True)
        os.mknod(root + UVM, 0o600 | kind, os.makedev(510, 0))
        words = make(root, UVM, 511, 0)
        assert words == f"/dev/nvidia-uvm replaced: it was {letter} 510:0, now c 511:0"
        assert look(root, [UVM])[UVM][:4] == ("c", 511, 0, 0o600), "nobody gets more than before"
        assert os.listdir(root + "dev") == ["nvidia-uvm"], "nothing is left beside it"


@pytest.mark.system
@needs_mknod
def test_a_node_that_is_replaced_keeps_its_owner_and_what_others_may(root: str) -> None:
    os.mknod(root + UVM, stat.S_IFCHR, os.makedev(510, 0))
    os.chown(root + UVM, 1234, 44)
    os.chmod(root + UVM, 0o640)
    make(root, UVM, 511, 0)
    assert look(root, [UVM])[UVM] == ("c", 511, 0, 0o640, 1234, 44)


@pytest.mark.system
@needs_mknod
def test_a_node_is_made_as_the_site_has_set_it(root: str) -> None:
    params = Path(f"{root}/proc/driver/nvidia/params")
    params.parent.mkdir(parents=True)
    lines = ["DeviceFileUID: 1234", "DeviceFileGID: 44", "DeviceFileMode: 432"]
    params.write_text("\n".join([*lines, "ModifyDeviceFiles: 1", ""]))
    assert make(root, UVM, 511, 0).endswith("c 511:0, mode 660, owner 1234:44")
    assert look(root, [UVM])[UVM] == ("c", 511, 0, 0o660, 1234, 44)
    params.write_text("ModifyDeviceFiles: 0\n")
    for path in (UVM, "/dev/nvidiactl"):
        with pytest.raises(PermissionError, match="ModifyDeviceFiles is not 1"):
            make(root, path, 195, 255)
    assert look(root, [UVM, "/dev/nvidiactl"]).keys() == {UVM}
    assert make(root, "/dev/kfd", 510, 0).endswith("c 510:0, mode 660")


@pytest.mark.system
@needs_mknod
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_no_device_node_is_left_as_it_is(root: str, kind: str) -> None:
    place = Path(root + UVM)
    if kind == "file":
        place.write_text("somebody's")
    elif kind == "link":
        place.symlink_to("/dev/null")
    else:
        place.mkdir()
    with pytest.raises(FileExistsError, match="no device node: left as it is"):
        make(root, UVM, 511, 0)
    assert look(root, [UVM])[UVM].kind == "other"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may make nodes")
def test_an_ordinary_user_is_refused(root: str) -> None:
    with pytest.raises(PermissionError):
        make(root, UVM, 511, 0)
