"""/dev/kmsg: what leaves the reading child, and how it is read."""

import errno
import os

import pytest
from tests.readings.oom_logs import NAMES, log, reports_in

from seawall.host import kmsg
from seawall.host.blocking import deadline_seconds
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.sieve import sieve_for
from seawall.readings.oom_log.lines import LineReader

SECRETS = b"""\
6,1,1000,-;Command line: root=/dev/sda1 luks.key=hunter2
4,2,1001,-;audit: proctitle="mysql -phunter2"
6,3,1002,-;cifs: password hunter2
4,4,1003,-;RAX: 00000000hunter2 RBX: 1
 DEVICE=+hunter2
6,5,1004,-;hunter2 5
6,6,1005,-;Node 0 DMA: hunter2
"""


def as_records(name: str) -> bytes:
    """A published log as /dev/kmsg would have given it."""
    records = []
    reader = LineReader()
    for number, raw in enumerate(log(name).split(b"\n")[1:], start=1):
        for line in reader.read(raw, number):
            text = line.text.encode()
            if text.startswith(b"          "):  # later lines of one message, as dmesg shows them
                records[-1] = records[-1][:-1] + b"\\x0a" + text.strip() + b"\n"
            else:
                records.append(b"4,%d,%d,-;%s\n" % (number, number * 1000, text))
    return b"".join(records)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.startswith(("global-5", "global-6", "memcg-v", "sysrq", "memp"))]
)
def test_every_report_says_the_same_after_the_sieve(name: str) -> None:
    whole, kept = as_records(name), kmsg.keep_oom_records(as_records(name))
    assert len(kept) <= len(whole)
    before, after = reports_in(whole), reports_in(kept)
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert [t._replace(line=0) for t in one.tasks] == [t._replace(line=0) for t in other.tasks]
        assert [k._replace(line=0) for k in one.kills] == [k._replace(line=0) for k in other.kills]
        assert [r._replace(line=0) for r in one.reaped] == [
            r._replace(line=0) for r in other.reaped
        ]
        for field in ("mem_info", "memory", "memory_swap", "kmem", "swap", "memcg_stats", "kind"):
            assert getattr(one, field) == getattr(other, field)
        assert (one.unreclaimable_slab, one.allocations) == (
            other.unreclaimable_slab, other.allocations,
        )  # fmt: skip


def test_nothing_but_reports_is_kept() -> None:
    report = as_records("memcg-v2-5.2.0-rc2-constraint-none-bug")
    assert kmsg.keep_oom_records(SECRETS) == b""
    kept = kmsg.keep_oom_records(SECRETS + report + SECRETS)
    assert b"hunter2" not in kept
    assert kept == kmsg.keep_oom_records(report)
    lines = report.split(b"\n")
    inside = b"\n".join([*lines[:5], SECRETS.rstrip(b"\n"), *lines[5:]])
    # The shape of memory.stat is all that such a line could use to come through.
    assert kmsg.keep_oom_records(inside).replace(b"6,5,1004,-;hunter2 5\n", b"") == kept


def test_registers_and_call_traces_are_left_behind() -> None:
    kept = kmsg.keep_oom_records(as_records("memcg-v1-6.18.44-kmsg"))
    assert b"RAX" not in kept
    assert b"dump_header" not in kept
    assert b"Comm: python" in kept


def test_the_newest_reports_are_kept_whole() -> None:
    report = as_records("global-6.1.1-arch1-1-doxygen")
    kept = kmsg.keep_oom_records(report * 200)
    assert len(kept) <= kmsg.KEPT_MOST_BYTES
    found = reports_in(kept)
    assert len(found) > 50
    assert {len(report.tasks) for report in found} == {112}
    assert not any(report.is_headless for report in found)


def test_a_single_report_is_never_cut() -> None:
    row = b"6,9,9,-;[%7d]     0 %5d     9458     2766    77824        0             0 a\n"
    table = b"6,8,8,-;Tasks state (memory values in pages):\n" + b"".join(
        row % (n, n) for n in range(1, 30_000)
    )
    assert len(kmsg.keep_oom_records(table)) == len(table) > kmsg.KEPT_MOST_BYTES


def test_any_bytes() -> None:
    for data in (b"", b"\n\n", b"\0" * 99, b"6,1,1,-;", b"6,1,1,-;" + b"x" * 99_999, b"," * 9999):
        assert kmsg.keep_oom_records(data) == b""


def test_records_until_there_are_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """EPIPE says that some were overwritten, EAGAIN is the end, anything else is a failure."""
    answers: list[bytes | int] = [b"6,1,1,-;a\n", errno.EPIPE, b"6,9,9,-;b\n", errno.EAGAIN]

    def read(_: int, __: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer

    monkeypatch.setattr(os, "read", read)
    assert kmsg.read_records(0) == b"6,1,1,-;a\n6,9,9,-;b\n"
    answers[:] = [errno.EIO]
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        kmsg.read_records(0)


def test_it_is_read_by_the_expendable_child() -> None:
    assert deadline_seconds("/dev/kmsg") == 2.0
    assert sieve_for("/dev/kmsg") is not None


def test_live() -> None:
    host = LiveHost()
    try:
        found = host.read("/dev/kmsg")
    finally:
        host.close()
    if isinstance(found, Unread):
        assert found.why in ("refused", "absent")
        pytest.skip(f"/dev/kmsg: {found.why}; needs CAP_SYSLOG: sudo make test")
    assert found == kmsg.keep_oom_records(found)


def test_a_tree_with_such_a_file_is_not_asked(tmp_path: os.PathLike[str]) -> None:
    os.makedirs(f"{tmp_path}/dev")
    os.makedirs(f"{tmp_path}/proc")
    with open(f"{tmp_path}/dev/kmsg", "wb") as file:
        file.write(b"6,1,1,-;Killed process 1 (x) total-vm:4kB\n")
    host = LiveHost(str(tmp_path))
    try:
        found = host.read("/dev/kmsg")
    finally:
        host.close()
    assert isinstance(found, Unread)
    assert found.why == "absent"
