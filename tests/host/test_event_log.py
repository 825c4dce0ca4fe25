"""The probe that reads recent lines: what leaves it, and that nobody waits for a log that hangs."""

import os
import time
from pathlib import Path

import pytest

from seawall.host.asked_beside import AskedBeside
from seawall.host.event_log import probe
from seawall.host.event_log.kept_lines import is_kept
from seawall.host.host import JSON, Unread
from seawall.readings.event_lines import EventLines, lines_told


def journalctl(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name that says what it is told to."""
    path = folder / "journalctl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def source(answer: JSON, name: str) -> tuple[tuple[bytes, ...], Unread | None]:
    told = lines_told(answer)
    assert isinstance(told, EventLines)
    return next((one.lines, one.problem) for one in told.sources if one.name == name)


def test_lines_of_known_kinds_alone_leave_it() -> None:
    assert is_kept(b"h systemd-oomd[1]: Killed /a due to memory pressure")
    assert not is_kept(b"h sshd[1]: Accepted password for root from 10.0.0.1")
    assert not is_kept(b'h earlyoom[1]: process 5 cmdline "db --password=secret"')
    assert not is_kept(b"h nohang[1]:   Cmdline:   db --password=secret")


def test_the_journal_is_turned_round_and_a_boots_last_line_loses_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    journalctl(
        tmp_path,
        f"echo '{now:.6f} h kernel: Linux version 6.1.0 (gcc)'\n"
        f"echo '{now - 60:.6f} h app[5]: token=secret'\n"
        f"echo '{now - 70:.6f} h earlyoom[1]: low memory! at or below'",
        monkeypatch,
    )
    lines, problem = source(probe.event_log("1800"), "journal")
    assert problem is None
    assert [line.partition(b" h ")[2] for line in lines] == [
        b"earlyoom[1]: low memory! at or below", b"app: (not kept)",
        b"kernel: Linux version 6.1.0 (gcc)",
    ]  # fmt: skip


def test_a_journal_that_hangs_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journalctl(tmp_path, "exec sleep 60", monkeypatch)
    began = time.monotonic()
    lines, problem = source(probe.event_log("1800"), "journal")
    assert time.monotonic() - began < 10
    assert not lines
    assert problem is not None
    assert problem.why == "no_answer"
    assert "no answer in 1.3 s" in problem.detail


def test_where_no_journal_is_the_ends_of_files_are_read(tmp_path: Path) -> None:
    log = tmp_path / "var" / "log"
    log.mkdir(parents=True)
    noise = b"Jan  1 10:00:00 h app[5]: password=secret\n" * 60_000
    (log / "syslog").write_bytes(noise + b"Jan  1 10:00:00 h earlyoom[1]: low memory! at\n")
    os.mkfifo(log / "messages")

    def below(path: str, flags: int) -> int:
        return os.open(f"{tmp_path}{path}", flags)

    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kmsg").write_text("6,1,1,-;Out of memory: Killed process 5 (x)\n")
    answer = probe.event_log("1800", below)
    lines, problem = source(answer, "/dev/kmsg")
    assert not lines, "a file is no kernel's log, and this machine's own is not the tree's"
    assert problem is not None
    assert source(answer, "/var/log/syslog")[0] == (
        b"Jan  1 10:00:00 h earlyoom[1]: low memory! at",
    )
    problem = source(answer, "/var/log/messages")[1]
    assert problem is not None
    assert "not a regular file" in problem.detail


def test_a_child_beside_is_asked_now_and_answers_later() -> None:
    began = time.monotonic()
    slow = AskedBeside("slow", lambda: time.sleep(60), 0.3)
    quick = AskedBeside("quick", lambda: {"a": [1]}, 5.0)
    assert time.monotonic() - began < 0.25
    assert quick.answer() == {"a": [1]}
    answer = slow.answer()
    assert isinstance(answer, Unread)
    assert (answer.why, answer.detail) == ("no_answer", "no answer in 0.3 s")
    assert time.monotonic() - began < 5


def test_a_child_that_dies_is_no_answer() -> None:
    assert isinstance(AskedBeside("dies", lambda: os._exit(1), 5.0).answer(), Unread)


@pytest.mark.parametrize(
    "answer", [None, 5, [], {}, {"unix_seconds": 1.0, "boot_unix_seconds": 0.0, "sources": [["a"]]}]
)
def test_a_bundle_may_hold_anything(answer: JSON) -> None:
    told = lines_told(answer)
    assert isinstance(told, Unread)
    assert told.why == "malformed"
