"""Published logs of kills, hangs and nodes that fail: what must be said of each, and what not.

The logs are pieces of public issues as people pasted them; the readings were written by hand.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from seawall.accounts.log_episodes.log_events import events_of
from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.readings.event_log.event_log import read_events
from seawall.readings.event_log.log_line import LogClock

FILES = Path(__file__).parent / "files" / "recent"


class Expected(NamedTuple):
    kinds: tuple[str, ...]
    says: tuple[str, ...]
    says_not: tuple[str, ...]
    when: tuple[str, ...] = ()


KERNEL_KILLS = ("OOM-killed", "kernel killed", "kernel's OOM killer was started")
PIECES = {
    "containerd-taskoom-sandbox": Expected(
        ("container_oom",),
        ("4bcba7fc4369", "sandbox", "not the container that lost", "kernel's report"),
        ("was killed", "pause", "out of memory", *KERNEL_KILLS),
    ),
    "earlyoom-did-not-act": Expected(
        ("userspace_kill",),
        ("0.35 %", "56 MiB of 15881 MiB", "did not act", "memory AND swap", "4.00 % and 10.00 %"),
        ("SIGTERM", "SIGKILL", "sent", "killed", *KERNEL_KILLS),
        ("mars 27 19:46:06",),
    ),
    "earlyoom-dies-after-kill": Expected(
        ("userspace_kill", "userspace_kill"),
        ("SIGTERM to cellxgene", "2595764", "uid 0", "51.3 GiB", "7.30 %", "0.00 %", "10.00 %",
         "sent is not died", "SIGSYS", "core dump", "guards nothing"),
        ("SIGKILL", "killed cellxgene", "was killed", *KERNEL_KILLS),
        ("Jul 18 08:23:17", "Jul 18 08:23:18"),
    ),
    "eviction-one-pod": Expected(
        ("eviction",),
        ("evicted guaranteed-cn933 for memory", "e2e-tests-eviction-test-simple-rkrca",
         "memory.available", "10 s later", "Sep 02 15:20:24"),
        ("OOM-killed", "Guaranteed", "2 pods", "no line says that the shortage"),
        ("Sep 02 15:20:12 to Sep 02 15:20:14",),
    ),
    "hard-reset-gpu-node": Expected(
        ("unclean_reboot",),
        ("likely", "without a shutdown", "3 min 27 s", "Jan 30 11:15:01", "pstore", "BMC"),
        ("out of memory", "killed", "hung", "1424", "resource version"),
        ("Jan 30 11:18:28",),
    ),
    "hung-same-two-tasks": Expected(
        ("hung_task",),
        ("2 tasks", "khugepaged (136)", "test-journal-ve (482)", "368 s", "124 s after boot",
         "told 3 times", "do not say"),
        ("5 tasks", "5 hangs", "shortage", "OOM", "killed", "over for"),
        ("245.53 s after boot to 491.29 s after boot",),
    ),
    "memcg-java-cut-both-ends": Expected(
        ("oom_kill", "oom_kill"),
        ("kernel OOM-killed java", "28438", "455 MiB", "a memory cgroup's limit",
         "6895a3e13439", "pod95387fa4", "1e479e759020", "who died is not known"),
        ("24572", "2 x java", "the machine's memory", "protected"),
        ("Thu Dec  7 00:05:15 2017", "Thu Dec  7 00:13:22 2017"),
    ),
    "nohang-victim-does-not-answer": Expected(
        ("userspace_kill",),
        ("nohang sent SIGTERM to python3.6", "10432 MiB resident", "9422 MiB in swap",
         "session-17.scope", "42 min", "2255 ms", "0.031 s", "not dead", "49.2 MiB",
         "PID is not in the lines"),
        ("11439", "bash", "11871", "SIGKILL", "was killed", *KERNEL_KILLS),
        ("Feb 12 14:31:46",),
    ),
    "nvrm-no-memory": Expected(
        ("allocation_failure",),
        ("2 requests", "52595.76 s after boot", "52611.86 s after boot", "host RAM",
         "NV_ERR_NO_MEMORY", "nobody was killed", "which process"),
        ("6 requests", "Xid", "video memory", "broken", *KERNEL_KILLS),
    ),
    "oomd-desktop": Expected(
        ("userspace_kill",),
        ("systemd-oomd killed snap.chromium", "82bbbfd7-c79b-4b57-b425-e543631ca054.scope",
         "user-1000.slice", "cut here"),
        ("1 process", *KERNEL_KILLS),
        ("Feb 15 17:10:20",),
    ),
    "oomd-kills-journald": Expected(
        ("userspace_kill",),
        ("systemd-oomd killed systemd-journald", "PID 407", "55.5M", "19 candidates", "85.03%",
         "80.00%", "counts 1 process", "can be missing", "not a size"),
        ("2 ", "unclean", "reboot", *KERNEL_KILLS),
        ("77.74 s after boot to 77.75 s after boot",),
    ),
    "page-alloc-order4": Expected(
        ("allocation_failure",),
        ("64 KiB in one piece", "nvme_scan_work", "order 4", "16 pages", "could wait",
         "compaction", "nobody was killed", "how much was free is not told"),
        ("no free memory", "out of memory", *KERNEL_KILLS),
        ("Mon Apr 20 15:08:07 2020",),
    ),
    "pleg-klog-flap": Expected(
        ("node_not_ready",),
        ("kube-node3", "NotReady for 41 s", "11m3", "3m0s", "11:37:4", "2018-08-24", "+0800",
         "952 s", "11:33:20", "11:49:54", "do not say that memory"),
        ("shortage", "Sufficient", "no line says that it was over"),
        ("08-24 11:49:12 to 08-24 11:49:54",),
    ),
    "pleg-two-hours-eks": Expected(
        ("node_not_ready",),
        ("2 h 33 min", "08:20:40", "no line says that it was over", "do not say that memory"),
        ("shortage", *KERNEL_KILLS),
        ("Apr 13 10:53:52 to Apr 13 10:53:57",),
    ),
    "slurm-node-failed": Expected(
        ("node_not_ready",),
        ("node03", "2026-09-18 19:28:49", "job 48", "00:06:51", "SlurmdTimeout"),
        ("memory", "CANCELLED", "user", "OOM", "48.batch"),
    ),
    "slurm-step-oom-and-bus-error": Expected(
        ("slurm_oom", "slurm_failure"),
        ("3495064.0", "counts 1 OOM kill", "the step's own limit", "task 4 on node-01-01",
         "2021-10-27 19:35:36", "3495450.0", "bus error", "task 289 on node-18-69", "20:22:22",
         "led from"),
        ("2 OOM", "by a user", "task 289 on node-01-04"),
    ),
    "slurmd-step-not-ending": Expected(
        ("node_not_ready",),
        ("63532.0", "node-106", "09:43:55", "09:44:56", "09:44:58", "stuck in the kernel",
         "drains"),
        ("out of memory", "OOM", "09:43:55.502"),
        ("2020-12-14T09:43:55.500 to 2020-12-14T09:44:58.306",),
    ),
    "xid-over-nine-days": Expected(
        ("device_fault", "device_fault", "device_fault"),
        ("Xid 94 on GPU 0000:00:08", "contained", "RST: No", "which program it was is not told",
         "Xid 31 on GPU 0000:00:07", "python3.10 (2512125)", "not mapped",
         "Xid 43 on GPU 0000:00:05, 2 times", "pt_main_thread"),
        ("GPU ran out", "broken", "OOM-killed"),
        ("Fri Aug  9 13:32:56 2024",),
    ),
}  # fmt: skip


def events_in(name: str) -> list[RecentEvent]:
    with open(FILES / f"{name}.txt", "rb") as log:
        return events_of(read_events(log, LogClock()), name)


def words_of(events: Sequence[RecentEvent]) -> str:
    return "\n".join("\n".join((event.sentence, *event.details)) for event in events)


def test_every_piece_has_its_reading() -> None:
    assert {path.stem for path in FILES.glob("*.txt")} == set(PIECES)


@pytest.mark.parametrize("name", PIECES)
def test_what_is_said_of_a_published_piece(name: str) -> None:
    wanted, events = PIECES[name], events_in(name)
    words = words_of(events)
    assert sorted(event.kind for event in events) == sorted(wanted.kinds), words
    assert [part for part in wanted.says if part not in words] == [], words
    assert [part for part in wanted.says_not if part in words] == [], words
    whens = [event.when for event in events]
    assert [when for when in wanted.when if when not in whens] == []
    assert all(len(event.sentence) <= 78 for event in events), words


@pytest.mark.parametrize("name", sorted(set(PIECES) - {"containerd-taskoom-sandbox"}))
def test_a_date_without_a_zone_is_not_placed(name: str) -> None:
    assert all(event.last_at_unix_seconds is None for event in events_in(name))


def test_a_date_with_a_zone_is_placed() -> None:
    (event,) = events_in("containerd-taskoom-sandbox")
    assert event.last_at_unix_seconds == pytest.approx(1693595553.0, abs=1)
    assert event.when == ""


def test_the_last_half_hour_before_the_last_line() -> None:
    """Xids of nine days: one of them is in it."""
    last = 0.0
    with open(FILES / "xid-over-nine-days.txt", "rb") as log:
        last = read_events(log, LogClock()).last.wall_seconds or 0.0
    near = [
        event.sentence
        for event in events_in("xid-over-nine-days")
        if last - (event.last_log_seconds or 0.0) <= 1800
    ]
    assert near == ["Xid 94 on GPU 0000:00:08"]
