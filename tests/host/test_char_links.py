"""Links of /dev/char, in a folder that stands in for a host's root."""

import os
from pathlib import Path

import pytest

from seawall.host.char_links import leads_to, make_link


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Its /dev/null leads to this machine's."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/null").symlink_to("/dev/null")
    return str(tmp_path)


def test_a_link_is_made_and_leads_to_its_device(root: str) -> None:
    assert not leads_to(root, 1, 3)
    assert make_link(root, "/dev/null", 1, 3) == "/dev/char/1:3 made, to ../null"
    assert leads_to(root, 1, 3)
    assert os.readlink(f"{root}/dev/char/1:3") == "../null"
    assert make_link(root, "/dev/null", 1, 3) == "/dev/char/1:3 is there: somebody else made it"
    os.mkdir(f"{root}/dev/folder")
    os.symlink("/dev/zero", f"{root}/dev/folder/one")
    make_link(root, "/dev/folder/one", 1, 5)
    assert os.readlink(f"{root}/dev/char/1:5") == "../folder/one"


def test_a_link_to_another_device_is_replaced(root: str) -> None:
    os.mkdir(f"{root}/dev/char")
    os.symlink("../zero", f"{root}/dev/char/1:3")
    assert make_link(root, "/dev/null", 1, 3) == (
        "/dev/char/1:3 replaced: it led to ../zero, now to ../null"
    )
    assert leads_to(root, 1, 3)
    assert os.listdir(f"{root}/dev/char") == ["1:3"], "nothing is left beside it"


@pytest.mark.parametrize(
    ("path", "words"),
    [("/dev/null", "is not c 1:5: no link to it is made"), ("/dev/none", "No such file"),
     ("/dev/file", "is not c 1:5")],
)  # fmt: skip
def test_no_link_to_another_device_is_made(root: str, path: str, words: str) -> None:
    """systemd would allow that one; what is there already stays."""
    Path(root, "dev/file").touch()
    for is_there in (False, True):
        with pytest.raises(OSError, match=words):
            make_link(root, path, 1, 5)
        assert os.path.lexists(f"{root}/dev/char/1:5") is is_there
        os.makedirs(f"{root}/dev/char", exist_ok=True)
        if not is_there:
            os.symlink("../zero", f"{root}/dev/char/1:5")
    assert os.readlink(f"{root}/dev/char/1:5") == "../zero"


def test_what_is_no_link_stays(root: str) -> None:
    place = Path(root, "dev/char/1:3")
    place.parent.mkdir()
    place.write_text("somebody's")
    with pytest.raises(FileExistsError, match="no link: left as it is"):
        make_link(root, "/dev/null", 1, 3)
    assert place.read_text() == "somebody's"
