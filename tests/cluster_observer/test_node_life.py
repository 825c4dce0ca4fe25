"""Lives of nodes, row by row: what is a death, and above all what is none."""

import random
from typing import Any

import msgspec
import pytest

from seawall.cluster.judge.node_death import DeathKind, Stratum
from seawall.cluster.kube.node_row import NodeRow
from seawall.cluster.observer.node_life import NodeLife, NodeLifeEvent, NodeLifeKind

DRAIN = "taint karpenter.sh/disrupted"
START = 1_795_914_000.0


def row(name: str = "a", **fields: Any) -> NodeRow:
    return msgspec.structs.replace(
        NodeRow(
            name=name, uid=f"uid-{name}", resource_version=1, boot_id=f"boot-{name}", ready="True",
            ready_seconds=START - 86400.0, ready_reason="KubeletReady", pool="gpu", kernel="6.8",
            capacity_type="on-demand", zone="z1", domain="", is_cordoned=False,
            cordoned_seconds=0.0, plan="", planned_seconds=0.0,
        ), **fields,
    )  # fmt: skip


def silent(at: float, name: str = "a", **fields: Any) -> NodeRow:
    """As the node lifecycle controller writes it at that second."""
    fields = {"ready": "Unknown", "ready_seconds": START + at, "ready_reason": "NodeStatusUnknown",
              **fields}  # fmt: skip
    return row(name, **fields)


class Day:
    """Seconds since ``START``; signs come each two seconds, as the lease's renewals do."""

    def __init__(self, *nodes: NodeRow, life: NodeLife | None = None) -> None:
        self.life = NodeLife() if life is None else life
        self.now = 0.0
        self.has_signs = True
        self.events: list[NodeLifeEvent] = []
        for one in nodes:
            self.see(0.0, one)

    def until(self, at: float) -> list[NodeLifeEvent]:
        new = []
        while self.now < at:
            self.now = min(self.now + 2.0, at)
            if self.has_signs:
                new += self.life.sign(START + self.now)
            else:
                new += self.life.tick(START + self.now)
        self.events += new
        return new

    def see(self, at: float, one: NodeRow) -> list[NodeLifeEvent]:
        earlier = self.until(at)
        new = self.life.see(one, START + at)
        self.events += new
        return earlier + new

    def gone(self, at: float, name: str = "a") -> list[NodeLifeEvent]:
        earlier = self.until(at)
        new = self.life.gone(name, START + at)
        self.events += new
        return earlier + new

    def outage(self, since: float, until: float) -> None:
        """The API is away."""
        self.until(since)
        self.life.interrupt(START + since)
        self.has_signs = False
        self.until(until)
        self.has_signs = True


def kinds(events: list[NodeLifeEvent]) -> list[NodeLifeKind]:
    return [event.kind for event in events]


def test_a_silent_node_is_dead_at_once_since_the_controllers_transition() -> None:
    day = Day(row("a"), row("b"), row("c", zone="z2"))
    (death,) = day.see(100.4, silent(100.0))
    assert (death.kind, death.death_kind) == (NodeLifeKind.DEATH, DeathKind.SILENT)
    assert death.heartbeat_seconds == START + 100.0
    assert death.observed_seconds == START + 100.4
    assert death.stratum == Stratum("gpu", "6.8", "on-demand", "z1")
    assert (death.stratum_nodes, death.zone_nodes) == (2, 2)
    assert day.see(130.0, silent(100.0, resource_version=2, plan=DRAIN)) == []
    assert day.until(4000.0) == []


def test_a_kubelet_that_says_not_ready_is_alive() -> None:
    day = Day(row())
    day.see(10.0, row(ready="False", ready_seconds=START + 10.0))
    day.see(20.0, row())
    day.until(1000.0)
    assert day.events == []


