"""``seawall guard undo``: what a guard left is taken back, and nothing else is touched."""

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import within

from seawall.actions.journal import Change, Journal
from seawall.cli.guard_undo import undo
from seawall.guard import guard_leftovers, lock_file
from seawall.guard.launcher import own_mounts
from seawall.problems import UsageProblem

SOURCES = Path(__file__).parents[2] / "src"


def test_undo_with_nothing_to_undo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert undo(everything=False, folder=str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    # Trace instances are the machine's: a tracer that another test just killed may have left one.
    others = [line for line in lines if line.startswith("removed the trace instance seawall-")]
    assert lines == (others or ["Nothing was left to undo."])


def test_undo_all_leaves_only_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "seawall"
    (folder / "second").mkdir(parents=True)
    for name in ("status", ".status.spare", "decisions.jsonl", "second/status", "guard.lock"):
        (folder / name).write_text("")
    for name in ("claims", "watch.lock", "node-2026.bundle", "blackbox.0"):
        (folder / name).write_text("evidence")
    with (folder / "watch.lock").open() as held:  # as somebody's memory --watch does
        fcntl.flock(held, fcntl.LOCK_EX)
        assert undo(everything=True, folder=str(folder)) == 0
    kept = ["blackbox.0", "claims", "node-2026.bundle", "watch.lock"]
    assert sorted(p.name for p in folder.iterdir()) == kept
    assert f"removed {folder}/status\n" in capsys.readouterr().out
    assert undo(everything=True, folder=str(folder)) == 0
    assert sorted(p.name for p in folder.iterdir()) == ["blackbox.0", "node-2026.bundle"]
    for name in ("blackbox.0", "node-2026.bundle"):
        (folder / name).unlink()
    assert undo(everything=True, folder=str(folder)) == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    ("lock", "its"),
    [("watch.lock", {"claims", "base.json", "claims.17.part"}), ("pins.lock", {"pins.17.part"})],
)
def test_undo_all_removes_what_was_half_written(tmp_path: Path, lock: str, its: set[str]) -> None:
    """By a watcher or a pinner that was killed in it; of one that lives all stays."""
    names = ["claims", "base.json", "claims.17.part", "pins.17.part", "watch.lock", "pins.lock"]
    foreign = {"claims.part", "claims.x.part", "node.bundle.17.part"}
    for name in (*names, *foreign):
        (tmp_path / name).touch()
    with (tmp_path / lock).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert undo(everything=True, folder=str(tmp_path)) == 0
    assert {path.name for path in tmp_path.iterdir()} == {lock, *its, *foreign}
    assert undo(everything=True, folder=str(tmp_path)) == 0
    assert {path.name for path in tmp_path.iterdir()} == foreign


def test_undo_all_removes_orders_and_leaves_a_brake_that_is_on(tmp_path: Path) -> None:
    folder = tmp_path / "seawall"
    (folder / "orders").mkdir(parents=True)
    for name in ("rescue", "quarantine", "brake"):
        (folder / "orders" / name).write_text("{}")
    assert undo(everything=True, folder=str(folder)) == 0
    assert [path.name for path in (folder / "orders").iterdir()] == ["brake"]
    (folder / "orders/brake").unlink()
    assert undo(everything=True, folder=str(folder)) == 0
    assert not folder.exists()


def killed_in(folder: Path, rehearse: str, moment: str) -> None:
    """A guard that ends in this part of its rehearsal, at the first call of ``moment``."""
    line = (
        "import os, sys; from tests.guard.telling import groups, node; "
        "from seawall.guard import rehearsal; from seawall.guard.settings import Settings; "
        f"import {moment.rpartition('.')[0]} as there; "
        f"there.{moment.rpartition('.')[2]} = lambda *_: os._exit(9); "
        f"rehearsal.{rehearse}"
    )
    done = subprocess.run(
        [sys.executable, "-c", line, str(folder)], cwd=SOURCES.parent, check=False,
        env=os.environ | {"PYTHONPATH": f"{SOURCES}:{SOURCES.parent}"},
    )  # fmt: skip
    assert done.returncode == 9


