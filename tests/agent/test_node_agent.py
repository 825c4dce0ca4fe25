"""The loop on pages that the guard's own code wrote; the server does all that goes wrong."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.agent.api_server import OK, Answer, Answers, Request, api_server
from tests.agent.pages import HERE, MIB, POD_UID, Pages
from tests.guard.telling import HOSTILE, group

from seawall.agent.api_connection import ApiConnection, server_of
from seawall.agent.node_agent import AgentPace, NodeAgent
from seawall.agent.page_watch import PageWatch

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
QUICK = AgentPace(
    look=0.02, busy_look=0.02, silent=0.5, impaired=0.2, calm=0.4, conditions=0.3, report=0.3,
    urgent=0.05, event=0.5, warm=0.3, retry_most=0.3, refused=5.0, hello=0.2,
)  # fmt: skip


class Run:
    """An agent whose loop this thread turns."""

    def __init__(self, answers: Answers, folder: Path, pages: Pages, pace: AgentPace) -> None:
        self.answers, self.pages = answers, pages
        self.token = folder / "token"
        self.token.write_text("first-token\n")
        server = server_of(
            f"https://127.0.0.1:{answers.port}", answers.certificate, str(self.token), "node-7"
        )
        self.said: list[str] = []
        self.connection = ApiConnection(server)
        watch = PageWatch(str(pages.folder), HERE, time.monotonic())
        self.agent = NodeAgent(watch, self.connection, self.said.append, pace)

    def turn(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(self.agent.turn(time.monotonic()))

    def until(self, done: Callable[[], object], seconds: float = 5.0) -> None:
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until, ("not within time", self.said, self.kinds())
            time.sleep(self.agent.turn(time.monotonic()))

    def kinds(self) -> list[str]:
        return [one.kind for one in self.answers.requests]

    def reports(self) -> list[dict[str, Any]]:
        return [one.body["report"] for one in self.answers.of("nodereports") if one.body]

    def conditions(self) -> list[dict[str, Any]]:
        return [
            row for one in self.answers.of("status") for row in one.body["status"]["conditions"]
        ]

    def state(self) -> dict[str, tuple[str, str]]:
        """As the API server has it by now."""
        return {row["type"]: (row["status"], row["reason"]) for row in self.conditions()}


@contextmanager
def running(
    tmp_path: Path, reply: Callable[[Request], Answer] | None = None, pace: AgentPace = QUICK
) -> Iterator[Run]:
    with api_server(tmp_path, reply) as answers:
        run = Run(answers, tmp_path, Pages(tmp_path / "run"), pace)
        try:
            yield run
        finally:
            run.connection.close()


def test_in_peace_nothing_is_written_and_no_connection_stays(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        for _ in range(5):
            run.pages.peace()
            run.turn(0.1)
        run.pages.write("near", residual_grown_bytes=0)  # near its limit, and it does not shrink
        run.turn(0.3)
        assert not run.answers.writes()
        assert run.connection.is_open  # for what may come
        assert "livez" in run.kinds() or (run.turn(0.3) is None and "livez" in run.kinds())
        run.pages.peace()
        run.turn(0.2)
        assert not run.connection.is_open
        assert not run.answers.writes()


def test_distress_is_told_at_once_with_the_culprit(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.peace()
        run.turn(0.2)
        run.pages.decide()
        run.pages.short(decided=True)
        began = time.monotonic()
        run.until(lambda: len(run.answers.writes()) >= 3)
        assert time.monotonic() - began < 1.0
        assert [one.kind for one in run.answers.writes()[:3]] == ["nodereports", "status", "events"]
        report, status, event = run.answers.writes()[:3]
        assert report.path == (
            "/apis/seawall.internal/v1alpha1/nodereports/node-7?fieldManager=seawall-agent&force=true"
        )
        assert report.headers["Content-Type"] == "application/apply-patch+yaml"
        distress = report.body["report"]["distress"]
        culprit = distress["culprits"][0]
        assert culprit == {
            "podUID": POD_UID, "namespace": "shop", "pod": "cart", "container": "worker",
            "certainBytes": 1400 * MIB, "mostBytes": 1600 * MIB, "isProved": True,
        }  # fmt: skip
        assert len(distress["culprits"]) == 1
        assert distress["headroomBytes"] == 200 * MIB
        assert distress["headroomSeconds"] == 10.0
        assert report.body["report"]["bootID"] == HERE
        assert report.body["report"]["guard"]["canKill"] is True
        assert status.path == "/api/v1/nodes/node-7/status?fieldManager=seawall-agent"
        rows = {row["type"]: row for row in status.body["status"]["conditions"]}
        assert set(rows) == {"MemoryShort", "KernelMemoryUncounted", "MemoryLivelock"}
        assert all(row["status"] == "True" for row in rows.values())
        assert "shop/cart/worker took 1.4 GiB of it, proved" in rows["MemoryShort"]["message"]
        assert event.body["regarding"]["name"] == "node-7"
        assert event.body["reason"] == "MemoryRunningOut"


def test_who_is_not_proved_is_said_to_be_possible_and_an_innocent_is_not_named(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as run:
        innocent = group("shop/web/nginx", "/kubepods/besteffort/pod1-2-3/" + "cd" * 32,
                         outside=90 * MIB, most=100 * MIB)  # fmt: skip
        run.pages.short(top=[group(outside=1000 * MIB, most=1500 * MIB), innocent])
        run.until(run.reports)
        culprits = run.reports()[0]["distress"]["culprits"]
        assert [(one["podUID"], one["isProved"]) for one in culprits] == [(POD_UID, False)]
        assert "not proved" in run.conditions()[0]["message"]
        # Anonymous memory is what ran out: no uncounted memory grew, so nobody is named.
        run.pages.short(residual_grown_bytes=60 * MIB, top=[group(outside=60 * MIB)])
        count = len(run.reports())
        run.until(lambda: len(run.reports()) > count)
        assert run.reports()[-1]["distress"]["culprits"] == []


def test_a_proof_counts_though_another_decision_came_behind_it(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.decide()
        run.pages.short(decided=True, trigger="over_limit")
        run.until(run.reports)
        assert [one["isProved"] for one in run.reports()[0]["distress"]["culprits"]] == [True]


def test_a_later_decision_that_proves_nobody_takes_the_proof_back(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.decide()
        run.pages.decide(is_source=False)
        run.pages.short(decided=True)
        run.until(run.reports)
        assert [one["isProved"] for one in run.reports()[0]["distress"]["culprits"]] == [False]


def test_who_was_proved_in_a_shortage_that_is_over_is_not_blamed_for_the_next(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as run:
        run.pages.decide()
        run.pages.short(decided=True)
        run.until(run.reports)
        run.pages.peace(decided=True)
        run.until(lambda: "distress" not in run.reports()[-1])
        run.turn(0.2)
        run.pages.short(decided=True)
        run.until(lambda: "distress" in run.reports()[-1])
        assert [one["isProved"] for one in run.reports()[-1]["distress"]["culprits"]] == [False]


def test_what_could_not_be_read_is_left_out(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.short(residual_bytes=None, slope_bytes_per_second=0.0)
        run.until(run.reports)
        distress = run.reports()[0]["distress"]
        assert "uncountedBytes" not in distress
        assert "headroomSeconds" not in distress


def test_recovery_is_told_once_and_then_it_is_silent(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.short()
        run.until(lambda: len(run.reports()) >= 2)  # it goes on telling
        run.pages.peace()
        run.until(lambda: run.state().get("MemoryShort") == ("False", "MemoryIsAmple"))
        assert {status for status, _ in run.state().values()} == {"False"}
        assert "distress" not in run.reports()[-1]
        run.turn(0.5)
        count = len(run.answers.writes())
        run.turn(1.0)
        assert len(run.answers.writes()) == count
        assert not run.connection.is_open


def test_patches_of_the_status_keep_their_distance(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.short(protected_stall=0.0, residual_grown_bytes=0)
        run.until(lambda: run.answers.of("status"))
        run.pages.short()  # two more conditions, at once
        run.turn(1.0)
        times = [one.at for one in run.answers.of("status")]
        assert len(times) >= 2
        assert min(b - a for a, b in pairwise(times)) >= QUICK.conditions * 0.9


def test_a_guard_that_is_not_there_is_said_once(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.turn(0.3)
        assert not run.answers.writes()
        run.until(lambda: len(run.answers.writes()) >= 3)
        run.turn(1.2)
        assert run.state() == {"SeawallGuardImpaired": ("True", "GuardSilent")}
        assert len(run.answers.writes()) == 3
        assert run.reports()[0]["guard"] == {"state": "silent"}
        assert "distress" not in run.reports()[0]


def test_a_guard_that_falls_silent_in_a_shortage_leaves_it_unknown(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.short()
        run.until(lambda: "MemoryShort" in run.state())
        run.agent.watch._changed_at -= 100
        run.until(lambda: run.state()["MemoryShort"] == ("Unknown", "GuardSilent"))
        assert run.state()["SeawallGuardImpaired"] == ("True", "GuardSilent")
        assert "distress" in run.reports()[-1]  # what was last known of it


@pytest.mark.parametrize(
    ("page", "reason"),
    [({"mode": "enforce", "can_kill": "CANNOT KILL: no right"}, "GuardCannotKill"),
     ({"total_bytes": 0, "blind": ["/proc/meminfo: Permission denied"]}, "GuardBlind")],
)  # fmt: skip
def test_an_impaired_guard_is_told(tmp_path: Path, page: dict[str, Any], reason: str) -> None:
    with running(tmp_path) as run:
        run.pages.peace(**page)
        run.until(lambda: run.state().get("SeawallGuardImpaired") == ("True", reason))
        assert "MemoryShort" not in run.state()
        run.pages.peace()
        run.until(lambda: run.state()["SeawallGuardImpaired"] == ("False", "GuardIsWell"))


def test_one_that_only_observes_and_cannot_kill_is_not_impaired(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.peace(can_kill="CANNOT KILL: no right")
        run.turn(0.6)
        assert not run.answers.writes()


def test_a_new_token_is_taken_at_the_next_request(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.short()
        run.until(run.reports)
        run.token.write_text("second-token-that-is-longer\n")
        count = len(run.answers.requests)
        run.until(lambda: len(run.answers.requests) > count)
        assert run.answers.requests[0].headers["Authorization"] == "Bearer first-token"
        assert run.answers.requests[-1].headers["Authorization"] == (
            "Bearer second-token-that-is-longer"
        )
        assert run.answers.connections == 1  # it did not have to begin anew


def test_a_refused_token_is_read_anew(tmp_path: Path) -> None:
    def reply(one: Request) -> Answer:
        return OK if one.headers["Authorization"] == "Bearer other-token" else (401, {}, {})

    with running(tmp_path, reply) as run:
        stat = run.token.stat()
        run.pages.short()
        run.turn(0.3)
        run.token.write_text("other-token\n")  # as long, and with the same time
        import os

        os.utime(run.token, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        run.until(lambda: run.agent.counts["report", "delivered"])


def test_a_token_with_a_line_break_sends_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.token.write_bytes(b"a\r\nX-Other: b")
        run.pages.short()
        run.turn(0.5)
        assert not run.answers.requests
        assert any("expected a token on one line" in words for words in run.said)


@pytest.mark.parametrize("status", [403, 404, 422])
def test_a_kind_that_is_refused_keeps_no_other_from_being_told(tmp_path: Path, status: int) -> None:
    def reply(one: Request) -> Answer:
        refused = {"message": "no such thing \x1b[2J"}
        return (status, {}, refused) if one.kind == "nodereports" else OK

    with running(tmp_path, reply) as run:
        run.pages.short()
        run.until(lambda: "MemoryShort" in run.state() and run.answers.of("events"))
        run.turn(0.3)
        assert len([one for one in run.answers.of("nodereports") if one.verb == "PATCH"]) == 1
        assert run.agent.counts["report", "refused"] == 1
        assert any(f"refused for 5 s: report: {status} no such thing" in one for one in run.said)
        assert not any("\x1b" in words for words in run.said)


@pytest.mark.parametrize(
    "answer", [(409, {}, {}), (500, {}, b"<html>"), (429, {"Retry-After": "1"}, {}), (503, {}, {})]
)
def test_what_failed_is_sent_again(tmp_path: Path, answer: Answer) -> None:
    until = time.monotonic() + 1.5

    with running(tmp_path, lambda _: answer if time.monotonic() < until else OK) as run:
        run.pages.short()
        run.until(lambda: run.agent.counts["report", "delivered"], 8)
        assert run.agent.counts["report", "failed"]
        failed = [one.at for one in run.answers.writes() if one.at < until]
        assert len(failed) <= (2 if answer[0] == 429 else 12)
        sequences = [one["sequence"] for one in run.reports()]
        assert sequences == sorted(sequences)


def test_eight_reports_wait_while_nobody_answers_the_first_among_them(tmp_path: Path) -> None:
    is_there = [False]

    def reply(_: Request) -> Answer:
        if not is_there[0]:
            raise ConnectionError
        return OK

    with running(tmp_path, reply) as run:
        run.pages.short()
        run.until(lambda: run.agent.outbox.dropped >= 3, 20)
        is_there[0] = True
        tried = len(run.answers.requests)
        run.until(lambda: not run.agent.outbox.reports)
        arrived = [one.body["report"]["sequence"] for one in run.answers.requests[tried:]
                   if one.kind == "nodereports" and one.body]  # fmt: skip
        assert len(arrived) >= 8
        assert arrived == sorted(arrived)
        assert arrived[0] == run.reports()[0]["sequence"]  # how it began
        assert "the API server takes what is told again" in run.said


def test_a_server_that_hangs_costs_one_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seawall.agent.api_connection.REQUEST_SECONDS", 0.5)
    hangs = [True]

    def reply(one: Request) -> Answer:
        if hangs[0] and one.verb != "GET":
            hangs[0] = False
            time.sleep(2)
        return OK

    with running(tmp_path, reply) as run:
        run.pages.short()
        began = time.monotonic()
        run.until(lambda: run.agent.counts["report", "delivered"])
        assert time.monotonic() - began < 2
        time.sleep(1.6)


def test_an_idle_connection_that_was_closed_is_opened_anew_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    with running(tmp_path, lambda _: (200, {"Connection": "close"}, {})) as run:
        run.pages.short()
        run.until(lambda: run.agent.counts["report", "delivered"] >= 2)
        assert run.agent.counts["report", "failed"] == 0


def test_a_server_that_nobody_vouches_for_is_told_nothing(tmp_path: Path) -> None:
    from tests.agent.api_server import certificate

    with running(tmp_path) as run:
        other = tmp_path / "other"
        other.mkdir()
        crt, _ = certificate(other)
        run.connection.server = run.connection.server._replace(ca_file=crt)
        run.pages.short()
        run.turn(0.5)
        assert not run.answers.requests
        assert any("certificate" in words.lower() for words in run.said)


def test_what_an_earlier_agent_left_is_taken_back_in_peace(tmp_path: Path) -> None:
    node = {"status": {"conditions": [
        {"type": "MemoryShort", "status": "True", "reason": "MemoryRunningOut"},
        {"type": "Ready", "status": "True", "reason": "KubeletReady"},
    ]}}  # fmt: skip

    with running(tmp_path, lambda one: (200, {}, node) if one.kind == "node" else OK) as run:
        run.pages.peace()
        run.until(lambda: run.answers.of("status"))
        assert run.state() == {"MemoryShort": ("False", "MemoryIsAmple")}
        run.turn(0.5)
        assert len(run.answers.writes()) == 1


def test_a_death_is_told_once_for_all_agents(tmp_path: Path) -> None:
    kept: list[Any] = []

    def reply(one: Request) -> Answer:
        if one.kind == "nodereports" and one.verb == "GET":
            return (200, {}, kept[-1]) if kept else (404, {}, {"message": "not found"})
        if one.kind == "nodereports":
            kept.append(one.body)
        return OK

    death = {"bootID": "dead", "at": "2026-11-23T10:00:31.000000Z", "ended": "Unclean",
             "record": [], "samples": []}  # fmt: skip
    with running(tmp_path, reply) as run:
        run.pages.peace()
        run.agent.died_before(death)
        run.until(lambda: kept)
        assert kept[0]["report"]["lastDeath"] == death
        again = Run(run.answers, tmp_path, run.pages, QUICK)
        again.agent.died_before(death)
        again.turn(0.5)
        assert len(kept) == 1
        # And it stays in what is applied later, or an apply would take it away.
        run.pages.short()
        again.until(lambda: len(kept) > 1)
        assert kept[-1]["report"]["lastDeath"] == death
        again.connection.close()


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"[" * 200_000, b'{"schema":"seawall.guard-status-page/1"}', b"{}",
     b'{"schema":"seawall.guard-status-page/1","can_kill":true,"host":{"boot_id":7},"state":[1]}',
     b'{"schema":"seawall.guard-status-page/1","can_kill":true,"host":{},"total_bytes":1e999}'],
)  # fmt: skip
def test_a_page_that_is_none_is_a_silent_guard(tmp_path: Path, data: bytes) -> None:
    with running(tmp_path) as run:
        run.pages.raw(data)
        run.until(lambda: run.state().get("SeawallGuardImpaired") == ("True", "GuardSilent"))
        assert "MemoryShort" not in run.state()


def test_a_page_of_another_boot_is_none(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.short(boot_id="5eed0000-0000-4000-8000-000000000000")
        run.turn(0.3)
        assert not run.answers.writes()


def test_hostile_names_are_cut_and_steer_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.pages.decide(name=HOSTILE)
        run.pages.short(decided=True, top=[group(HOSTILE, outside=1900 * MIB)])
        run.until(lambda: run.answers.of("events"))
        report = run.answers.of("nodereports")[0]
        assert int(report.headers["Content-Length"]) <= 16 << 10
        text = repr(report.body) + repr(run.conditions()) + repr(run.answers.of("events")[0].body)
        assert "\\x1b" not in text.replace("\\\\x1b", "")
        assert "\u202e" not in text


def test_a_pod_that_a_container_made_up_is_nobody(tmp_path: Path) -> None:
    """It may give its own cgroups any name: also one of the kubelet's, with another pod's uid."""
    inside = f"/kubepods/pod{POD_UID}/{'ab' * 32}/kubepods/pod9999-9/{'cd' * 32}"
    sliced = f"/kubepods/pod{POD_UID}/{'ab' * 32}/kubepods-pod9999_9.slice/crio-{'cd' * 32}.scope"
    with running(tmp_path) as run:
        run.pages.short(top=[group("a/b/c", path, outside=1900 * MIB, most=1900 * MIB)
                             for path in (inside, sliced)])  # fmt: skip
        run.until(run.reports)
        assert run.reports()[0]["distress"]["culprits"] == []