def test_a_kubelet_that_says_not_ready_and_then_nothing_is_dead() -> None:
    day = Day(row())
    day.see(10.0, row(ready="False", ready_seconds=START + 10.0))
    (death,) = day.see(60.0, silent(60.0))
    assert death.heartbeat_seconds == START + 60.0


def test_a_node_that_never_spoke_has_not_lived() -> None:
    day = Day()
    day.see(10.0, row(ready="", ready_seconds=0.0))
    day.see(60.0, silent(60.0, ready_reason="NodeStatusNeverUpdated"))
    day.gone(70.0)
    assert day.events == []


@pytest.mark.parametrize("last", [None, "recreated"])
def test_deleted_while_it_was_not_ready_is_a_death(last: str | None) -> None:
    day = Day(row())
    day.see(10.0, row(ready="False", ready_seconds=START - 5000.0))  # the node's own clock
    if last is None:
        (death,) = day.gone(500.0)
    else:  # the deletion itself was missed
        (death,) = day.see(500.0, row(uid="another", boot_id="another", ready="False"))
    assert (death.kind, death.death_kind) == (NodeLifeKind.DEATH, DeathKind.SILENT)
    assert death.heartbeat_seconds == START + 10.0
    assert death.row.boot_id == "boot-a"
    assert day.until(1000.0) == []


def test_deleted_while_ready_is_somebodys_wish() -> None:
    day = Day(row())
    assert day.gone(10.0) == []
    assert len(day.life) == 0


def test_deleted_after_its_death_dies_no_second_time() -> None:
    day = Day(row())
    day.see(10.0, silent(10.0))
    assert day.gone(400.0) == []


def test_first_seen_not_ready_and_deleted_tells_nothing() -> None:
    """It may never have been Ready: whoever looks away accuses nobody."""
    day = Day(row(ready="False"))
    assert day.gone(100.0) == []


@pytest.mark.parametrize("mark", [
    {"plan": DRAIN}, {"plan": "taint ToBeDeletedByClusterAutoscaler"},
    {"plan": "taint aws-node-termination-handler/spot-itn"},
    {"plan": "annotation weave.works/kured-reboot-in-progress"}, {"plan": "deleted"},
    {"is_cordoned": True},
])  # fmt: skip
def test_a_mark_before_the_silence_is_a_plan(mark: dict[str, Any]) -> None:
    day = Day(row())
    day.see(10.0, row(**mark))
    (planned,) = day.see(100.0, silent(100.0, **mark))
    assert planned.kind is NodeLifeKind.PLANNED
    assert planned.reason == mark.get("plan", "cordoned")
    assert day.gone(200.0) == []


def test_a_mark_of_the_last_seconds_is_no_plan() -> None:
    day = Day(row())
    day.see(96.0, row(plan=DRAIN, is_cordoned=True))
    (death,) = day.see(100.0, silent(100.0, plan=DRAIN, is_cordoned=True))
    assert death.kind is NodeLifeKind.DEATH


def test_a_repair_system_that_cordons_a_dead_node_makes_no_plan() -> None:
    day = Day(row())
    (death,) = day.see(100.0, silent(100.0))
    marks = {"is_cordoned": True, "cordoned_seconds": START + 130.0, "plan": DRAIN}
    assert day.see(130.0, silent(100.0, **marks)) == []
    assert day.gone(200.0) == []
    assert death.kind is NodeLifeKind.DEATH


@pytest.mark.parametrize(("set_at", "kind"), [
    (60.0, NodeLifeKind.PLANNED), (96.0, NodeLifeKind.DEATH), (130.0, NodeLifeKind.DEATH),
])  # fmt: skip
@pytest.mark.parametrize("which", ["cordon", "taint"])
def test_mark_and_silence_in_one_row_are_told_apart_by_their_own_times(
    which: str, set_at: float, kind: NodeLifeKind
) -> None:
    """The rows between were missed."""
    cordon = {"is_cordoned": True, "cordoned_seconds": START + set_at}
    taint = {"plan": DRAIN, "planned_seconds": START + set_at}
    day = Day(row())
    (event,) = day.see(140.0, silent(100.0, **(cordon if which == "cordon" else taint)))
    assert event.kind is kind


