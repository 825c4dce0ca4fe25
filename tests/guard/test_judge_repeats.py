"""Workloads that are over their limits again and again: told, and the journal lasts."""

import json

import pytest
from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene

from seawall.guard.judge import over_limit
from seawall.guard.judge.judge import Judge
from seawall.guard.judge.policy_state_json import state_pieces
from seawall.guard.tell.decision_lines import Stamp, ranking_lines, verdict_line
from seawall.guard.tick_facts import Group, Outside
from seawall.guard.verdict import Verdict
from seawall.replay.policy_state_codec import judge_from_document

HOUR = 3600
STAMP = Stamp(0.0, "b" * 36, "observe")


class Scene:
    """Somebody with packet rings among forty that hold still; ``bytes``: of the journal."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.bad = group_of("bad", 300, limit=400)
        self.groups = scene(self.bad, *(group_of(f"web{n}", 300, limit=400) for n in range(40)))
        self.found: list[Verdict] = []
        self.bytes = 0

    def hold(self, *mib: int, group: Group | None = None) -> None:
        for one, held in zip([group or self.bad], mib, strict=True):
            one.outside = Outside(held * MIB, held * MIB, held * MIB, "packet rings (PACKET_DIAG)")

    def run(self, since: int, until: int) -> list[Verdict]:
        """The decisions from one second to another."""
        found = []
        for second in range(since, until):
            node = CALM._replace(seconds=float(second))
            verdict = self.judge.step(node, self.groups)
            if verdict is None:
                continue
            found.append(verdict)
            self.bytes += len(verdict_line(verdict, STAMP))
            self.bytes += sum(map(len, ranking_lines(verdict, self.judge.rest, STAMP)))
            for order in verdict.orders:
                self.judge.learn(done(order, old_value="419430400"), node)
        return found

    def swing(self, seconds: int, low: int, high: int, each: int) -> list[Verdict]:
        """Taken and given back, from the first second on."""
        found = []
        for second in range(0, seconds, each):
            self.hold(high if second // each % 2 else low)
            found += self.run(second, second + each)
        return found


@pytest.fixture
def it() -> Scene:
    return Scene(judge_of(mode="observe"))


@pytest.mark.parametrize(("low", "high", "each"), [(170, 300, 5), (0, 300, 15), (170, 900, 5)])
def test_who_takes_and_gives_back_does_not_fill_the_journal(
    it: Scene, low: int, high: int, each: int
) -> None:
    """Two decisions a minute and more, each with all the ranking, left two minutes of history."""
    found = it.swing(6 * HOUR, low, high, each)
    assert 6 <= len(found) <= 12
    assert sum(len(v.ranking) > 0 for v in found) == 1
    assert it.bytes < 64 << 10
    assert all("told first as 5eedb007-0001" in v.sentence for v in found[1:])


def test_each_time_it_waits_twice_as_long_and_at_last_an_hour(it: Scene) -> None:
    it.hold(300)
    seconds = [verdict.seconds for verdict in it.run(0, 4 * HOUR)]
    assert seconds == [10.0, 610.0, 1810.0, 4210.0, 7810.0, 11410.0]


def test_what_has_doubled_is_told_at_once_and_less_than_that_is_not(it: Scene) -> None:
    it.hold(200)  # 100 over
    (first,) = it.run(0, 30)
    it.hold(299)
    assert it.run(30, 60) == []
    it.hold(300)
    (second,) = it.run(60, 90)
    assert second.seconds == 60.0
    it.hold(170)
    assert it.run(90, 120) == []
    it.hold(300)  # it was told before
    assert it.run(120, 150) == []
    assert (first.need_bytes, second.need_bytes) == (100 * MIB, 200 * MIB)


def test_thirty_gibibytes_bit_by_bit_are_told_nine_times(it: Scene) -> None:
    found = []
    for second in range(600):
        it.hold(170 + 50 * second)
        found += it.run(second, second + 1)
    assert len(found) <= 9
    assert found[-1].need_bytes > 12 << 30


def test_after_two_hours_of_quiet_it_is_a_first_one(it: Scene) -> None:
    it.hold(300)
    it.run(0, 30)
    it.hold(0)
    assert it.run(30, 10 + 2 * HOUR) == []
    it.hold(300)
    (again,) = it.run(10 + 2 * HOUR, 60 + 2 * HOUR)
    assert len(again.ranking) > 1
    assert "told first" not in again.sentence


def test_another_cgroup_of_the_same_path_is_another_one(it: Scene) -> None:
    it.hold(300)
    it.run(0, 30)
    it.bad.inode += 1
    (again,) = it.run(30, 60)
    assert "told first" not in again.sentence
    assert list(it.judge._mind.overruns.said) == [(it.bad.path, it.bad.inode)]


def test_all_of_a_deployment_are_told_and_the_ranking_once(it: Scene) -> None:
    """Each is new; forty rankings of 130 KB were more than the journal holds."""
    for group in it.groups.values():
        it.hold(300, group=group)
    found = it.run(0, 300)
    assert len({v.sentence for v in found}) == len(found) == 41
    assert [len(v.ranking) > 0 for v in found] == [True] + [False] * 40
    it.groups = scene(group_of("late", 300, limit=400, certain=300))
    (late,) = it.run(700, 730)
    assert late.ranking


def test_beside_a_kill_there_is_always_a_ranking() -> None:
    it = Scene(judge_of(over_limit="kill", over_limit_opt_in=("ns/bad",), terminate_seconds=0.0))
    it.hold(300, group=it.groups["/kubepods/burstable/web7"])
    (report,) = it.run(0, 30)
    it.hold(300)
    (kill,) = [v for v in it.run(30, 60) if v.orders]
    assert [order.step for order in kill.orders] == ["kill"]
    assert len(report.ranking) > 1
    assert len(kill.ranking) > 1


def test_what_was_reported_before_is_still_acted_on_at_once() -> None:
    it = Scene(judge_of(over_limit="clamp", over_limit_opt_in=("ns/bad",)))
    it.hold(500)  # more than its limit: none is left to set
    assert [v.orders for v in it.run(0, 30)] == [()]
    it.hold(300)
    (clamped,) = it.run(30, 60)
    assert (clamped.seconds, clamped.orders[0].step) == (30.0, "clamp")


def test_what_is_remembered_is_bounded(it: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_limit, "SAID_MOST", 8)
    for group in it.groups.values():
        it.hold(300, group=group)
    it.run(0, 60)
    assert len(it.judge._mind.overruns.said) == 8
    it.groups = {}
    it.run(60, 62)
    assert it.judge._mind.overruns.said == {}


def test_a_replay_that_begins_later_says_as_little(it: Scene) -> None:
    it.hold(300)
    it.run(0, 700)
    mind = json.loads("".join(state_pieces(it.judge)))
    other = Scene(judge_from_document(mind))
    other.hold(300)
    assert other.run(700, 3 * HOUR) == it.run(700, 3 * HOUR) != []
