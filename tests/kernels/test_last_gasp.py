"""What the measurement of last words counts: no VM and no API server are needed."""

from typing import Any

import pytest
from tests.cluster.audit_log import Request
from tests.kernels.dying_nodes import KINDS, Seen, drawn, is_of, wanted
from tests.kernels.last_gasp import conclude, line, row_of

GO = 1_700_000_000.0
HOG, OTHER = "0a1b2c3d-1111-4222-8333-444455556666", "0a1b2c3d-1111-4222-8333-444455557777"
BEHIND = 5.0
"""Seconds of the node's clock behind this host's."""
AGENT = "system:serviceaccount:last-gasp:seawall-agent"
REPORTS = "nodereports.seawall.internal"


def stamp(seconds: float) -> str:
    """Of the audit log; ``GO`` is 2023-11-14T22:13:20Z."""
    return f"2023-11-14T22:13:{20 + seconds:09.6f}Z"


def report(seconds: float, *named: tuple[str, bool], status: int = 200) -> Request:
    rows = [{"podUID": uid, "isProved": is_proved} for uid, is_proved in named]
    body = {"report": {"distress": {"culprits": rows}}}
    return Request(AGENT, "patch", REPORTS, "", "thrash-1", status, stamp(seconds), body)


def seen(*requests: Request, **more: Any) -> Seen:
    """A node that panics 20 s after the hog's start, and whose memory runs out after 3."""
    own = GO - BEHIND
    lines = [
        (GO, f"hog {HOG}"), (GO, "=== go"), (GO + 0.3, f"clock {own + 0.1:.3f} available 9"),
        (GO + 1, f"clock {own + 1:.3f} available 9"), (GO + 2, "short"),
        (GO + 4, f"page {own + 3:.3f} near running-out 90"),
        (GO + 5, "page 169999[   1.0] Out of memory: Killed process 7 (python3.11)"),
    ]  # fmt: skip
    told: dict[str, Any] = {"ended": "panic", "died_at": GO + 20, "not_ready_at": None}
    return Seen(drawn("thrash", 1), lines, requests=list(requests), **{**told, **more})


def test_what_came_before_the_end_counts() -> None:
    row = row_of(seen(report(4), report(6, (HOG, False)), report(9, (HOG, True)), report(21)))
    assert (row["is_delivered"], row["delivered_at"], row["took"]) == (True, 4.0, 1.0)
    assert (row["culprit"], row["named_at"], row["reports"]) == ("proved", 6.0, 4)
    assert (row["died_after"], row["short_at"], row["kernel_kills"]) == (20.0, 2.0, 1)
    assert (row["others"], row["oom_by"]) == ({}, "")


def test_who_asked_for_memory_when_the_kernel_panicked() -> None:
    death = seen(report(6))
    death.lines += [
        (GO + 20, "[   50.1] Kernel panic - not syncing: system-wide panic_on_oom is enabled"),
        (GO + 20, "[   50.1] CPU: 0 PID: 152 Comm: python3.11 Tainted: G  OE 6.1.0-56-amd64 #1"),
    ]  # fmt: skip
    assert row_of(death)["oom_by"] == "python3.11"


@pytest.mark.parametrize("late", [report(20.5, (HOG, True)), report(4, (HOG, True), status=401)])
def test_what_came_later_or_was_refused_does_not(late: Request) -> None:
    row = row_of(seen(late))
    assert (row["is_delivered"], row["culprit"], row["took"]) == (False, "", None)
    assert "=== go" in row["console"]


def test_a_silent_node_that_goes_on_telling() -> None:
    row = row_of(seen(report(6), report(25), report(35), ended="silent", not_ready_at=GO + 20))
    assert row["after_not_ready"] == 2
    assert row["last_word"] == -15.0


def test_a_node_that_lives_is_no_death() -> None:
    alive = row_of(seen(report(6), ended="alive"))
    assert conclude([alive]) == 1
    assert conclude([alive, row_of(seen(report(6)))]) == 0


def test_it_fails_below_the_aim_and_where_an_innocent_is_accused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told, untold = row_of(seen(report(6, (HOG, True)))), row_of(seen())
    assert conclude([told] * 19 + [untold]) == 0
    assert conclude([told] * 18 + [untold] * 2) == 1
    assert conclude([row_of(seen(report(6, (HOG, True), (OTHER, False))))]) == 0
    capsys.readouterr()
    assert conclude([row_of(seen(report(6, (HOG, True), (OTHER, True))))]) == 1
    assert "others than the hog were said to be proved: thrash 1" in capsys.readouterr().out


def test_its_line() -> None:
    named = row_of(seen(report(6, (HOG, True)), report(30), ended="silent", not_ready_at=GO + 25))
    words = line("thrash", [named, row_of(seen())])
    assert "2 deaths,   1 told before (50%" in words
    assert "hog named in 1, proved in 1, others too in 0; 3.00 s (at most 3.00)" in words
    assert "still telling 1 of 1" in words


def test_the_kinds_come_in_turn() -> None:
    deaths = wanted(42)
    assert [[one.kind for one in deaths].count(kind) for kind in KINDS] == [14, 14, 7, 7]
    assert len({one.id for one in deaths}) == 42
    assert all((one.after_seconds is None) == (one.kind in KINDS[:2]) for one in deaths)


def test_whose_requests_are_counted() -> None:
    event = {"regarding": {"name": "thrash-1"}}
    its = Request(AGENT, "create", "events.events.k8s.io", "", "x", 201, stamp(1), event)
    assert is_of(its, "thrash-1")
    assert not is_of(its, "thrash-2")
    assert is_of(report(1), "thrash-1")
    assert not is_of(Request("admin", "patch", REPORTS, "", "thrash-1", 200, "", {}), "thrash-1")
