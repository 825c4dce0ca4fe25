"""Who may write to what lies on the way to guard.toml: nobody else, for it can turn killing on."""

import os
from pathlib import Path

import pytest

from seawall.guard.config import read
from seawall.problems import UsageProblem


def test_a_folder_in_which_others_may_replace_the_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    path = folder / "guard.toml"
    path.write_text('mode = "enforce"\n')
    path.chmod(0o600)
    folder.chmod(0o777)
    with pytest.raises(UsageProblem, match=f"{folder}: others may put another file in the place"):
        read(str(path))
    folder.chmod(0o1777)  # sticky: they may not
    assert read(str(path)).mode == "enforce"
    (tmp_path / "link.toml").symlink_to("open/../open/guard.toml")
    assert read(str(tmp_path / "link.toml")).mode == "enforce"
    folder.chmod(0o777)
    for way in (tmp_path / "link.toml", folder / "x/../guard.toml"):
        (folder / "x").mkdir(exist_ok=True)
        with pytest.raises(UsageProblem, match=f"{folder}: others may put another file in the pl"):
            read(str(way))


def test_a_way_that_others_may_turn_is_refused(tmp_path: Path) -> None:
    """The file and its own folder are in the best of hands; a folder above is not."""
    path = tmp_path / "open/inner/guard.toml"
    path.parent.mkdir(parents=True)
    path.write_text('mode = "enforce"\n')
    path.chmod(0o600)
    assert read(str(path)).mode == "enforce"
    (tmp_path / "open").chmod(0o775)
    with pytest.raises(UsageProblem, match=f"{tmp_path}/open: others may put another file"):
        read(str(path))


def test_a_way_that_is_not_written_out_is_walked_from_where_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "guard.toml").write_text("stuck = false\n")
    (tmp_path / "guard.toml").chmod(0o600)
    monkeypatch.chdir(tmp_path / "here")
    assert not read("../here/.././guard.toml").stuck
    tmp_path.chmod(0o722)
    with pytest.raises(UsageProblem, match=f"{tmp_path}: others may"):
        read("../guard.toml")


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="giving folders away needs root: make test-system")
@pytest.mark.parametrize("what", ["folder of the link", "link in a sticky folder", "sticky folder"])
def test_a_way_that_somebody_else_owns_is_refused(tmp_path: Path, what: str) -> None:
    """Whoever owns a folder, or a link in one where all may write, leads the way elsewhere."""
    real, beside = tmp_path / "real/guard.toml", tmp_path / "beside"
    for folder in (real.parent, beside):
        folder.mkdir(mode=0o755)
    real.write_text('mode = "enforce"\n')
    real.chmod(0o600)
    (beside / "guard.toml").symlink_to(real)
    beside.chmod(0o755 if what == "folder of the link" else 0o1777)
    assert read(str(beside / "guard.toml")).mode == "enforce"
    owned = beside / "guard.toml" if what.startswith("link") else beside
    os.chown(owned, 65534, 65534, follow_symlinks=False)
    with pytest.raises(UsageProblem, match=f"{owned}: others may put another file in the place"):
        read(str(beside / "guard.toml"))
    assert read(str(real)).mode == "enforce"
