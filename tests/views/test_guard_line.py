"""What ``why`` says of the guard first: live, from a bundle, without a guard, of an old one."""

import json

import pytest
from tests.case_host import parse_case

from seawall.host.host import Unread
from seawall.readings.guard_status import GuardStatus, LastDecision
from seawall.readings.guard_status import read as read_status
from seawall.views.guard_line import guard_now, guard_words
from seawall.views.terminal import Console

LAST = LastDecision(
    decision="5eed0001-0003", at="2026-11-21T10:00:00Z", trigger="node_short", how="acted",
    sentence="killed lab/ring/main, which holds 900 MiB of packet rings",
    result="880 MiB came back",
)  # fmt: skip
STATUS = GuardStatus(
    boot_id="5eed", unix_seconds=1000.0, since_unix_seconds=10.0, pid=7, mode="observe",
    mode_why="", state="peace", can_kill=True, can_kill_words="proved", watcher="heard", config="",
    headroom_bytes=1 << 30, headroom_seconds=None, residual_bytes=0, residual_grown_bytes=0,
    decisions=0, kills=0, returned_bytes=0, last_decision=None, top=(), blind=(), problems=(),
    others=(), scope=("/kubepods",),
)  # fmt: skip


def changed(**values: object) -> GuardStatus:
    fields = {name: getattr(STATUS, name) for name in GuardStatus.__slots__}
    return GuardStatus(**(fields | values))


def text(status: GuardStatus | Unread, now: float | None = 1001.0, every: float = 0.0) -> str:
    words = guard_words(status, now, every)
    return "\n".join(Console().wrap(f"guard: {words}", "       ", "")) if words else ""


def test_one_short_line_in_peace() -> None:
    assert text(STATUS) == "guard: observes only, in peace"
    assert text(changed(mode="enforce")) == "guard: enforces, in peace"
    assert text(changed(state="short")) == "guard: observes only, THE NODE IS SHORT OF MEMORY"


def test_a_guard_that_cannot_kill_says_so_where_it_should() -> None:
    cannot = changed(mode="enforce", can_kill=False, can_kill_words="Operation not permitted")
    assert text(cannot).endswith("; IT CANNOT KILL: Operation not permitted")
    assert "CANNOT" not in text(changed(can_kill=False))


def test_an_old_page_is_not_believed() -> None:
    assert text(STATUS, 1030.0) == "guard: observes only, in peace"
    assert text(STATUS, 1300.0) == (
        "guard: observes only, in peace, but it wrote that 5 min ago: it has ended, or it\n"
        "       hangs"
    )
    assert text(STATUS, None) == "guard: observes only, in peace, of when is not known"


def test_where_a_record_keeps_it_seldom_its_age_alone_is_no_fault() -> None:
    assert text(STATUS, 1030.0, 60.0) == "guard: observes only, in peace"
    assert " ".join(text(STATUS, 1089.0, 60.0).split()) == (
        "guard: observes only, in peace 89 s before; what it said later is not in this record"
    )
    assert "it has ended, or it" in text(STATUS, 1091.0, 60.0)
    olds = [guard_now(STATUS, now, 60.0) for now in (1089.0, 1091.0)]
    assert [found and found.is_old for found in olds] == [False, True]


def test_one_that_was_stopped_does_not_hang() -> None:
    assert text(changed(state="stopped")) == "guard: observes only, stopped"
    assert text(changed(state="stopped"), 4000.0) == "guard: observes only, stopped 50 min ago"


def test_the_last_decision_in_80_columns() -> None:
    shown = text(changed(mode="enforce", kills=1, returned_bytes=880 << 20, last_decision=LAST))
    assert " ".join(shown.split()) == (
        "guard: enforces, in peace; 1 kill, 880 MiB came back; last decision 5eed0001-0003 at "
        "2026-11-21T10:00:00Z, acted: killed lab/ring/main, which holds 900 MiB of packet rings"
    )
    assert max(map(len, shown.splitlines())) <= 80


def test_hostile_words_cannot_steer_a_terminal() -> None:
    shown = text(changed(state="\x1b[2J", last_decision=LAST))
    assert "\x1b" not in shown


@pytest.mark.parametrize("why", ["absent", "refused", "not_captured"])
def test_without_a_guard_nothing_is_said(why: str) -> None:
    nothing = Unread("/run/seawall/status.json", why)  # type: ignore[arg-type]
    assert text(nothing) == ""
    assert guard_now(nothing, 1.0) is None


def test_a_page_that_is_none_is_named() -> None:
    shown = text(Unread("/run/seawall/status.json", "malformed", "expected JSON"))
    assert shown == "guard: /run/seawall/status.json: expected JSON"


def test_from_the_future_it_is_of_when_is_not_known() -> None:
    """The clock was set back since: a guard that hangs must not look fresh."""
    assert text(changed(), 999.0) == "guard: observes only, in peace"
    assert text(changed(), 400.0) == "guard: observes only, in peace, of when is not known"
    found = guard_now(changed(), 400.0)
    assert found is not None
    assert (found.age_seconds, found.is_old) == (None, True)


def test_for_programs() -> None:
    found = guard_now(changed(last_decision=LAST), 1300.0)
    assert found is not None
    assert (found.age_seconds, found.is_old) == (300.0, True)
    assert found.status.last_decision == LAST


def test_what_the_guard_writes_is_what_is_read() -> None:
    """Through the protocol, so a bundle that was captured on a node with a guard has it."""
    page = {
        "schema": "seawall.guard-status-page/1", "host": {"boot_id": "5eed"},
        "unix_seconds": 1000.0,
        "since_unix_seconds": 10.0, "pid": 7, "mode": "observe", "mode_why": "", "state": "peace",
        "can_kill": True, "can_kill_words": "proved", "watcher": "heard", "config": "",
        "headroom_bytes": 1 << 30, "headroom_seconds": None, "residual_bytes": 0,
        "residual_grown_bytes": 0, "decisions": 0, "kills": 0, "returned_bytes": 0,
        "last_decision": None, "top": [], "blind": [], "problems": [], "others": [],
        "scope": ["/kubepods"],
    }  # fmt: skip
    case = f"""verdict: quiet
headline: x

=== /run/seawall/status.json
{json.dumps(page)}
=== /proc/sys/kernel/random/boot_id
5eed
"""
    host = parse_case(case.encode()).rounds[0]
    assert read_status(host) == STATUS
