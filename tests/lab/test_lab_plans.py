"""What a lab would do, when it refuses, and how it tells a hang from work."""

import dataclasses
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.verbs import ENVIRONMENT, seawall

from seawall.lab import leftovers, locks, notes
from seawall.lab.delegation import added_of
from seawall.lab.disk import filesystem_of, open_nameless
from seawall.lab.group import Measured
from seawall.lab.plan import Kind, MachineFacts, Plan, problems
from seawall.lab.run_report import LabMoment, Watch
from seawall.lab.sizes import bytes_of
from seawall.problems import UsageProblem

MIB = 1 << 20
GIB = 1 << 30
FACTS = MachineFacts(page_size=4096, available_bytes=8 * GIB)


def plan(kind: Kind = "hog", **changes: object) -> Plan:
    base = Plan(
        kind=kind, processes=1, each_bytes=512 * MIB, limit_bytes=256 * MIB, seconds=20,
        folder="/var/tmp" if kind in ("fill", "thrash") else None,
    )  # fmt: skip
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def said(plan: Plan, facts: MachineFacts = FACTS, *, large: bool = False) -> str:
    return "\n".join(problems(plan, facts, large=large))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64MiB", 67108864), ("1GiB", 1073741824), ("8M", 8388608), ("8m", 8388608),
        ("4096", 4096), ("4096B", 4096), ("1.5GiB", 1610612736), ("512 KiB", 524288), ("2T", 2**41),
    ],
)  # fmt: skip
def test_sizes(text: str, expected: int) -> None:
    assert bytes_of(text) == expected


@pytest.mark.parametrize(
    "text", ["", "MiB", "64MB", "-1", "1.5", "1e9", "64 Mi B", "9" * 40, "1.2.3G"]
)
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        bytes_of(text)


def test_what_fits_is_not_refused() -> None:
    assert said(plan()) == ""
    assert said(plan("fill", each_bytes=GIB)) == ""
    assert said(plan("thrash", processes=50, each_bytes=8 * MIB, limit_bytes=64 * MIB)) == ""
    assert said(plan("swarm", processes=1280, each_bytes=8 * MIB, limit_bytes=64 * MIB)) == ""


def test_more_than_half_of_what_is_available_is_refused_and_can_be_meant() -> None:
    just = plan(limit_bytes=4 * GIB - 160 * 1024)
    assert said(just) == ""
    over = plan(limit_bytes=4 * GIB)
    assert said(over) == (
        "--limit 4.0 GiB and 160 KiB for the processes themselves: more than 4.0 GiB, half of what "
        "this machine has to give (MemAvailable 8.0 GiB): --limit 4095MiB at most, or --yes-large "
        "and --limit 7372MiB at most"
    )
    assert (
        said(plan(limit_bytes=4095 * MIB)) == said(plan(limit_bytes=7372 * MIB), large=True) == ""
    )
    assert said(over, large=True) == ""
    most = plan(limit_bytes=int(7.1 * GIB))
    assert said(most, large=True) == ""
    beyond = plan(limit_bytes=int(7.3 * GIB))
    assert said(beyond, large=True) == (
        "--limit 7.3 GiB: more than 7.2 GiB, nine tenths of what this machine has to give "
        "(MemAvailable 8.0 GiB), and the kernel would kill others: --limit 7372MiB at most"
    )
    unknown = MachineFacts(page_size=4096, available_bytes=None)
    assert "could not be read" in said(plan(), unknown)
    assert said(plan(), unknown, large=True) == ""


def test_room_below_a_limit_above_counts_too() -> None:
    tight = dataclasses.replace(FACTS, room_bytes=300 * MIB, room_of="/kubepods/x")
    half = said(plan(limit_bytes=200 * MIB), tight)
    assert (
        "--limit 200 MiB: more than 150 MiB, half of what the memory limit of /kubepods/x" in half
    )
    assert "leaves (300 MiB)" in half
    assert "--limit 149MiB at most, or --yes-large and --limit 299MiB at most, or another" in half
    assert said(plan(limit_bytes=149 * MIB), tight) == ""
    assert said(plan(limit_bytes=100 * MIB), tight) == ""
    assert said(plan(limit_bytes=290 * MIB), tight, large=True) == ""
    beyond = said(plan(limit_bytes=301 * MIB), tight, large=True)
    assert "--limit 301 MiB: more than the memory limit of /kubepods/x leaves (300 MiB)" in beyond
    assert "--limit 299MiB at most, or another --parent" in beyond
    assert said(plan(limit_bytes=299 * MIB), tight, large=True) == ""


