"""Changes written down first, and undone by what they say: v2's files on an ordinary disk."""

import os
from pathlib import Path

import pytest

from seawall.actions.journal import SIZE, Change, Journal, in_force
from seawall.actions.undo import UNKNOWN, undo


def journal(tmp_path: Path) -> Journal:
    made = Journal(str(tmp_path / "guard.undo"))
    made.open()
    return made


def frozen(tmp_path: Path, now: str = "1", name: str = "pod") -> Change:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.freeze").write_text(f"{now}\n")
    (folder / "cgroup.events").write_text(f"populated 1\nfrozen {now}\n")
    return Change("freeze2", str(folder), folder.stat().st_ino, "0", "1", "b0-1")


def clamped(tmp_path: Path, now: str, name: str = "pod") -> Change:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "memory.max").write_text(f"{now}\n")
    return Change("clamp", str(folder), folder.stat().st_ino, "max", "4096000", "b0-2")


def test_it_outlives_who_wrote_it(tmp_path: Path) -> None:
    change = frozen(tmp_path, name='a\n"b\udcff ä')
    journal(tmp_path).begin(change)
    assert [c for _, c in journal(tmp_path).changes()] == [change]
    assert os.stat(tmp_path / "guard.undo").st_size == SIZE
    assert os.stat(tmp_path / "guard.undo").st_mode & 0o777 == 0o600


def test_what_is_done_is_not_undone_again(tmp_path: Path) -> None:
    made = journal(tmp_path)
    first, second = frozen(tmp_path), frozen(tmp_path, name="second")
    number = made.begin(first)
    made.begin(second)
    assert number is not None
    made.end(number)
    made.end(number)
    assert [c for _, c in journal(tmp_path).changes()] == [second]


def test_another_boot(tmp_path: Path) -> None:
    made = journal(tmp_path)
    made.begin(frozen(tmp_path))
    made.close()
    file = tmp_path / "guard.undo"
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    file.write_bytes(file.read_bytes().replace(boot, boot[::-1]))
    assert journal(tmp_path).changes() == []
    assert undo(Journal(str(file))) == []
    assert (tmp_path / "pod/cgroup.freeze").read_text() == "1\n"


@pytest.mark.parametrize(
    "text", [b"open [", b"open [1,2]\n", b"open {}\n", b"\xff\n", b"open \n", b'open ["x"' * 99]
)
def test_torn_and_foreign_lines_are_nobodys(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "guard.undo").write_bytes(text)
    made = journal(tmp_path)
    assert made.changes() == []
    assert made.begin(frozen(tmp_path)) is not None
    assert len(journal(tmp_path).changes()) == 1


def test_it_never_grows_and_keeps_what_is_in_force(tmp_path: Path) -> None:
    made = journal(tmp_path)
    kept = clamped(tmp_path, "4096000", "kept")
    made.begin(kept)
    short = frozen(tmp_path)
    for _ in range(3000):
        number = made.begin(short)
        assert number is not None
        made.end(number)
    assert os.stat(tmp_path / "guard.undo").st_size == SIZE
    assert [c for _, c in journal(tmp_path).changes()] == [kept]


def test_full_is_an_answer(tmp_path: Path) -> None:
    made = journal(tmp_path)
    change = frozen(tmp_path)._replace(folder="/" + "x" * 4000)
    numbers = [made.begin(change) for _ in range(20)]
    assert numbers[0] is not None
    assert numbers[-1] is None
    assert len(journal(tmp_path).changes()) == 20 - numbers.count(None)


