"""The probe that reads recent lines: what leaves it, and that nobody waits for a log that hangs."""

import os
import time
from pathlib import Path

import pytest

from seawall.host.background_question import BackgroundQuestion
from seawall.host.event_log import probe
from seawall.host.event_log.event_line_filter import (
    HINT,
    LINE_HINT,
    LINE_MOST_BYTES,
    hinted_lines,
    is_kept,
)
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


# One line for each way in which a pattern can know a line.
KNOWN = """\
a invoked oom-killer: gfp_mask=0x0|oom-kill:constraint=X|result 'oom-kill'
an oom-kill event in x|1 oom_kill event in x|oom_reaper: reaped|systemd-oomd[1]: x|h oomd[1]: x
h oomd kill: x|earlyoom[1]: x|topic=/tasks/oom|container oom 0123|OOMController x|OOMKilled
OOM controller x|OOM Killed|OOM received|OOM event received|SystemOOM|TaskOOM
System OOM encountered|killed by the OOM killer|Killed process 5 (x)|Kill process 5 (x)
Memory cgroup out of memory: x|Memory cgroup stats for /x|Out of memory: x|OUT OF MEMORY
Out Of Memory|Memory limit reached|Tasks in /a are going to be killed|Task in /a killed
 cpuset=/ mems_allowed=0|memory: usage 5kB|blocked for more than 120 seconds
blocked in I/O wait for more than 120 seconds|page allocation failure: order:0
SLUB: Unable to allocate memory on node -1|NV_ERR_NO_MEMORY|Cannot allocate sysmem|NVRM: Xid (
NVRM: loading|soft lockup - CPU#1|hard lockup - CPU#1|Linux version 6.1|nohang[1]: x
eviction manager: x|Eviction_manager|EvictionThresholdMet|low on resource: x|PLEG is not healthy
NodeNotReady|NodeReady|Node became ready|node became not ready|StopPodSandbox for|must evict pod
evicted successfully|STEP 5.0|done with job|Killing JobId=5|setting DOWN|Not responding
not responding|NODE_FAIL|srun: error: x|Terminating job step 5|systemd-shutdown[1]: x
systemd-modules-load[1]: x|Journal started|Journal stopped|-- Boot 0f --|-- Reboot --
Reached target Reboot|Reached target System Power Off|systemd[1]: Shutting down.
reboot: Restarting system|rsyslogd: x exiting on signal 15|System is rebooting
The system will power off now|Sending SIGKILL to cgroup|seawall-guard: x
systemd[1]: seawall-guard.service: Main process exited, code=killed, status=9/KILL
systemd[1]: oomd.service: Main process exited, code=killed, status=9/KILL|Workqueue: x|Mem-Info:
? direct_compact+0x1|[ pid ]   uid  tgid total_vm|[  pid  ] uid tgid|    Exit Code:    137
    Restart Count:  5|      Finished:     x|    Limits:|    Requests:|      memory:  2Gi"""
UNKNOWN = """\
the room, zoom and groom|oom-killer|my-oomd[1]: x|Killed process x|NVRM: Xi|lockup
(PLEG): event for pod|a target reached|reboot: x|System is up|syslogd: x started|Bootx
 cpuset=/|memory: usage x|became ready|nSTEP x|responding|[ pid ] uid|Limits:| Limits:
    Limits: x|seawall-guard[1]: x|systemd[1]: my-oomd.service: Main process exited, code=x
seawall-guard.service: Scheduled restart job|    memory: x|x    Exit Code: 1|-- Bootx"""


def test_lines_are_found_in_a_block_as_the_patterns_know_them_line_by_line() -> None:
    folder = Path(__file__).parents[1]
    paths = [*folder.glob("readings/files/oom-logs/**/*"), *folder.glob("accounts/files/recent/*")]
    assert len(paths) > 50
    for path in (path for path in paths if path.is_file()):
        block = path.read_bytes()
        lines = [line[:LINE_MOST_BYTES] for line in block.split(b"\n")]
        wanted = [line for line in lines if HINT.search(line) or LINE_HINT.match(line)]
        assert [line for _, line in hinted_lines(block)] == wanted, path.name