def test_the_largest_that_is_named_is_allowed_by_every_bound() -> None:
    """The first refusal is all that is printed: who follows it is not refused again."""
    for room in (40 * MIB, 300 * MIB, 6 * GIB, None):
        facts = dataclasses.replace(FACTS, room_bytes=room, room_of="/x", pids_left=3000)
        for kind in ("hog", "swarm", "rings"):
            for large in (False, True):
                asked = plan(kind, processes=9000 if kind == "swarm" else 1, limit_bytes=8 * GIB)
                for _ in range(3):  # --limit and --processes
                    if not (words := said(asked, facts, large=large)):
                        break
                    asked = obeyed(asked, words.splitlines()[0])
                assert said(asked, facts, large=large) == "", (room, kind, large)


def obeyed(asked: Plan, words: str) -> Plan:
    """What whoever reads the refusal asks for next."""
    changes: dict[str, int] = {}
    for option, number in re.findall(
        r"(--[a-z]+) ([0-9]+(?:[MK]iB)?)(?= at most| would be left)", words
    )[:2]:
        name = {"--limit": "limit_bytes", "--size": "each_bytes", "--processes": "processes"}[
            option
        ]
        changes.setdefault(name, bytes_of(number))
    assert changes, words
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


def test_where_no_limit_is_left_it_says_what_must_shrink() -> None:
    facts = dataclasses.replace(FACTS, available_bytes=1 * GIB)
    many = plan("swarm", processes=10_000, each_bytes=MIB, limit_bytes=64 * MIB)
    words = said(many, facts).splitlines()[0]
    assert "not even --limit 4MiB would be left: with it --processes 3251 at most" in words
    fewer = dataclasses.replace(many, processes=3251, limit_bytes=4 * MIB)
    assert said(fewer, facts) == ""
    beside = plan("rings", each_bytes=512 * MIB, limit_bytes=64 * MIB)
    words = said(beside, facts)
    assert "not even --limit 4MiB would be left: with it --size 507MiB at most" in words
    assert said(dataclasses.replace(beside, each_bytes=507 * MIB, limit_bytes=4 * MIB), facts) == ""
    none = dataclasses.replace(FACTS, room_bytes=-1, room_of="/full")
    assert "leaves (0 B)" in said(plan(), none)
    assert "free memory first, or another --parent" in said(plan(), none, large=True)


def test_processes_cost_something_beside_the_limit() -> None:
    many = plan("swarm", processes=10_000, each_bytes=MIB, limit_bytes=64 * MIB)
    assert many.beside_bytes == 10_000 * 160 * 1024
    facts = dataclasses.replace(FACTS, available_bytes=2 * GIB)
    assert "1.5 GiB for the processes themselves" in said(many, facts)
    assert (
        "10,000 processes: more than 7,500, half of the 15,000 that may still be started here "
        "(kernel.pid_max, and pids.max of the cgroups above): --processes 7500 at most, or "
        "--yes-large and --processes 13500 at most"
    ) in said(many, dataclasses.replace(FACTS, pids_left=15_000))
    few = dataclasses.replace(FACTS, pids_left=11_000)
    assert "more than 9,900, nine tenths of the 11,000" in said(many, few, large=True)
    assert "--processes 9900 at most" in said(many, few, large=True)
    assert "expected 1 to 10,000" in said(dataclasses.replace(many, processes=10_001))


def test_absurd_sizes_stay_refused_even_when_meant() -> None:
    assert "at least 4.0 MiB" in said(plan(limit_bytes=MIB), large=True)
    assert "at least one page, 4096" in said(plan(each_bytes=100), large=True)
    for huge in ({"each_bytes": 1 << 90}, {"limit_bytes": 1 << 47}, {"step_bytes": 1 << 64}):
        assert "expected a size of at most 64.0 TiB" in said(plan(**huge), large=True)
    narrow = dataclasses.replace(FACTS, mappable_bytes=GIB)
    wide = said(plan(each_bytes=2 * GIB), narrow, large=True)
    assert "lets it map no more than 1.0 GiB" in wide
    assert "--size 1024MiB at most" in wide
    assert said(plan("fill", each_bytes=2 * GIB), narrow) == ""