@pytest.mark.parametrize("char", ["\udcff", "\x01", "ä", "x"])
def test_the_longest_path_fits_whatever_it_is_made_of(tmp_path: Path, char: str) -> None:
    made = journal(tmp_path)
    path = "/" + char * (4094 // len(os.fsencode(char)))
    changes = [frozen(tmp_path)._replace(folder=path, decision=f"b0-{n}") for n in range(2)]
    assert None not in [made.begin(change) for change in changes]
    assert [c for _, c in journal(tmp_path).changes()] == changes


def test_undo_thaws_and_raises(tmp_path: Path) -> None:
    made = journal(tmp_path)
    made.begin(frozen(tmp_path))
    made.begin(clamped(tmp_path, "4096000"))
    words = undo(made)
    assert words == [
        f"{tmp_path}/pod: thawed",
        f"{tmp_path}/pod: memory.max is max again",
    ]
    assert (tmp_path / "pod/cgroup.freeze").read_text().startswith("0")
    assert (tmp_path / "pod/memory.max").read_text().startswith("max")
    assert undo(Journal(made.path)) == []


def test_undo_leaves_what_is_not_ours(tmp_path: Path) -> None:
    """Thawed by somebody, a limit written since, a path that came again, one that went."""
    made = journal(tmp_path)
    (tmp_path / "cgroup.procs").touch()
    made.begin(frozen(tmp_path, "0", "thawed"))
    made.begin(clamped(tmp_path, "777", "changed"))
    again = clamped(tmp_path, "4096000", "again")
    made.begin(again._replace(inode=again.inode + 1))
    made.begin(again._replace(folder=str(tmp_path / "gone")))
    words = undo(made)
    assert "thawed: was thawed already" in words[0]
    assert "memory.max is 777, which somebody wrote since: left" in words[1]
    assert "another cgroup by now, left alone" in words[2]
    assert "is gone" in words[3]
    assert (tmp_path / "changed/memory.max").read_text() == "777\n"
    assert (tmp_path / "again/memory.max").read_text() == "4096000\n"


def test_what_is_refused_stays_written_down(tmp_path: Path) -> None:
    made = journal(tmp_path)
    change = frozen(tmp_path)
    (tmp_path / "pod/cgroup.freeze").unlink()
    (tmp_path / "pod/cgroup.freeze").mkdir()
    made.begin(change)
    assert undo(made) == [f"not undone: {tmp_path}/pod: 0: refused: Is a directory"]
    assert [c for _, c in journal(tmp_path).changes()] == [change]


def test_what_a_later_version_left_is_undone_by_this_one(tmp_path: Path) -> None:
    """After an upgrade in the middle of an act, and the way back: it wrote a field more."""
    made = journal(tmp_path)
    change = frozen(tmp_path)
    made.begin(change)
    made.close()
    file = tmp_path / "guard.undo"
    text = file.read_bytes().replace(b'"b0-1"]\n', b'"b0-1", {"more": 1}]\n')
    file.write_bytes(text[:SIZE])
    assert in_force(str(file)) == [change]
    assert undo(Journal(str(file))) == [f"{tmp_path}/pod: thawed"]
    assert (tmp_path / "pod/cgroup.freeze").read_text().startswith("0")
    assert in_force(str(file)) == []


def test_what_only_a_later_version_knows_is_left_to_it(tmp_path: Path) -> None:
    """It is no freeze, and its old value is none: nothing of it may be written anywhere."""
    made = journal(tmp_path)
    change = frozen(tmp_path)._replace(kind="weight", old="100", new="1")
    made.begin(change)
    for _ in range(2):
        assert undo(made) == [f"not undone: {tmp_path}/pod: 100: {UNKNOWN}"]
    assert (tmp_path / "pod/cgroup.freeze").read_text() == "1\n"
    assert in_force(made.path) == [change]


def test_no_link_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "guard.undo").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        journal(tmp_path)


def test_a_number_stays_when_the_lines_are_moved_together(tmp_path: Path) -> None:
    """Else another change would be ended, and what is in force would never be undone."""
    made = journal(tmp_path)
    first, *kept = [clamped(tmp_path, "4096000", name) for name in ("one", "two", "six")]
    gone = made.begin(first)
    numbers = [made.begin(change) for change in kept]
    assert gone is not None
    made.end(gone)
    at = made._at
    while made._at >= at:  # until it was full
        at = made._at
        number = made.begin(frozen(tmp_path, name="suspect"))
        assert number is not None
        made.end(number)
    assert numbers[0] is not None
    made.end(numbers[0])
    assert [change for _, change in made.changes()] == [kept[1]]
    assert [change for _, change in journal(tmp_path).changes()] == [kept[1]]