def test_undo_all_removes_what_a_guard_killed_in_its_rehearsal_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "seawall"
    (folder / "second").mkdir(parents=True)
    told = "tell_on_paper(Settings(), sys.argv[1], node(), groups())"
    for place in (folder, folder / "second"):
        killed_in(place, told, "seawall.guard.tell.dry_run.remove_dry_run")
        killed_in(place, "cgroup_on_paper(sys.argv[1])", "os.rmdir")
        assert (place / ".rehearsal/kmsg").exists()
        assert (place / ".rehearsal-tree/pod").exists()
    stranger = folder / ".rehearsal/somebodys"
    stranger.touch()
    assert undo(everything=True, folder=str(folder)) == 2
    assert [path for path in folder.rglob("*") if path.is_file()] == [stranger]
    out = capsys.readouterr().out
    assert f"{folder}/.rehearsal could not be removed: Directory not empty\n" in out
    stranger.unlink()
    assert undo(everything=True, folder=str(folder)) == 0
    assert not folder.exists()


def test_undo_all_keeps_what_is_still_to_be_undone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(str(tmp_path / "guard.undo"))
    journal.open()
    # A name that no folder can have, and that no terminal shall see.
    folder = f"{tmp_path}/" + "\x1b[31m" * 60
    journal.begin(Change("clamp", folder, 7, "max", "4096", "5eed0000-0001"))
    journal.close()
    (tmp_path / "status").write_text("")
    assert undo(everything=True, folder=str(tmp_path)) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["guard.undo"]
    out = capsys.readouterr().out
    assert "not undone: " in out
    assert "\x1b" not in out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_undo_of_somebody_who_may_not_look_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "seawall"
    folder.mkdir(mode=0o700)
    (folder / "guard.undo").write_bytes(bytes(4096))
    line = (
        "import os; from seawall.cli.guard_undo import undo; os.setuid(65534);"
        f"undo(everything=False, folder={str(folder)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", line], env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Permission denied; undo needs root" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("place", ["", "/second"])
def test_undo_all_is_refused_while_a_guard_runs(tmp_path: Path, place: str) -> None:
    """The second one too: the first may have ended, and it will take its place."""
    lock = lock_file.take(f"{tmp_path}{place}")
    with pytest.raises(UsageProblem, match=r"a guard runs .*: stop it first"):
        undo(everything=True, folder=str(tmp_path))
    assert undo(everything=False, folder=str(tmp_path)) == 0
    os.close(lock.fd)


def test_whoever_removes_all_leaves_nothing_to_another_guard() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "guard", "undo", "--all", "--after-stop"],
        env=os.environ | {"PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "not allowed with argument --all" in done.stderr


def in_force(folder: Path, change: Change | None = None) -> list[Change]:
    """What the journal holds; ``change`` is written first."""
    journal = Journal(str(folder / "guard.undo"))
    journal.open()
    if change is not None:
        assert journal.begin(change) is not None
    held = [change for _, change in journal.changes()]
    journal.close()
    return held


def stands_still(folder: Path) -> tuple[Path, Change]:
    """A cgroup as an ordinary folder, frozen by its words; and what a guard wrote of it."""
    place = folder / "pod"
    place.mkdir()
    for name, text in (("cgroup.freeze", "1\n"), ("cgroup.events", "populated 1\nfrozen 1\n")):
        (place / name).write_text(text)
    inode = place.stat().st_ino
    return place / "cgroup.freeze", Change("freeze2", str(place), inode, "0", "1", "5eed-1")


def test_behind_a_unit_that_ends_what_another_guard_has_in_force_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit's was a second one, or had a wrong file: the first one, in a pod, lives."""
    monkeypatch.delenv("MAINPID", raising=False)
    file, change = stands_still(tmp_path)
    assert in_force(tmp_path, change) == [change]
    lock = lock_file.take(str(tmp_path))
    assert undo(everything=False, is_after_stop=True, folder=str(tmp_path)) == 0
    who = f"a guard runs (pid {os.getpid()})"
    assert capsys.readouterr().out == f"{who}: what it froze or lowered is left to it\n"
    assert file.read_text() == "1\n"
    assert in_force(tmp_path) == [change]
    # Whoever asks for it by hand gets it.
    assert undo(everything=False, folder=str(tmp_path)) == 0
    assert capsys.readouterr().out == f"{file.parent}: thawed\n"
    assert file.read_text().startswith("0")
    os.close(lock.fd)


@pytest.mark.parametrize("is_stuck", [False, True])
def test_behind_a_unit_that_ends_what_its_own_guard_left_is_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    *, is_stuck: bool,
) -> None:  # fmt: skip
    """Also when that one cannot die: systemd names it then."""
    file, change = stands_still(tmp_path)
    in_force(tmp_path, change)
    lock = lock_file.take(str(tmp_path))
    if is_stuck:
        monkeypatch.setenv("MAINPID", str(os.getpid()))
    else:
        os.close(lock.fd)
    assert undo(everything=False, is_after_stop=True, folder=str(tmp_path)) == 0
    assert capsys.readouterr().out == f"{file.parent}: thawed\n"
    assert in_force(tmp_path) == []
    if is_stuck:
        os.close(lock.fd)
    assert lock_file.holder(str(tmp_path)) == 0
    nothing = tmp_path / "none"
    assert undo(everything=False, is_after_stop=True, folder=str(nothing)) == 0
    assert not nothing.exists()