def test_code_that_fits_would_show_nothing() -> None:
    few = plan("thrash", processes=8, each_bytes=8 * MIB, limit_bytes=64 * MIB)
    assert "nothing would be pushed out" in said(few)


def test_a_file_goes_to_a_disk_with_room() -> None:
    fill = plan("fill", each_bytes=GIB)
    assert "tmpfs: its pages are memory" in said(
        fill, dataclasses.replace(FACTS, folder_fs="tmpfs")
    )
    short = dataclasses.replace(FACTS, disk_free_bytes=1500 * MIB)
    assert "more than 750 MiB, half of what is free in /var/tmp (1.5 GiB)" in said(fill, short)
    assert "--size 750MiB at most" in said(fill, short)
    assert said(fill, short, large=True) == ""
    full = dataclasses.replace(FACTS, disk_free_bytes=900 * MIB)
    assert "more than all" in said(fill, full, large=True)


# --- telling a hang ----------------------------------------------------------------------


def moment(
    seconds: float, usage: int, done: int = 0, *, kills: int = 0, waiting: int = 1
) -> LabMoment:
    measured = Measured(usage, None, 0, kills, None, None, None, None, None)
    return LabMoment(
        seconds=seconds, measured=measured, alive=1, started=1, killed=kills, done_bytes=done,
        turns=0, last_turn_seconds=None, waiting=waiting,
    )  # fmt: skip


def hung(*moments: LabMoment) -> float:
    watch = Watch(limit_bytes=64 * MIB)
    for now in moments:
        watch.look(now)
    return watch.hung_seconds


def test_full_still_and_waiting_is_a_hang() -> None:
    assert hung(*(moment(s, 64 * MIB, 63 * MIB) for s in (1, 2, 3, 4, 5))) == 4
    assert hung(*(moment(s, 64 * MIB, 63 * MIB) for s in (1, 2, 3, 3.9))) == 0


def test_progress_a_kill_or_nobody_waiting_is_none() -> None:
    assert hung(*(moment(s, 64 * MIB, s * MIB) for s in range(9))) == 0
    assert hung(*(moment(s, 64 * MIB, 5, kills=s) for s in range(9))) == 0
    assert hung(*(moment(s, 64 * MIB, 5, waiting=0) for s in range(9))) == 0
    assert hung(*(moment(s, 32 * MIB, 5) for s in range(9))) == 0


def test_the_longest_of_two_hangs_counts() -> None:
    first = [moment(s, 64 * MIB, 1) for s in range(6)]
    second = [moment(s, 64 * MIB, 2) for s in range(6, 10)]
    assert hung(*first, *second) == 5


# --- its file ----------------------------------------------------------------------------


def test_the_file_has_no_name(tmp_path: Path) -> None:
    fd = open_nameless(str(tmp_path), "seawall-lab-1-2")
    try:
        os.write(fd, b"x" * 8192)
        assert list(tmp_path.iterdir()) == []
        assert os.fstat(fd).st_nlink == 0
    finally:
        os.close(fd)


def test_filesystem_of_the_nearest_mount() -> None:
    assert filesystem_of("/proc") == "proc"
    assert filesystem_of("/proc/self/task") == "proc"


# --- the note and the locks --------------------------------------------------------------


def test_what_a_run_holds_no_clean_can_take(tmp_path: Path) -> None:
    path = str(tmp_path / "seawall-lab-1-2")
    fd = locks.make_held(path, locks.make_folder)
    assert locks.take(path) is None
    assert locks.take(path, shared=True) is None
    os.close(fd)
    free = locks.take(path)
    assert free is not None
    os.close(free)


def test_what_was_taken_before_it_was_locked_is_made_again(tmp_path: Path) -> None:
    path, times = str(tmp_path / "seawall-lab-1-2"), []

    def make(path: str) -> int:
        fd = locks.make_folder(path)
        times.append(path)
        if len(times) < 3:
            os.rmdir(path)
        return fd

    fd = locks.make_held(path, make)
    assert len(times) == 3
    assert locks.is_same(fd, path)
    os.close(fd)


