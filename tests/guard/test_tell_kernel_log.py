"""A line for the kernel's log on a node where nothing can be started any more."""

import contextlib
import os
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guard.aides import answer, below, until
from tests.guard.telling import BOOT, groups, lines_of, node

from seawall.guard import aide_process
from seawall.guard.aide import Aide
from seawall.guard.settings import Settings
from seawall.guard.tell import errands
from seawall.guard.tell.child import LIMITS
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller

NOBODY = 65_534


def end(aide: Aide) -> None:
    aide.close()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(aide.pid, 0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that another user reaches."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "kmsg")
        path.touch()
        path.chmod(0o666)
        yield Path(folder)


def without_processes(kmsg: Path) -> Aide:
    """One that may not fork; root always may, so it is nobody's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        theirs.close()
        return Aide(ours, pid)
    try:
        ours.close()
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        if os.geteuid() == 0:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        errands.serve(theirs, errands.Errands(kmsg=str(kmsg)))
    finally:
        os._exit(0)


def test_where_no_process_can_be_had_the_line_is_written_all_the_same(open_folder: Path) -> None:
    aide = without_processes(open_folder / "kmsg")
    textfile = answer(aide, {"do": "textfile", "path": f"{open_folder}/x"})
    assert textfile["problem"] == "not started: Resource temporarily unavailable"
    assert answer(aide, {"do": "kmsg", "record": "<4>seawall-guard: killed x\n"})["problem"] == ""
    assert (open_folder / "kmsg").read_text() == "<4>seawall-guard: killed x\n"
    end(aide)


def test_while_all_that_write_there_hang_the_next_line_is_not_lost(open_folder: Path) -> None:
    os.mkfifo(open_folder / "pipe")  # who opens it waits for a reader
    os.replace(open_folder / "pipe", open_folder / "kmsg")
    started = aide_process.start(kmsg=f"{open_folder}/kmsg")
    for _ in range(LIMITS["kmsg"][0]):
        assert started.send({"do": "kmsg", "record": "hangs\n"})
    until(lambda: len(below(started.pid)) == LIMITS["kmsg"][0], "eight that hang")
    (open_folder / "file").touch()
    os.replace(open_folder / "file", open_folder / "kmsg")
    assert answer(started, {"do": "kmsg", "record": "the ninth\n"})["problem"] == ""
    assert "the ninth" in (open_folder / "kmsg").read_text().splitlines()
    end(started)


def test_a_line_that_could_not_be_written_is_told_once_and_shown(tmp_path: Path) -> None:
    (tmp_path / "kmsg").touch()
    started = aide_process.start(kmsg="/dev/full")
    paths = Paths(str(tmp_path), kmsg=f"{tmp_path}/kmsg", pmsg=f"{tmp_path}/pmsg0")
    teller = Teller(Settings(), paths, BOOT, started)
    teller.open()
    words = "no line in the kernel's log: /dev/full: No space left on device"
    teller.event("one")

    def shown(seconds: float) -> bool | None:
        teller.status(node(seconds=seconds), groups(), "short", {})
        return words in teller.problems or None

    until(lambda: shown(time.monotonic() * 100), "the failure")
    for number in range(50):
        shown(1e9 + 10 * number)
        time.sleep(0.01)
    said = [line["sentence"] for line in lines_of(tmp_path / "decisions.jsonl")]
    assert said == ["one", words]
    assert words in (tmp_path / "status.json").read_text()
    teller.close()
    end(started)