def test_a_mark_without_a_time_in_the_row_of_the_silence_is_no_plan() -> None:
    day = Day(row())
    (event,) = day.see(140.0, silent(100.0, plan=DRAIN))
    assert event.kind is NodeLifeKind.DEATH


def test_a_cordon_that_was_forgotten_is_no_plan_but_a_drain_mark_is() -> None:
    day = Day(row("a"), row("b"))
    day.see(10.0, row("a", is_cordoned=True))
    day.see(10.0, row("b", is_cordoned=True, plan=DRAIN))
    (death,) = day.see(3000.0, silent(3000.0, "a", is_cordoned=True))
    (planned,) = day.see(3000.0, silent(3000.0, "b", is_cordoned=True, plan=DRAIN))
    assert (death.kind, planned.kind) == (NodeLifeKind.DEATH, NodeLifeKind.PLANNED)


def test_a_mark_that_was_taken_away_is_no_plan() -> None:
    day = Day(row())
    day.see(10.0, row(plan=DRAIN, is_cordoned=True))
    day.see(20.0, row())
    (death,) = day.see(100.0, silent(100.0))
    assert death.kind is NodeLifeKind.DEATH


def test_a_mark_that_came_again_in_the_last_seconds_is_no_plan() -> None:
    day = Day(row())
    marks = {"plan": DRAIN, "is_cordoned": True}
    day.see(10.0, row(**marks))
    day.see(20.0, row())
    day.see(98.0, row(**marks))
    (death,) = day.see(100.0, silent(100.0, **marks))
    assert death.kind is NodeLifeKind.DEATH


def test_a_cordon_of_yesterday_is_no_plan_for_who_comes_today() -> None:
    marks = {"is_cordoned": True, "cordoned_seconds": START - 86400.0}
    day = Day(row(**marks))
    (death,) = day.see(100.0, silent(100.0, **marks))
    assert death.kind is NodeLifeKind.DEATH


def test_another_boot_id_while_ready_is_a_reset() -> None:
    day = Day(row())
    (death,) = day.see(50.0, row(boot_id="new", kernel="6.9"))
    assert (death.kind, death.death_kind) == (NodeLifeKind.DEATH, DeathKind.RESET)
    assert death.row.boot_id == "boot-a"
    assert death.stratum.kernel == "6.8"  # it died under the old one
    assert death.heartbeat_seconds == death.observed_seconds == START + 50.0
    assert day.see(60.0, row(boot_id="new")) == []
    (second,) = day.see(90.0, row(boot_id="newer"))
    assert second.row.boot_id == "new"


def test_a_reset_with_a_plan_is_planned_and_one_announced_by_not_ready_is_none() -> None:
    day = Day(row("a"), row("b"))
    day.see(10.0, row("a", is_cordoned=True))
    (planned,) = day.see(50.0, row("a", is_cordoned=True, boot_id="new"))
    assert (planned.kind, planned.reason) == (NodeLifeKind.PLANNED, "cordoned")
    # A graceful shutdown of the node: its kubelet says so before.
    day.see(55.0, row("b", ready="False"))
    assert day.see(90.0, row("b", boot_id="new")) == []


def test_no_boot_id_is_no_other_boot_id() -> None:
    day = Day(row())
    assert day.see(10.0, row(boot_id="")) == []
    assert day.see(20.0, row()) == []


