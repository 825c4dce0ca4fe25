"""Who is touched by ``lab clean`` and by the start of a lab, and who never is."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end import cgroups
from tests.end_to_end.verbs import ENVIRONMENT, seawall
from tests.lab.running import NOTES, cgroup_of, is_running, left, pids_in, start, wait_for
from tests.lab.test_lab_runs import SCHEMA

pytestmark = [pytest.mark.system, pytest.mark.beside]
SMALL = ("hog", "--size", "8MiB", "--limit", "16MiB")
OTHER = "seawall-lab-1-1"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    if why := cgroups.missing():
        pytest.skip(why)
    yield
    seawall("lab", "clean")
    assert left() == []


def shell(line: str, *wrapper: str) -> subprocess.CompletedProcess[bytes]:
    """``line`` with ``$LAB`` in other namespaces; skips where they cannot be made."""
    probe = subprocess.run([*wrapper, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"{' '.join(wrapper)}: {probe.stderr.decode().strip()}")
    return subprocess.run(
        [*wrapper, "sh", "-c", line], capture_output=True, timeout=60, check=False,
        env={**ENVIRONMENT, "LAB": f"{sys.executable} -m seawall lab"},
    )  # fmt: skip


def rows_of(*words: str, expected: int = 0) -> list[dict[str, Any]]:
    ran = seawall("lab", *words, "--json")
    assert ran.status == expected, ran.err.decode()
    jsonschema.validate(ran.document, SCHEMA)
    rows: list[dict[str, Any]] = ran.document["leftovers"]
    return rows


@pytest.fixture
def innocent() -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A process of somebody else in a cgroup that is called as a lab's."""
    with (
        cgroups.cgroup(f"seawall-other-{os.getpid()}", 64 << 20) as parent,
        subprocess.Popen(["sleep", "60"]) as process,
    ):
        folder = parent.path / OTHER
        folder.mkdir()
        (folder / "cgroup.procs").write_text(str(process.pid))
        yield folder, process
        assert process.poll() is None, "somebody else's process was killed"
        process.kill()
        process.wait()
        wait_for("an empty cgroup", lambda: not pids_in(folder))
        folder.rmdir()


def test_a_process_that_no_lab_made_lives(
    innocent: tuple[Path, subprocess.Popen[bytes]],
) -> None:
    folder, process = innocent
    (row,) = rows_of("clean", expected=2)
    assert row == {
        "path": str(folder), "removed": False, "why": f"1 process in it, first {process.pid}"
    }  # fmt: skip
    assert rows_of("clean", "--dry-run") == [row]
    text = seawall("lab", "clean").out.decode()
    assert "NOT removed: 1 process in it" in text
    assert rows_of(*SMALL, "--for", "1") == [], "only its own parent is looked at"
    # Beside its own cgroup it is seen, told and left alone.
    parent = f"/{folder.parent.name}"
    (row,) = rows_of(*SMALL, "--for", "1", "--parent", parent)
    assert (row["path"], row["removed"]) == (str(folder), False)
    hidden = shell("$LAB clean", "unshare", "--pid", "--fork", "--mount-proc")
    assert hidden.returncode == 2
    assert b"NOT removed" in hidden.stdout


NAMESPACES = {
    "clean in a pid namespace": ((), ("unshare", "--pid", "--fork", "--mount-proc")),
    "lab in a time namespace": (("unshare", "--time", "--boottime", "100000", "--fork"), ()),
    "lab in a pid namespace": (("unshare", "--pid", "--fork", "--mount-proc"), ()),
    "clean in a cgroup namespace": ((), ("unshare", "--cgroup", "--mount")),
}


