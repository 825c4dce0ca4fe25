"""Pods of the node's quarantine list: ended when they run, where mode and file say so."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.guard.judge_scene import CALM, done, group_of, scene, settings_of

from seawall.guard.judge.judge import Judge
from seawall.guard.order_files import OrderFiles, QuarantinedPods
from seawall.guard.quarantine_desk import QuarantineDesk
from seawall.guard.tell.errands import kept_list
from seawall.guard.tick_facts import NOT_TOLD, Group, Node
from seawall.guard.verdict import Verdict
from seawall.role_claims import NOT_NAMED

POD = "11111111-0000-0000-0000-000000000001"
ALLOWS = {"mode": "enforce", "quarantine": True}


def listed(*pods: str, seconds: float = 600.0) -> QuarantinedPods:
    ends = time.time() + seconds
    return QuarantinedPods(dict.fromkeys(pods, "q"), dict.fromkeys(pods, ends))


def hog(**values: Any) -> Group:
    return group_of("hog", 30, **{"pod": POD, **values})


def step(judge: Judge, desk: QuarantineDesk, node: Node, *groups: Group) -> Verdict | None:
    found = scene(*groups)
    assert judge.step(node, found) is None
    verdict = desk.step(node, found, judge)
    for order in verdict.orders if verdict else ():
        judge.learn(done(order), node)
    return verdict


def desk_of(pods: QuarantinedPods) -> QuarantineDesk:
    desk, files = QuarantineDesk(), OrderFiles("/nowhere")
    files.quarantined = pods
    desk.take(files)
    return desk


def test_a_listed_pod_is_killed_when_it_runs_and_nobody_else() -> None:
    judge, desk = Judge(settings_of(**ALLOWS), "5eedb007-0"), desk_of(listed(POD))
    other = group_of("web", 30, pod="22222222")
    assert step(judge, desk, CALM, other, hog(processes=0)) is None  # it does not run yet
    verdict = step(judge, desk, CALM, other, hog())
    assert verdict is not None
    assert [(o.step, o.target.name, o.why) for o in verdict.orders] == [
        ("kill", "ns/hog", "quarantined")
    ]
    assert verdict.sentence == (
        "ns/hog is in quarantine (q) and may not run on this node: it is killed, as a whole"
    )
    assert step(judge, desk, CALM, other, hog()) is None  # never twice
    again = step(judge, desk, CALM._replace(seconds=1001.0), other, hog(inode=999))
    assert again is not None  # the kubelet starts it anew
    assert again.orders


def test_an_observing_guard_says_what_it_would_do_once() -> None:
    judge = Judge(settings_of(mode="observe"), "5eedb007-0")
    desk = desk_of(listed(POD))
    verdict = step(judge, desk, CALM, hog())
    assert verdict is not None
    assert "it would be killed" in verdict.sentence
    assert step(judge, desk, CALM, hog()) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mode": "enforce"}, "does not say quarantine = true"),
        ({**ALLOWS, "protect": ("ns/*",)}, "protected by the configuration"),
        ({**ALLOWS, "scope": ("/elsewhere",)}, "outside the scope"),
    ],
)
def test_what_is_not_allowed_is_said_once(settings: dict[str, Any], words: str) -> None:
    judge, desk = Judge(settings_of(**settings), "5eedb007-0"), desk_of(listed(POD))
    verdict = step(judge, desk, CALM, hog())
    assert verdict is not None
    assert not verdict.orders
    assert words in verdict.refused
    assert step(judge, desk, CALM, hog()) is None


def test_a_kill_of_the_minute_is_left_for_a_shortage() -> None:
    judge, desk = (
        Judge(settings_of(**ALLOWS, kills_per_minute=3), "5eedb007-0"),
        desk_of(listed(POD)),
    )
    found = [step(judge, desk, CALM._replace(seconds=1000.0 + n), hog(inode=n)) for n in range(9)]
    assert sum(verdict is not None for verdict in found) == 2
    assert step(judge, desk, CALM._replace(seconds=1070.0), hog(inode=99)) is not None


def test_a_list_ends_by_itself() -> None:
    judge, desk = Judge(settings_of(**ALLOWS), "5eedb007-0"), desk_of(listed(POD, seconds=-1))
    assert step(judge, desk, CALM, hog()) is None
    assert desk.count == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="the guard believes root's files alone")
def test_the_disks_list_counts_until_the_agent_brings_one(tmp_path: Path) -> None:
    path = tmp_path / "quarantine.json"
    row = {"name": "q", "pods": [POD], "until_unix_seconds": time.time() + 60}
    path.write_text(json.dumps({"quarantines": [row]}))
    path.chmod(0o600)
    desk = QuarantineDesk()
    assert desk.take_kept(kept_list(str(path))) == ""
    assert desk.count == 1
    files = OrderFiles("/nowhere")
    files.quarantined = listed()
    desk.take(files)
    assert desk.count == 0
    desk.take_kept(kept_list(str(path)))
    assert desk.count == 0  # the agent knows better


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_list_that_others_can_write_is_ignored_with_words(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "quarantine.json"
    path.write_text("{}")
    path.chmod(mode)
    assert "is ignored" in kept_list(str(path))["problem"]
    assert kept_list(str(tmp_path / "none")) == {"problem": ""}


@pytest.mark.parametrize("words", [NOT_TOLD, NOT_NAMED])
def test_who_is_not_named_yet_is_waited_for_in_silence(words: str) -> None:
    judge, desk = Judge(settings_of(**ALLOWS), "5eedb007-0"), desk_of(listed(POD))
    assert step(judge, desk, CALM, hog(protected_by=words)) is None
    verdict = step(judge, desk, CALM._replace(seconds=1002.0), hog(processes=None))
    assert verdict is not None
    assert verdict.orders