def test_back_with_the_same_boot_id_is_retracted() -> None:
    day = Day(row())
    (death,) = day.see(100.0, silent(100.0))
    # It talks, but is not ready yet: nothing is known; and silence again is the same death.
    assert day.see(300.0, row(ready="False")) == []
    assert day.see(350.0, silent(350.0)) == []
    (back,) = day.see(400.0, row())
    assert (back.kind, back.row.boot_id) == (NodeLifeKind.RETRACTED, "boot-a")
    assert back.heartbeat_seconds == death.heartbeat_seconds
    assert back.observed_seconds == START + 400.0
    (again,) = day.see(700.0, silent(700.0))
    assert (again.kind, again.heartbeat_seconds) == (NodeLifeKind.DEATH, START + 700.0)


def test_back_with_another_boot_id_is_recovered_and_the_death_stands() -> None:
    day = Day(row())
    day.see(100.0, silent(100.0))
    day.see(150.0, row(ready="False", boot_id="new"))
    (back,) = day.see(200.0, row(boot_id="new"))
    assert (back.kind, back.row.boot_id) == (NodeLifeKind.RECOVERED, "boot-a")
    (second,) = day.see(300.0, silent(300.0, boot_id="new"))
    assert (second.kind, second.row.boot_id) == (NodeLifeKind.DEATH, "new")


def test_a_second_silence_after_a_reboot_that_never_got_ready_is_a_second_death() -> None:
    day = Day(row())
    day.see(100.0, silent(100.0))
    day.see(150.0, row(ready="False", boot_id="new"))
    (second,) = day.see(200.0, silent(200.0, boot_id="new"))
    assert second.row.boot_id == "new"


def test_made_anew_under_the_same_name_is_another_node() -> None:
    day = Day(row())
    day.see(100.0, silent(100.0))
    day.gone(200.0)
    (back,) = day.see(300.0, row(uid="second", boot_id="second"))
    assert back.kind is NodeLifeKind.RECOVERED
    assert day.see(310.0, row(uid="third", boot_id="third")) == []  # replaced while Ready
    assert len(day.life) == 1
    assert day.life.strata == {Stratum("gpu", "6.8", "on-demand", "z1"): 1}


def test_registered_anew_by_a_kubelet_that_ran_on_is_retracted() -> None:
    """Somebody deleted the Node of a partitioned machine."""
    day = Day(row())
    day.see(100.0, silent(100.0))
    day.gone(200.0)
    (back,) = day.see(300.0, row(uid="second"))
    assert back.kind is NodeLifeKind.RETRACTED


def test_after_an_outage_of_the_api_deaths_wait_and_the_living_are_none() -> None:
    """All leases expired: the controller says Unknown of everybody before they can renew."""
    names = [f"n{number}" for number in range(50)]
    day = Day(*(row(name) for name in names))
    day.outage(100.0, 280.0)
    for name in names:
        assert day.see(281.0, silent(281.0, name)) == []
    assert len(day.life.waiting) == 50
    for name in names[1:]:
        assert day.see(295.0, row(name)) == []
    assert day.until(340.0) == []
    (death,) = day.until(342.0)  # a minute after the first sign
    assert (death.row.name, death.heartbeat_seconds) == ("n0", START + 281.0)
    assert day.life.waiting == ()
    (back,) = day.see(400.0, row("n0"))
    assert back.kind is NodeLifeKind.RETRACTED


def test_no_sign_for_half_a_minute_is_an_outage_too() -> None:
    """An API server that stands still breaks no connection."""
    day = Day(row("a"), row("b"))
    day.until(100.0)
    day.has_signs = False
    day.until(125.0)
    (death,) = day.see(125.0, silent(124.0))  # short: counts at once
    assert death.kind is NodeLifeKind.DEATH
    day.until(160.0)
    assert day.see(160.0, silent(160.0, "b")) == []
    assert day.until(219.0) == []
    day.has_signs = True
    assert kinds(day.until(600.0)) == [NodeLifeKind.DEATH]


def test_what_waits_goes_on_waiting_while_the_api_is_away_again() -> None:
    day = Day(row())
    day.outage(100.0, 200.0)
    day.see(201.0, silent(201.0))
    day.outage(230.0, 400.0)
    assert day.events == []
    assert day.until(459.0) == []
    assert kinds(day.until(463.0)) == [NodeLifeKind.DEATH]