def test_a_lock_of_somebody_else_is_waited_for_and_then_said(tmp_path: Path) -> None:
    path, others = str(tmp_path / "seawall-lab-1-2"), []

    def make(path: str) -> int:
        fd = locks.make_folder(path)
        other = os.open(path, os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_SH)
        others.append(other)
        return fd

    with pytest.raises(UsageProblem, match="somebody else holds a lock"):
        locks.make_held(path, make)
    for other in others:
        os.close(other)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("seawall-lab-1-2-outside-memory-pids", ("memory", "pids")),
        ("seawall-lab-1-2-outside", ()),
        ("seawall-lab-1-2-outside-cpu", ()),
        ("seawall-lab-1-2-memory", ()),
    ],
)
def test_what_is_to_be_taken_back_stands_in_the_name(name: str, expected: tuple[str, ...]) -> None:
    assert tuple(added_of(name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("seawall-lab-1-2", True), ("seawall-lab-1-2-outside-memory", True),
        ("seawall-lab-1", False), ("seawall-lab-1-2-3", False), ("seawall-lab--1", False),
        ("kubepods", False), ("seawall-lab-1-2\n", False),
    ],
)  # fmt: skip
def test_only_names_of_a_lab_are_ours(name: str, expected: bool) -> None:
    assert leftovers.is_ours(name) is expected


@pytest.mark.parametrize("words", [b"", b"{", b"[1]", b'{"cgroups": 5, "folder": "x"}', b"\xff"])
def test_a_torn_note_says_nothing(tmp_path: Path, words: bytes) -> None:
    note = tmp_path / "note"
    note.write_bytes(words)
    assert list(notes.still_there(str(note))) == []
    assert notes.folder_of(str(note)) is None


# --- words -------------------------------------------------------------------------------


def test_lab_alone_lists_its_verbs() -> None:
    ran = seawall("lab")
    assert (ran.status, ran.out) == (2, b"")
    others = ("rings", "egl", "cuda-host", "cuda-managed", "clean")
    for verb in ("swarm", "fill", "hog", "thrash", *others):
        assert f"  {verb} ".encode() in ran.err


@pytest.mark.parametrize("verb", ["swarm", "fill", "hog", "thrash", "clean"])
def test_help_says_what_it_does(verb: str) -> None:
    text = seawall("lab", verb, "--help").answered().text
    assert max(map(len, text.splitlines())) <= 80
    if verb != "clean":
        for words in (
            "(default ",
            "seawall why",
            "seawall pods",
            "ctrl-C",
            "lab clean",
            "/run/seawall/lab",
            "nice 10",
            "oom_score_adj",
            "pids",
            "dead runs",
            "delegated",
            "disk",
            "kill",
        ):
            assert words in text, words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("hog", "--size", "64MB"), "expected a size such as 64MiB"),
        (("hog", "--for", "601"), "expected 1 to 600 seconds"),
        (("swarm", "--processes", "0"), "expected a number from 1"),
        (("swarm", "--processes", "99999999999"), "to 10,000, not '99999999999'"),
        (("thrash", "--iops", "-5"), "expected reads a second, 0 to 1,000,000, not '-5'"),
        (("hog", "--uid", "99999999999"), "expected the number of a user"),
        (("hog", "--parent", ""), "--parent is empty"),
        (("hog", "--size", "999999999999999T", "--dry-run"), "at most 64.0 TiB"),
        (("hog", "--limit", "63T", "--yes-large", "--dry-run"), "nine tenths of what this"),
        (("hog", "--limit", "1MiB"), "expected at least 4.0 MiB"),
        (("fill", "--folder", "/nowhere"), "--folder /nowhere: not a folder"),
        (("thrash", "--programs", "2"), "nothing would be pushed out"),
    ],
)
def test_refusals_are_one_line_and_exit_2(words: tuple[str, ...], expected: str) -> None:
    ran = seawall("lab", *words)
    assert ran.status == 2
    assert expected in ran.err.decode()
    assert b"Traceback" not in ran.err
    assert ran.out == b""


def test_uid_needs_root() -> None:
    if os.geteuid() == 0:
        pytest.skip("this is root; run as an ordinary user: make test")
    ran = seawall("lab", "hog", "--uid", "1")
    assert (ran.status, b"--uid needs root" in ran.err) == (2, True)


def test_lab_imports_nothing_before_it_is_asked() -> None:
    code = "import sys, seawall.cli.lab; print([m for m in sys.modules if 'seawall.lab' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, check=True, timeout=30
    )
    assert done.stdout == b"[]\n"
