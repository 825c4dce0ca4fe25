"""An unprivileged user's links and a umask of anybody's: nothing of ours is written elsewhere."""

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.actions.journal import Journal
from seawall.blackbox.ring import RingFile
from seawall.cli.output_file import check_output, write_whole
from seawall.guard import lock_file
from seawall.problems import BlackboxProblem, UsageProblem
from seawall.replaced_file import replace_file, replace_there

SECRET = "of somebody else"
UMASKS = [0o000, 0o022, 0o077]
LEAST_BOX_BYTES = 16 << 20


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """What a planted link leads to; it stays as it is."""
    path = tmp_path / "target"
    path.write_text(SECRET)
    yield path
    assert path.read_text() == SECRET
    assert not path.is_symlink()


@pytest.fixture(params=UMASKS, ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("is_dangling", [False, True])
def test_nothing_is_written_through_a_planted_link(
    tmp_path: Path, target: Path, is_dangling: bool
) -> None:
    """The output itself, what is written beside it, and what is replaced in somebody's folder."""
    leads_to = tmp_path / "nowhere" if is_dangling else target
    link, part = tmp_path / "bundle.tgz", tmp_path / "other.tgz.part"
    for path in (link, part):
        path.symlink_to(leads_to)
    with pytest.raises(UsageProblem, match="no plain file"):
        check_output(str(link))
    with pytest.raises(UsageProblem, match="is there already"):
        write_whole(str(tmp_path / "other.tgz"), io.BytesIO(b"data"))
    textfile = tmp_path / "seawall.prom"
    for path in (textfile, tmp_path / f"seawall.prom.{os.getpid()}.part"):
        path.symlink_to(leads_to)
    replace_there(str(textfile), b"data", 0o644)
    assert (textfile.read_bytes(), textfile.is_symlink()) == (b"data", False)
    write_whole(str(link), io.BytesIO(b"data"))  # a link that came since it was looked at
    assert (link.read_bytes(), link.is_symlink()) == (b"data", False)
    assert not (tmp_path / "nowhere").exists()


def test_no_umask_opens_a_file_to_others(tmp_path: Path, umask: int) -> None:
    run = tmp_path / "run"
    lock = lock_file.take(str(run))
    journal = Journal(str(run / "guard.undo"))
    journal.open()
    replace_file(str(tmp_path / "made/base.json"), b"{}")
    write_whole(str(tmp_path / "bundle.tgz"), io.BytesIO(b"data"))
    box = RingFile.open(str(tmp_path / "state/box"), LEAST_BOX_BYTES)
    box.close()
    os.close(lock.fd)
    for path in tmp_path.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert not mode & (stat.S_IWGRP | stat.S_IWOTH), f"{path}: {mode:o} at umask {umask:o}"
        assert path.is_dir() or not mode & stat.S_IRWXO, f"{path}: {mode:o} at umask {umask:o}"


@pytest.mark.parametrize("is_dangling", [False, True])
def test_the_guards_files_are_no_links(tmp_path: Path, target: Path, is_dangling: bool) -> None:
    leads_to = tmp_path / "nowhere" if is_dangling else target
    for name in ("guard.lock", "guard.undo", "box"):
        (tmp_path / name).symlink_to(leads_to)
    with pytest.raises(UsageProblem, match=r"guard\.lock"):
        lock_file.take(str(tmp_path))
    with pytest.raises(OSError, match="symbolic links"):
        Journal(str(tmp_path / "guard.undo")).open()
    with pytest.raises(BlackboxProblem, match="found a link"):
        RingFile.open(str(tmp_path / "box"), LEAST_BOX_BYTES)
    assert not (tmp_path / "nowhere").exists()