def test_a_node_that_reboots_while_its_death_waits_died_and_is_back() -> None:
    day = Day(row())
    day.outage(100.0, 200.0)
    day.see(201.0, silent(201.0))
    assert kinds(day.see(230.0, row(boot_id="new"))) == [
        NodeLifeKind.DEATH, NodeLifeKind.RECOVERED,
    ]  # fmt: skip
    assert day.until(1000.0) == []


def test_deleted_while_its_death_waits_is_dead() -> None:
    day = Day(row())
    day.outage(100.0, 200.0)
    day.see(201.0, silent(201.0))
    day.gone(210.0)
    assert kinds(day.until(300.0)) == [NodeLifeKind.DEATH]


def test_a_reset_during_an_outage_waits_for_nobody() -> None:
    """The new boot id is itself the proof."""
    day = Day(row())
    day.outage(100.0, 200.0)
    assert [one.death_kind for one in day.see(201.0, row(boot_id="new"))] == [DeathKind.RESET]


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_clocks_of_nodes_and_controllers_change_nothing(skew: float) -> None:
    day = Day(row("a", ready_seconds=START + skew), row("b"))
    (death,) = day.see(100.4, silent(100.0 + skew))
    assert death.kind is NodeLifeKind.DEATH
    assert abs(death.heartbeat_seconds - (START + 100.0)) <= 1.0
    # The controller that is wrong by an hour writes its times into a repair's marks as well.
    marks = {"is_cordoned": True, "cordoned_seconds": START + 200.0 + skew}
    (second,) = day.see(220.0, silent(190.0 + skew, "b", **marks))
    assert second.kind is NodeLifeKind.DEATH


def test_silent_when_first_seen_waits_and_counts_unless_it_is_old() -> None:
    day = Day(silent(-20.0, "a"), silent(-7200.0, "old"), silent(-20.0, "back"))
    assert day.events == []
    day.see(10.0, row("back"))
    (death,) = day.until(70.0)
    assert (death.row.name, death.heartbeat_seconds) == ("a", START - 20.0)
    assert day.see(80.0, silent(-7200.0, "old", resource_version=9)) == []
    assert day.see(90.0, row("old")) == []
    assert kinds(day.see(100.0, silent(100.0, "old"))) == [NodeLifeKind.DEATH]


@pytest.mark.parametrize(("marks", "kind"), [
    ({"plan": DRAIN}, NodeLifeKind.PLANNED),
    ({"plan": DRAIN, "planned_seconds": START - 100.0}, NodeLifeKind.PLANNED),
    ({"plan": DRAIN, "planned_seconds": START - 10.0}, NodeLifeKind.DEATH),
    ({"is_cordoned": True}, NodeLifeKind.PLANNED),
    ({"is_cordoned": True, "cordoned_seconds": START - 100.0}, NodeLifeKind.PLANNED),
    ({"is_cordoned": True, "cordoned_seconds": START - 86400.0}, NodeLifeKind.DEATH),
    ({"is_cordoned": True, "cordoned_seconds": START - 10.0}, NodeLifeKind.DEATH),
])  # fmt: skip
def test_marks_of_who_is_first_seen_silent_speak_for_the_innocent(
    marks: dict[str, Any], kind: NodeLifeKind
) -> None:
    day = Day(silent(-20.0, **marks))
    assert kinds(day.until(100.0)) == [kind]


def test_a_new_leader_tells_no_known_death_again_and_retracts_it() -> None:
    life = NodeLife()
    for name in ("a", "b", "c"):
        life.recall(name, f"boot-{name}", DeathKind.SILENT)
    day = Day(silent(-20.0, "a"), row("b"), row("c", boot_id="new"), silent(-20.0, "d"), life=life)
    assert [(one.kind, one.row.name) for one in day.events] == [(NodeLifeKind.RETRACTED, "b")]
    assert [one.row.name for one in day.until(100.0)] == ["d"]
    (back,) = day.see(120.0, row("a"))
    assert back.kind is NodeLifeKind.RETRACTED
    assert kinds(day.see(200.0, silent(200.0, "a"))) == [NodeLifeKind.DEATH]


