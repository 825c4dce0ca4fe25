# SPDX-License-Identifier: Apache-2.0
"""The guard's decisions in the past tense, from files that the guard itself wrote."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.films.film import Film
from tests.films.scripts import Cast, random_film, rings_fast, two_late, unproved
from tests.guard.telling import BOOT, HOSTILE, outcome, verdict
from tests.replay.report_nodes import lines_of, watched

from seawall.accounts.log_episodes.guard_events import guard_events
from seawall.accounts.log_episodes.log_events import events_of, recent_events
from seawall.accounts.log_episodes.recent_events import RecentEvents
from seawall.actions.orders import Outcome, Step
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
from seawall.guard.verdict import DecisionUpdate, Verdict
from seawall.host.event_log import probe
from seawall.readings.event_lines import EventLines, lines_told
from seawall.readings.event_log.event_log import read_events
from seawall.readings.event_log.log_line import LogClock

UNIX = 1_790_000_000.0
LEFT = "700 MiB have to come back within 4 s"


class Node:
    """A tree with the guard's own files in it, and what its kernel was told."""

    def __init__(self, root: Path, mode: Literal["observe", "enforce"] = "enforce") -> None:
        self.root, folder = root, root / "run/seawall"
        folder.mkdir(parents=True)
        self.kmsg = root / "kmsg"
        self.kmsg.touch()
        paths = Paths(str(folder), kmsg=str(self.kmsg), pmsg=str(root / "none"))
        self.teller = Teller(Settings(mode=mode), paths, BOOT, None)
        self.teller.open()

    def lately(self, *, with_journal: bool = True, with_kmsg: bool = True) -> RecentEvents:
        """As ``why`` reads it: by the probe, beside the kernel's log."""
        told = lines_told(probe.event_log("1800", self._open))
        assert isinstance(told, EventLines)
        guard = [line for one in told.sources if one.name == "guard" for line in one.lines]
        logs = {}
        if with_kmsg:
            lines = self.kmsg.read_bytes().splitlines()
            logs["/dev/kmsg"] = [b"6,1,10500000,-;" + line[3:] for line in lines]
        clock = LogClock(time.time() - 12.0, time.time())
        events = guard_events(guard if with_journal else (), "guard")
        return recent_events(logs, clock, 1800.0, (), events)

    def _open(self, path: str, flags: int) -> int:
        return os.open(f"{self.root}{path}", flags)


def act(node: Node, *steps: Outcome, what: Verdict | None = None) -> None:
    node.teller.verdict(what or verdict())
    for step in steps:
        node.teller.outcome(step)


def step(name: str, step: Step = "kill", **changes: Any) -> Outcome:
    one = outcome(**changes)
    target = one.order.target._replace(name=name, path=f"/kubepods/{name[:40]}")
    order = one.order._replace(step=step, target=target)
    return one._replace(order=order)


@pytest.mark.parametrize(("journal", "kmsg"), [(True, True), (True, False), (False, True)])
def test_a_decision_is_one_event_and_begins_with_the_deed(
    tmp_path: Path, journal: bool, kmsg: bool
) -> None:
    node = Node(tmp_path)
    act(node, step("ml/llm-0", "freeze"), step("ml/llm-0"))
    node.teller.update_decision(
        DecisionUpdate(verdict().decision, 100.5, None, 1 << 30, "1.0 GiB came back in 0.4 s")
    )
    recent = node.lately(with_journal=journal, with_kmsg=kmsg)
    assert [event.sentence for event in recent.events] == [f"the guard killed ml/llm-0: {LEFT}"]
    assert any("1.0 GiB came back" in text for text in recent.events[0].details)
    assert recent.events[0].decision == verdict().decision


def test_what_was_only_observed_would_have_been(tmp_path: Path) -> None:
    node = Node(tmp_path, "observe")
    act(node, step("ml/llm-0", is_observed=True))
    assert [e.sentence for e in node.lately().events] == [
        f"the guard would have killed ml/llm-0: {LEFT}"
    ]


def test_many_are_counted_and_a_failure_is_no_deed(tmp_path: Path) -> None:
    node = Node(tmp_path)
    act(node, *[step(f"ml/llm-{n}") for n in range(5)])
    failed = step("db/main", is_done=False, processes=0, problem="EPERM")
    failed = failed._replace(order=failed.order._replace(decision="5eed0000-0002"))
    act(node, failed, what=verdict()._replace(decision="5eed0000-0002"))
    events = {event.decision[-1]: event for event in node.lately().events}
    assert events["1"].sentence.startswith("the guard killed ml/llm-0, ml/llm-1 and 3 more: ")
    assert events["1"].count == 5
    assert events["2"].sentence.startswith("the guard could not kill db/main: ")


def test_a_decision_stays_whole_when_the_journal_is_turned(tmp_path: Path) -> None:
    node = Node(tmp_path)
    act(node, step("ml/llm-0"))
    folder = tmp_path / "run/seawall"
    os.rename(folder / "decisions.jsonl", folder / "decisions.1.jsonl")
    (folder / "decisions.jsonl").write_bytes(b"")
    sentences = [e.sentence for e in node.lately(with_kmsg=False).events]
    assert sentences == [f"the guard killed ml/llm-0: {LEFT}"]


def test_a_journal_that_ends_with_the_order(tmp_path: Path) -> None:
    """The node died in between: it is not said that somebody was killed."""
    node = Node(tmp_path)
    node.teller.verdict(verdict())
    (event,) = node.lately(with_kmsg=False).events
    assert event.sentence == f"the guard decided to kill shop/cart/worker: {LEFT}"


def test_a_sentence_alone_tells_the_deed_too() -> None:
    """Of an older bundle, or of a kernel's log that left the rest out."""
    sentence = (
        "50.0 MiB left of 1.5 GiB, 160 MiB less every second: 0.3 s (free pages are under the low "
        "watermark). ns/hog is 205 MiB over its limit of 400 MiB: it holds 600 MiB outside its "
        "cgroup (packet rings (PACKET_DIAG)): it is killed at once, 605 MiB should come back"
    )
    lines = [f"6,1,10500000,-;seawall-guard: 1a2b3c4d-0007: {sentence}".encode()]
    told = events_of(read_events(lines, LogClock()))
    assert [event.sentence for event in told] == [
        "the guard decided to kill ns/hog: 50.0 MiB left of 1.5 GiB"
    ]


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    node = Node(tmp_path)
    act(node, step(HOSTILE, problem=HOSTILE), what=verdict()._replace(sentence=HOSTILE))
    (event,) = node.lately().events
    assert event.sentence.startswith("the guard killed ")
    assert len(event.sentence) < 300
    for line in (b"[1]", b'{"kind":"outcome","sentence":7}', b"[" * 100_000, b'{"kind":"told"}'):
        assert not list(guard_events([line], "guard"))


@pytest.mark.parametrize("script", [rings_fast, two_late, unproved])
@pytest.mark.parametrize("seed", range(3))
def test_every_decision_of_a_film(script: Callable[[Cast], Film], seed: int) -> None:
    """What the real judge says of made-up nodes; nobody acted, so nothing was done."""
    lines = lines_of(watched(random_film(seed, script, "burstable")), BOOT, UNIX)
    told = {b.split(b'"decision":"')[1][:13] for b in lines if b'"kind":"verdict"' in b}
    events = list(guard_events(lines, "guard"))
    assert {event.decision.encode() for event in events} == told
    assert len(events) == len(told)
    for event in events:
        assert event.sentence.startswith(("the guard would have ", "the guard only reports: "))