def test_every_known_line_is_found_between_others_and_no_other() -> None:
    known, unknown = (rows.encode().replace(b"\n", b"|").split(b"|") for rows in (KNOWN, UNKNOWN))
    assert len(known) > 80
    assert [line for line in unknown if hinted_lines(line)] == []
    lines = [line for place, one in enumerate(known) for line in (unknown[place % 24], one)]
    block = b"\n".join(lines)
    found = hinted_lines(block)
    assert [line for _, line in found] == known
    assert all(block.startswith(line, start) for start, line in found)


def test_of_a_line_its_beginning_is_looked_at_and_kept() -> None:
    most = LINE_MOST_BYTES
    inside = b"x" * (most - 6) + b"NODE_FAIL"
    block = b"\n".join((inside, b"y" * most + b"NODE_FAIL", b"NODE_FAIL" + b"z" * (2 * most)))
    assert [line for _, line in hinted_lines(block)] == [b"NODE_FAIL" + b"z" * (most - 9)]
    assert [line for _, line in hinted_lines(inside[3:])] == [inside[3:]]


def test_a_line_as_long_as_the_block_takes_no_longer_than_its_bytes() -> None:
    began = time.process_time()
    assert hinted_lines(b"oom" * 1_000_000) == []
    assert hinted_lines(b"oom\n" * 100_000) == []
    assert time.process_time() - began < 4


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


def test_of_the_line_before_a_boot_its_head_leaves_a_file(tmp_path: Path) -> None:
    log = tmp_path / "var" / "log"
    log.mkdir(parents=True)
    (log / "kern.log").write_bytes(
        b"Jan  1 10:00:00 h app[5]: start of it, password=secret\n"
        b"Jan  1 10:01:00 h kernel: Linux version 6.1.0\n"
        b"Jan  1 10:02:00 h kernel: Linux version 6.1.0\n"
        b'Jan  1 10:03:00 h earlyoom[1]: cmdline "db --password=secret"\n'
        b"Jan  1 10:04:00 h kernel: Linux version 6.1.0\n"
    )
    answer = probe.event_log("1800", lambda path, flags: os.open(f"{tmp_path}{path}", flags))
    boots = [b"Jan  1 10:0%d:00 h kernel: Linux version 6.1.0" % minute for minute in (1, 2, 4)]
    assert source(answer, "/var/log/kern.log")[0] == (
        b"Jan  1 10:00:00 h app[5]: start of it, p (not kept)", boots[0], boots[1],
        b'Jan  1 10:03:00 h earlyoom[1]: cmdline " (not kept)', boots[2],
    )  # fmt: skip


def test_a_child_beside_is_asked_now_and_answers_later() -> None:
    began = time.monotonic()
    slow = BackgroundQuestion("slow", lambda: time.sleep(60), 0.3)
    quick = BackgroundQuestion("quick", lambda: {"a": [1]}, 5.0)
    assert time.monotonic() - began < 0.25
    assert quick.answer() == {"a": [1]}
    answer = slow.answer()
    assert isinstance(answer, Unread)
    assert (answer.why, answer.detail) == ("no_answer", "no answer in 0.3 s")
    assert time.monotonic() - began < 5


def test_a_child_that_dies_is_no_answer() -> None:
    assert isinstance(BackgroundQuestion("dies", lambda: os._exit(1), 5.0).answer(), Unread)


@pytest.mark.parametrize(
    "answer", [None, 5, [], {}, {"unix_seconds": 1.0, "boot_unix_seconds": 0.0, "sources": [["a"]]}]
)
def test_a_bundle_may_hold_anything(answer: JSON) -> None:
    told = lines_told(answer)
    assert isinstance(told, Unread)
    assert told.why == "malformed"