def test_a_stratum_counts_its_nodes_dead_ones_too() -> None:
    day = Day(*(row(f"n{number}") for number in range(5)))
    day.see(10.0, silent(10.0, "n0"))
    (death,) = day.see(20.0, silent(20.0, "n1"))
    assert death.stratum_nodes == 5
    day.gone(30.0, "n0")
    day.see(31.0, row("n2", kernel="6.9"))
    (death,) = day.see(40.0, silent(40.0, "n3"))
    assert (death.stratum_nodes, death.zone_nodes) == (3, 4)


def test_a_reset_pool_of_forty_is_forty_resets() -> None:
    day = Day(*(row(f"n{number}") for number in range(40)))
    for number in range(40):
        day.see(10.0 + number * 45.0, row(f"n{number}", boot_id="new"))
    assert {(one.kind, one.death_kind) for one in day.events} == {
        (NodeLifeKind.DEATH, DeathKind.RESET)
    }
    assert len(day.events) == 40


def film(seed: int) -> list[tuple[str, float, Any]]:
    """An hour of chance: what is called, when, with what."""
    chance = random.Random(seed)
    at = 0.0
    states = {f"n{number}": row(f"n{number}") for number in range(12)}
    calls: list[tuple[str, float, Any]] = [("see", at, one) for one in states.values()]
    for _ in range(600):
        at += chance.uniform(0.1, 12.0)
        name = chance.choice(list(states))
        now = states[name]
        change: dict[str, Any] = chance.choice([
            {"ready": "True"}, {"ready": "False"},
            {"ready": "Unknown", "ready_seconds": START + at, "ready_reason": "NodeStatusUnknown"},
            {"boot_id": str(chance.random()), "ready": "True"},
            {"plan": chance.choice(["", DRAIN])}, {"is_cordoned": chance.random() < 0.5},
            {"uid": str(chance.random())}, {"gone": True}, {"away": True}, {"sign": True},
        ])  # fmt: skip
        if "gone" in change:
            calls.append(("gone", at, name))
        elif "away" in change or "sign" in change:
            calls.append(("interrupt" if "away" in change else "sign", at, None))
        else:
            states[name] = msgspec.structs.replace(now, **change)
            calls.append(("see", at, states[name]))
    calls.append(("sign", at + 1.0, None))
    calls.append(("sign", at + 31.0, None))
    calls.append(("sign", at + 62.0, None))
    return calls


def played(calls: list[tuple[str, float, Any]]) -> list[NodeLifeEvent]:
    life, events = NodeLife(), []
    for method, at, value in calls:
        now = START + at
        if method in {"sign", "interrupt"}:
            events += getattr(life, method)(now) or []
        else:
            first, second = (value, now)
            events += getattr(life, method)(first, second)
    return events


@pytest.mark.parametrize("seed", range(40))
def test_a_film_of_chance_is_told_alike_and_makes_sense(seed: int) -> None:
    calls = film(seed)
    events = played(calls)
    assert events == played(calls)
    dead: dict[str, str] = {}
    for event in events:
        name, boot = event.row.name, event.row.boot_id
        assert event.heartbeat_seconds <= event.observed_seconds
        if event.kind in {NodeLifeKind.DEATH, NodeLifeKind.PLANNED}:
            assert dead.get(name) != boot or event.death_kind is DeathKind.RESET
            if event.death_kind is DeathKind.SILENT:
                dead[name] = boot
            else:
                dead.pop(name, None)
        else:  # only who was dead comes back, and of the boot that died
            assert dead.pop(name) == boot
    assert events, "nothing happened in this film"
