"""Recent events of a black box, and how far back is asked."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from pathlib import Path

import pytest
from tests.blackbox.boxes import BOOT, UNIX, box_at, ring_at

from seawall.accounts.log_episodes.guard_events import guard_event
from seawall.accounts.log_episodes.recent_events import RecentEvents
from seawall.blackbox.frame import Frame, pack
from seawall.cli.recent_event_sources import (
    add_since_argument,
    box_events,
    span_of,
    with_guard_verbs,
    without_kernel,
)
from seawall.host.live import LiveHost

KILL = (
    "6,1,50000000,-;Out of memory: Killed process 42 (hog) total-vm:10kB, anon-rss:9kB, "
    "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0"
)


def frame(number: int, after: float, **body: str) -> bytes:
    return pack(Frame(number, "line", UNIX + after, 50.0 + after, BOOT, number, dict(body)))


def test_a_black_box_tells_kills_and_decisions(tmp_path: Path) -> None:
    path = tmp_path / "box"
    told = {"kind": "verdict", "decision": f"{BOOT[:8]}-0001", "sentence": "would have killed a/b"}
    with ring_at(path) as ring:
        ring.write(
            frame(1, 0.0, kernel=KILL)
            + frame(2, 10.0, line=json.dumps(told))
            + frame(3, 9000.0, kernel=KILL)
        )
    with box_at(path) as box:
        recent = box_events(box, UNIX + 60.0, 1800.0)
    assert [event.sentence for event in recent.events] == [
        "the guard would have killed a/b", "kernel OOM-killed hog",
    ]  # fmt: skip
    assert [event.last_at_unix_seconds for event in recent.events] == pytest.approx(
        [UNIX + 10.0, UNIX], abs=0.01
    )
    assert recent.events[0].more == f"seawall why --from {path} --at {BOOT[:8]}-0001"
    assert [one.why for one in recent.unread] == ["not_captured"]


@pytest.mark.parametrize("source", ["guard", "/dev/kmsg"])
def test_the_verb_that_tells_more_is_one_that_works(tmp_path: Path, source: str) -> None:
    event = replace(guard_event(["killed ml/llm-0"], "1a2b3c4d-0007"), source=source)
    recent = RecentEvents(since_seconds=1800.0, events=(event,))
    report = "seawall guard report" if source == "guard" else ""
    assert with_guard_verbs(recent, LiveHost(str(tmp_path))).events[0].more == report
    (tmp_path / "var/lib/seawall").mkdir(parents=True)
    assert with_guard_verbs(recent, LiveHost(str(tmp_path))).events[0].more == report  # empty
    (tmp_path / "var/lib/seawall/blackbox").touch()
    more = with_guard_verbs(recent, LiveHost(str(tmp_path))).events[0].more
    assert more == "seawall why --at 1a2b3c4d-0007"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("90", 90), ("30min", 1800), ("2h", 7200), ("1d", 86_400)]
)
def test_a_span(text: str, seconds: float) -> None:
    assert span_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "8d", "1y", "h", "1e9", "\u0663min"])
def test_no_span(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        span_of(text)


def test_half_an_hour_where_nobody_says() -> None:
    parser = ArgumentParser()
    add_since_argument(parser)
    assert parser.parse_args([]).since == 1800.0


def test_the_journals_copy_of_the_kernels_log_is_left_out() -> None:
    lines = [
        b"1000000001.000000 h kernel: of the boot before",
        b"1000000100.000000 h kernel: Linux version 6.1.0",
        b"1000000200.000000 h kernel: NVRM: Xid",
        b"1000000201.000000 h kubelet[5]: kernel: quoted",
    ]
    kept = without_kernel(lines, 1000000099.0)
    assert kept == [lines[0], lines[1], lines[3]]
