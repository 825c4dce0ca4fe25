"""Safe on a dying node: nothing that another process holds may hold us, and we say who did."""

import contextlib
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import cgroups, fuse_server, held_process, loads, verbs
from tests.end_to_end.verbs import Ran, run, seawall
from tests.ready import ready

pytestmark = [pytest.mark.system, pytest.mark.beside]
TIMEOUT_SECONDS = 12.0
GRACE_SECONDS = 5.0  # the watchdog's own 2 s, and a busy machine
READING_VERBS = ("why", "memory", "pods", "numbers", "cache")


def needs_fuse() -> None:
    if os.geteuid() or not os.path.exists("/dev/fuse"):
        pytest.skip("a filesystem that never answers needs root and /dev/fuse: modprobe fuse")


@contextlib.contextmanager
def silent_files(mountpoint: Path, *files: str) -> Iterator[Path]:
    """FILES exist below ``mountpoint`` and never answer a read; ends with all readers freed."""
    server = subprocess.Popen(
        [sys.executable, fuse_server.__file__, str(mountpoint), *files], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout
        if server.stdout.readline() != b"mounted\n":
            pytest.skip("mounting FUSE is not allowed here: run with CAP_SYS_ADMIN")
        yield mountpoint
    finally:
        server.kill()  # its descriptor was the connection: whoever waits gets ENOTCONN
        server.communicate()
        subprocess.run(["umount", "--lazy", str(mountpoint)], check=False)


def answers_in_half_a_second(path: str) -> bool:
    reader = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        reader.wait(0.5)
    except subprocess.TimeoutExpired:
        return False
    finally:
        reader.kill()
        reader.wait(10)  # mmap_lock is waited for killably
    return True


@pytest.fixture
def locked_pid(tmp_path: Path) -> Iterator[int]:
    """A process inside a page fault whose address space no one can read."""
    needs_fuse()
    with silent_files(tmp_path, "stuck") as mountpoint:
        held = subprocess.Popen(
            [sys.executable, held_process.__file__, str(mountpoint / "stuck")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert held.stdout
            assert held.stdout.readline() == b"held\n"
            until = time.monotonic() + 10
            while answers_in_half_a_second(f"/proc/{held.pid}/cmdline"):
                assert time.monotonic() < until, "its address space never locked: no proof"
            yield held.pid
            assert not answers_in_half_a_second(f"/proc/{held.pid}/cmdline")
        finally:
            held.kill()
    held.communicate()


# --- a process held inside a page fault ------------------------------------------------


def test_why_ends_and_names_the_locked_process(locked_pid: int) -> None:
    ran = seawall("why", "--whole", f"--timeout={TIMEOUT_SECONDS}").answered()
    assert ran.seconds < TIMEOUT_SECONDS + GRACE_SECONDS
    assert f"pid {locked_pid}: address space locked" in " ".join(ran.text.split())


@pytest.mark.parametrize("verb", READING_VERBS)
def test_other_verbs_end_beside_a_locked_process(locked_pid: int, verb: str) -> None:
    ran = seawall(verb, "--json", f"--timeout={TIMEOUT_SECONDS}").answered()
    assert ran.seconds < TIMEOUT_SECONDS + GRACE_SECONDS
    assert ran.document["schema"] == f"seawall.{verb}/1"


def test_capture_ends_and_keeps_the_silence_as_evidence(locked_pid: int, tmp_path: Path) -> None:
    bundle = tmp_path.parent / "locked.bundle"
    ran = seawall("capture", "--for=2", "-o", str(bundle)).answered()
    assert ran.seconds < 25
    with tarfile.open(bundle) as archive:
        member = archive.extractfile("1/answers.json")
        assert member
        unread = json.load(member)["unread"]
    silent = [row for path, row in unread.items() if path.startswith(f"/proc/{locked_pid}/")]
    assert silent
    for why, detail in silent:
        assert why == "no_answer"
        assert f"pid {locked_pid}: address space locked" in detail
    ran = seawall("why", "--whole", "--from", str(bundle)).answered()
    assert f"pid {locked_pid}: address space locked" in " ".join(ran.text.split())


# --- a reader that never returns -------------------------------------------------------


@pytest.fixture
def silent_root(tmp_path: Path) -> Iterator[Path]:
    """The root of a host of which one file of the main road never answers."""
    needs_fuse()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/sys").mkdir()
    for name in ("vmstat", "zoneinfo", "uptime"):
        (tmp_path / "proc" / name).write_bytes(Path("/proc", name).read_bytes())
    target = tmp_path / "hung"
    target.mkdir()
    (tmp_path / "proc/meminfo").symlink_to("/hung/meminfo")
    with silent_files(target, "meminfo"):
        yield tmp_path


@pytest.mark.parametrize("verb", READING_VERBS)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_timeout_with_a_hung_reader(silent_root: Path, verb: str, form: tuple[str, ...]) -> None:
    ran = seawall(verb, f"--root={silent_root}", "--timeout=2", *form)
    assert ran.seconds < 2 + GRACE_SECONDS
    if form and verb != "why":
        # No whole document can be had, and an empty one would look healthy.
        assert (ran.status, ran.out) == (2, b"")
        assert b"/proc/meminfo: no answer within" in ran.err
        return
    assert ran.answered().status == 0
    assert "/proc/meminfo" in ran.text
    if form:
        assert ran.document["could_not_see"]
    else:
        assert "Could not see" in ran.text or "not seen" in ran.text


# --- hostile names ---------------------------------------------------------------------

HOSTILE_COMM = "\x1b[31mr\nd\x07\x9b2J"
# A newline is what the kernel itself refuses in a cgroup's name.
HOSTILE_GROUP = "seawall-\x1b[2J\rfake: all is well\x1b]0;x\x07\u202e\x9b"


def raw_controls(output: bytes) -> list[str]:
    """Characters that could steer a terminal."""
    text = output.decode("utf-8", "surrogateescape")
    return [
        char for char in text if char != "\n" and (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0)
    ]


@pytest.fixture
def hostile_process() -> Iterator[int]:
    """A large process with escapes in its name, in a cgroup with worse ones."""
    if why := cgroups.missing():
        pytest.skip(why)
    code = (
        "import ctypes,runpy,sys;"
        f"ctypes.CDLL(None).prctl(15, {HOSTILE_COMM.encode('latin-1')!r});"
        f"sys.argv=['x','take',str(64<<20),'0'];runpy.run_path({loads.__file__!r},run_name='__main__')"
    )
    with cgroups.cgroup(HOSTILE_GROUP, 128 << 20) as group:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        group.add(process.pid)
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        assert Path(f"/proc/{process.pid}/comm").read_bytes().startswith(b"\x1b[31m")
        yield process.pid
        process.kill()
        process.communicate()


@pytest.mark.parametrize("verb", READING_VERBS)
def test_hostile_names_reach_no_terminal_raw(hostile_process: int, verb: str) -> None:
    text = seawall(verb, "--color=never").answered()
    assert raw_controls(text.out) == []
    assert not [line for line in text.text.splitlines() if line.startswith("fake: all is well")]
    page = seawall(verb, "--json").answered()
    assert raw_controls(page.out) == []
    assert page.document["schema"] == f"seawall.{verb}/1"


def test_pods_shows_the_hostile_group_written_out(hostile_process: int) -> None:
    rows = seawall("pods", "--json").answered().document["workloads"]
    assert any("fake: all is well" in (row["cgroup"] or "") for row in rows)


# --- processes and groups that vanish --------------------------------------------------


@pytest.mark.parametrize("words", [*READING_VERBS, "capture"])
def test_a_storm_of_vanishing_processes(words: str, tmp_path: Path) -> None:
    more = ["--for=2", f"-o{tmp_path / 'storm.bundle'}"] if words == "capture" else ["--json"]
    storm = subprocess.Popen(
        [sys.executable, loads.__file__, "fork_storm", "8"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert storm.stdout
        assert storm.stdout.readline() == b"ready\n"
        for _ in range(2):
            (tmp_path / "storm.bundle").unlink(missing_ok=True)
            seawall(words, *more).answered()
    finally:
        os.killpg(storm.pid, 9)
        storm.communicate()


def test_groups_that_vanish_while_pods_reads(tmp_path: Path) -> None:
    if why := cgroups.missing():
        pytest.skip(why)
    code = (
        "import os,itertools\nos.write(1,b'ready\\n')\n"
        "for i in itertools.count():\n"
        "  os.mkdir(p:=f'{home}/seawall-v{i % 7}'); os.rmdir(p)\n"
    )
    home = str(cgroups.memory_home())
    try:
        with ready([sys.executable, "-c", f"home={home!r}\n{code}"]):
            for _ in range(5):
                seawall("pods", "--json").answered()
    finally:
        for left in Path(home).glob("seawall-v*"):
            left.rmdir()


# --- outputs that end early ------------------------------------------------------------


def shell(line: str) -> Ran:
    return run(["bash", "-c", line.replace("seawall", f"{sys.executable} -m seawall")])


@pytest.mark.parametrize("verb", READING_VERBS)
def test_head_takes_one_line(verb: str) -> None:
    ran = shell(f"seawall {verb} | head -n 1")
    assert ran.out.count(b"\n") == 1
    assert ran.err == b""


@pytest.mark.parametrize("verb", READING_VERBS)
def test_stdout_closed_or_full(verb: str) -> None:
    for where in (">&-", "> /dev/full"):
        ran = shell(f"seawall {verb} {where}")
        assert b"Traceback" not in ran.err, ran.err.decode()
    assert ran.status != 0, "a full disk is not success"


def test_capture_onto_what_cannot_be_written() -> None:
    ran = seawall("capture", "--for=2", "-o", "/proc/self/no.bundle")
    assert ran.status == 2
    assert ran.err.count(b"\n") <= 5
    assert b"Traceback" not in ran.err
    assert b"/proc/self/no.bundle" in ran.err


def test_nothing_is_written_where_one_works(tmp_path: Path) -> None:
    assert verbs.ENVIRONMENT["PYTHONDONTWRITEBYTECODE"]
    for verb in READING_VERBS:
        done = subprocess.run(
            [sys.executable, "-m", "seawall", verb],
            cwd=tmp_path, env={**verbs.ENVIRONMENT, "HOME": str(tmp_path)},
            capture_output=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout
    assert list(tmp_path.iterdir()) == []