def test_while_undo_all_works_no_guard_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next one of a unit comes a second after the last one died."""
    for place in (tmp_path, tmp_path / "second"):
        os.close(lock_file.take(str(place)).fd)
        (place / "status").touch()
    moments: list[str] = []
    unlink = os.unlink

    def seen(moment: str) -> None:
        moments.append(moment)
        for place in (tmp_path, tmp_path / "second"):
            if (place / lock_file.NAME).exists():
                assert lock_file.holder(str(place)) != 0, moment

    def removes(path: str) -> None:
        seen(path)
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(guard_leftovers, "sweep_tracing", lambda: seen("sweep") or [])
        patch.setattr(os, "unlink", removes)
        assert undo(everything=True, folder=str(tmp_path)) == 0
    assert moments[0] == "sweep"
    assert moments[-1] == f"{tmp_path}/guard.lock"
    assert not tmp_path.exists()
    assert f"removed {tmp_path}/second/guard.lock\n" in capsys.readouterr().out
    tmp_path.mkdir()
    assert undo(everything=True, folder=str(tmp_path)) == 0
    assert capsys.readouterr().out == "Nothing was left to undo.\n", "its own lock is no news"


@pytest.fixture
def frozen() -> Iterator[tuple[str, int, str]]:
    """A cgroup of our own, frozen, with a process in it: folder, version, file of the state."""
    if os.geteuid():
        pytest.skip("freezing needs root: sudo make test-system")
    mounts = own_mounts()
    version = 1 if mounts.freezer else 2
    folder = f"{mounts.freezer or mounts.unified}/seawall-TEST-undo-{os.getpid()}"
    file, word = ("freezer.state", "FROZEN") if version == 1 else ("cgroup.freeze", "1")
    try:
        os.mkdir(folder)
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {folder}: {error.strerror}")
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        Path(f"{folder}/cgroup.procs").write_text(str(child.pid))
        Path(f"{folder}/{file}").write_text(word)
        yield folder, version, f"{folder}/{file}"
    finally:
        Path(f"{folder}/{file}").write_text("THAWED" if version == 1 else "0")
        child.kill()
        child.wait()
        assert within(5, lambda: is_removed(folder))


def is_removed(folder: str) -> bool:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.exists(folder)


@pytest.mark.system
def test_undo_thaws_what_a_killed_guard_left_frozen(
    frozen: tuple[str, int, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, version, file = frozen
    state = Path(file)
    words = {"FREEZING", "FROZEN", "1"}
    assert state.read_text().strip() in words
    assert undo(everything=False, folder=str(tmp_path)) == 0
    assert state.read_text().strip() in words, "it is in no journal: somebody else froze it"
    journal = Journal(str(tmp_path / "guard.undo"))
    journal.open()
    old, new = ("THAWED", "FROZEN") if version == 1 else ("0", "1")
    inode = os.stat(folder).st_ino
    assert journal.begin(Change(f"freeze{version}", folder, inode, old, new, "5eed-1")) is not None
    journal.close()
    capsys.readouterr()
    assert undo(everything=False, folder=str(tmp_path)) == 0
    assert capsys.readouterr().out == f"{folder}: thawed\n"
    assert state.read_text().strip() == old
    assert undo(everything=False, folder=str(tmp_path)) == 0
    assert capsys.readouterr().out == "Nothing was left to undo.\n"