@pytest.mark.parametrize("where", NAMESPACES)
def test_a_run_that_goes_on_is_seen_from_every_namespace(where: str) -> None:
    around_lab, around_clean = NAMESPACES[where]
    shell("true", *around_lab)
    line = [*around_lab, sys.executable, "-m", "seawall", "lab", *SMALL, "--for", "4", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout
        wait_for("its note", lambda: list(NOTES.glob("*")))
        wait_for("its process", lambda: any(pids_in(Path(f)) for f in left() if "cgroup" in f))
        before = left()
        done = shell("$LAB clean", *around_clean)
        assert (done.returncode, done.stdout) == (0, b"nothing of a dead run is here\n")
        assert left() == before
        page = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert page["processes"]["survived"] == 1
    assert page["removed"]


def test_it_ends_when_somebody_removes_its_cgroup() -> None:
    process = start("hog", "--size", "64MiB", "--limit", "16MiB", "--respawn", "--for", "60")
    folder = cgroup_of(process)

    def gone() -> bool:
        try:
            folder.rmdir()
        except OSError:
            return not folder.exists()
        return True

    until = time.monotonic() + 20
    while not gone():
        assert time.monotonic() < until, "never empty"
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert b"somebody removed the lab's cgroup" in err
    assert left() == []


def test_a_note_that_cannot_be_written_is_not_left() -> None:
    fill = "head -c 4096 /dev/zero > /run/seawall/lab/full"
    done = shell(
        "mkdir -p /run/seawall/lab && mount -t tmpfs -o size=4k none /run/seawall/lab && "
        f"{fill}; $LAB hog --size 8MiB --limit 16MiB --for 1 >&2; ls /run/seawall/lab",
        "unshare", "--mount",
    )  # fmt: skip
    assert done.stdout == b"full\n", done.stderr.decode()
    assert b"all removed, checked" in done.stderr


def test_files_are_found_where_labs_write_them(tmp_path: Path) -> None:
    """As a kill -9 leaves them where O_TMPFILE is missing."""
    NOTES.mkdir(parents=True, exist_ok=True)
    note = NOTES / "seawall-lab-1-1"
    note.write_text(json.dumps({"folder": str(tmp_path), "cgroups": []}))
    usual, named = Path("/var/tmp/seawall-lab-1-1"), tmp_path / "seawall-lab-1-1"
    for path in (usual, named):
        path.write_bytes(b"x")
    other = tmp_path / "seawall-lab-2-2"
    other.symlink_to("/etc/passwd")
    assert {row["path"] for row in rows_of("clean", "--dry-run")} == set(
        map(str, (note, usual, named))
    )
    assert named.exists()
    rows = rows_of("clean")
    assert {row["path"] for row in rows if row["removed"]} == set(map(str, (note, usual, named)))
    assert not usual.exists()
    assert other.is_symlink()
    assert rows_of("clean") == []


def test_many_cleans_at_once_are_no_failure() -> None:
    for number in range(1, 40):
        (cgroups.memory_home() / f"seawall-lab-1-{number}").mkdir()  # type: ignore[operator]
    line = [sys.executable, "-m", "seawall", "lab", "clean"]
    cleans = [
        subprocess.Popen(line, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for clean in cleans:
        out, err = clean.communicate(timeout=60)
        assert clean.returncode == 0, (out, err)
    assert left() == []


def test_when_the_lab_is_stopped_its_processes_end_in_time() -> None:
    process = start(*SMALL, "--for", "3")
    folder = cgroup_of(process)
    wait_for("its child", lambda: pids_in(folder))
    (child,) = pids_in(folder)
    began = time.monotonic()
    process.send_signal(signal.SIGSTOP)
    wait_for("its end", lambda: not is_running(child), 8)
    assert time.monotonic() - began < 5
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err.decode()
    assert b"the time is over" in out
    assert b"1 lived to the end" in out


def test_one_that_fails_is_told_by_the_exit_status() -> None:
    process = start("swarm", "--processes", "4", "--each", "1MiB", "--limit", "16MiB", "--for", "3")
    wait_for("all of them", lambda: len(pids_in(cgroup_of(process))) == 4)
    os.kill(pids_in(cgroup_of(process))[0], signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert b"1 failed" in out
    assert process.returncode == 2


OVERLAY = """
mount -t tmpfs t {at} && mkdir {at}/l {at}/u {at}/w {at}/m {at}/ro && mkdir -p {on} &&
mount -t overlay o -o lowerdir={at}/l,upperdir={at}/u,workdir={at}/w {on} || exit 77
mount --bind -o ro {at}/ro {at}/ro && mount -o remount,bind,ro {at}/ro || exit 77
$LAB fill --folder {on} --size 32MiB --limit 16MiB --for 5; echo "= $?"
$LAB fill --folder {at}/ro --size 32MiB --limit 16MiB --dry-run; echo "= $?"
mount -t tmpfs cover {at}
$LAB fill --folder {on} --size 32MiB --limit 16MiB --for 5; echo "= $?"
"""


def test_an_overlay_is_the_filesystem_below_it(tmp_path: Path) -> None:
    at, on = tmp_path / "at", tmp_path / "on"
    at.mkdir()
    done = shell(OVERLAY.format(at=at, on=on), "unshare", "--mount")
    if done.returncode == 77:
        pytest.skip(f"no overlay can be mounted: {done.stderr.decode().strip()}")
    assert f"--folder {on} is tmpfs".encode() in done.stderr
    assert f"--folder {at}/ro: mounted read-only".encode() in done.stderr
    out = done.stdout.decode()
    assert [line for line in out.splitlines() if line.startswith("= ")] == ["= 2", "= 2", "= 0"]
    # Its upper folder is not seen: it fills the limit as memory does, and is killed.
    assert "OOM kills in the cgroup: 1" in out
    assert "can be dropped" not in out
    assert "0 B were written" not in out
