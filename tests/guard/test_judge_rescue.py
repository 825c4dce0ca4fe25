"""A rescue order before the judge and at the desk: it names a culprit, and proves nothing."""

import time
from typing import Any

import pytest
from tests.guard.judge_scene import (
    CALM,
    MIB,
    calm,
    done,
    group_of,
    hog,
    judge_of,
    scene,
    short,
    web,
)

from seawall.actions.orders import Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.order_files import OrderFiles, RescueOrder
from seawall.guard.rescue_desk import PATIENCE_SECONDS, RescueDesk
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import NOT_TOLD, Group, Node
from seawall.guard.verdict import Verdict
from seawall.role_claims import NOT_NAMED, NOT_SEEN

BOOT = "5eedb007-0000"
HOG, WEB = "11111111-0000-0000-0000-000000000001", "22222222-0000-0000-0000-000000000002"
LETS = Settings(mode="observe", rescue=True)


class Desk:
    """One judge, one desk; ticks as the loop has them."""

    def __init__(self, settings: Settings = LETS, brake: str = "") -> None:
        self.settings, self.brake = settings, brake
        self.judge: Judge = judge_of(**settings._asdict())
        self.desk = RescueDesk()
        self.files = OrderFiles("/nowhere")
        self.orders = 0
        self.groups: dict[str, Group] = {}
        self.tick(CALM, culprit(0), innocent())

    def order(self, *pods: str, now: float = 1005.0, **changes: Any) -> None:
        self.orders += 1
        known: dict[str, Any] = {
            "order": f"uid-{self.orders}", "boot_id": BOOT, "pods": pods or (HOG,), "by": "ops",
            "until_unix_seconds": time.time() + 300,
        }  # fmt: skip
        self.files.order = RescueOrder(**known | changes)
        self.desk.take(self.files, now)

    def tick(self, node: Node, *groups: Group) -> Verdict | None:
        """Of an order, or None; what the judge itself wants is heard."""
        self.groups = scene(*groups) if groups else self.groups
        self.judge.wants(node, self.groups)
        verdict = self.judge.step(node, self.groups)
        self.desk.look(node.seconds, self.judge.state())
        if verdict is not None:
            self.desk.hear(verdict, node.seconds)
            is_observed = self.settings.mode == "observe"
            for order in verdict.orders:
                self.judge.learn(done(order, is_observed=is_observed), node)
            self.judge.updates(node, self.groups)
            verdict = None
        found = self.desk.step(node, self.groups, self.judge, self.settings, BOOT, self.brake)
        for order in found.orders if found else ():
            self.judge.learn(done(order), node)
        self.judge.updates(node, self.groups)
        return found

    @property
    def said(self) -> tuple[str, str]:
        assert self.desk.result is not None
        return self.desk.result.state, self.desk.result.words


def culprit(certain: int = 600, **values: Any) -> Group:
    found = hog(certain)
    found.pod = HOG
    for key, value in values.items():
        setattr(found, key, value)
    return found


def innocent() -> Group:
    found = web()
    found.pod = WEB
    return found


def test_an_observing_guard_ends_the_culprit_that_the_order_names() -> None:
    desk = Desk()
    assert desk.tick(short(1005), culprit(), innocent()) is None  # it only observed
    desk.order()
    verdict = desk.tick(short(1006))
    assert verdict is not None
    assert verdict.is_ordered
    assert [(o.step, o.target.name, o.why) for o in verdict.orders] == [
        ("kill", "ns/hog", "node_short")
    ]
    assert "A rescue order of ops names ns/hog" in verdict.sentence
    assert desk.said[0] == "accepted"
    # What came back is told, and the order is carried out once.
    gone = calm(700, seconds=1008.0)
    assert desk.tick(gone, innocent()) is None
    desk.tick(gone._replace(seconds=1009.0), innocent())
    assert desk.said[0] == "done"
    assert desk.desk.result is not None
    assert desk.desk.result.returned_bytes == 650 * MIB
    desk.desk.take(desk.files, 1010.0)
    assert desk.tick(short(1010), culprit(), innocent()) is None


@pytest.mark.parametrize(
    ("changes", "desk", "words"),
    [
        ({"boot_id": "another"}, Desk, "another boot"),
        ({}, lambda: Desk(Settings(mode="observe")), "does not say rescue"),
        ({}, lambda: Desk(brake="/run/seawall/brake"), "the brake is on"),
        ({"until_unix_seconds": time.time() - 60}, Desk, "its time was over"),
        ({"pods": ("33333333",)}, Desk, "none of the pods"),
        ({}, lambda: Desk(LETS._replace(scope=("/elsewhere",))), "outside the scope"),
        ({}, lambda: Desk(LETS._replace(protect=("ns/*",))), "protected by the configuration"),
    ],
)  # fmt: skip
def test_what_no_enforcing_guard_would_do_is_refused_at_once(
    changes: dict[str, Any], desk: Any, words: str
) -> None:
    made = desk()
    made.tick(short(1005), culprit(), innocent())
    made.order(**changes)
    verdict = made.tick(short(1006))
    assert verdict is not None
    assert not verdict.orders
    assert verdict.is_refusal
    assert words in verdict.refused
    assert made.said == ("refused", verdict.refused)
    assert made.tick(short(1007)) is None  # said once


def test_an_innocent_that_an_order_names_stays() -> None:
    desk = Desk()
    desk.tick(short(1005), culprit(), innocent())
    desk.order(WEB)
    for second in range(int(PATIENCE_SECONDS)):
        found = desk.tick(short(1006.0 + second))
        assert found is None or not found.orders
    found = desk.tick(short(1006 + PATIENCE_SECONDS))
    assert desk.said[0] == "refused"
    assert "proved" in desk.said[1]


def test_whom_the_order_does_not_name_stays_although_it_is_proved() -> None:
    desk = Desk()
    desk.order(WEB)
    found = desk.tick(short(1005), culprit(), innocent())
    assert found is None or not found.orders


@pytest.mark.parametrize("words", [NOT_TOLD, NOT_NAMED, NOT_SEEN])
def test_an_order_waits_for_the_name_of_the_culprit(words: str) -> None:
    desk = Desk()
    desk.tick(short(1005), culprit(), innocent())
    desk.order()
    assert desk.tick(short(1006), culprit(protected_by=words), innocent()) is None
    assert desk.said[0] == "waits"
    assert words in desk.said[1]
    verdict = desk.tick(short(1007), culprit(), innocent())
    assert verdict is not None
    assert [order.target.name for order in verdict.orders] == ["ns/hog"]


def test_on_a_node_that_is_not_short_nobody_goes() -> None:
    desk = Desk()
    desk.order(now=1001.0)
    assert desk.tick(CALM._replace(seconds=1001.0), culprit(), innocent()) is None
    assert desk.said == ("waits", "the node is not short of memory now")
    verdict = desk.tick(CALM._replace(seconds=1001 + PATIENCE_SECONDS))
    assert verdict is not None
    assert not verdict.orders


def test_proof_of_this_shortage_holds_when_claims_have_grown_old() -> None:
    desk = Desk()
    desk.tick(short(1005), culprit(), innocent())
    desk.order(now=1040.0)
    old = short(1040, claims_seconds=60.0, slope_bytes_per_second=0.0, is_min=True)
    verdict = desk.tick(old, culprit(), innocent())
    assert verdict is not None
    assert [order.target.name for order in verdict.orders] == ["ns/hog"]
    assert "was proved by 5eedb007-0001" in verdict.sentence


def test_proof_of_a_shortage_that_is_over_proves_nothing() -> None:
    desk = Desk()
    desk.tick(short(1005), culprit(), innocent())
    for second in range(1070, 1110, 5):
        desk.tick(CALM._replace(seconds=float(second)), culprit(), innocent())
    desk.order(now=1110.0)
    old = short(1110, claims_seconds=60.0, slope_bytes_per_second=0.0, is_min=True)
    verdict = desk.tick(old, culprit(), innocent())
    assert verdict is None or not verdict.orders


def test_another_cgroup_of_that_path_was_not_proved() -> None:
    desk = Desk()
    desk.tick(short(1005), culprit(), innocent())
    desk.order(now=1040.0)
    old = short(1040, claims_seconds=60.0, slope_bytes_per_second=0.0, is_min=True)
    verdict = desk.tick(old, culprit(inode=999), innocent())
    assert verdict is None or not verdict.orders


def test_an_enforcing_guard_that_has_acted_says_so() -> None:
    desk = Desk(Settings(mode="enforce"))
    desk.tick(short(1005), culprit(), innocent())
    desk.order()
    verdict = desk.tick(short(1005.1))
    assert verdict is not None
    assert "already acted on" in verdict.refused


def test_a_kill_that_is_refused_by_the_machine_is_no_rescue() -> None:
    desk = Desk()
    desk.tick(short(1005), culprit(), innocent())
    desk.order()
    verdict = desk.tick(short(1006))
    assert verdict is not None
    failed = [Outcome(order, is_done=False, problem="its inode is another one")
              for order in verdict.orders]  # fmt: skip
    desk.desk.learn(failed)
    assert desk.said == ("refused", "its inode is another one")


def test_the_kills_of_a_minute_hold_for_orders_too() -> None:
    desk = Desk(LETS._replace(kills_per_minute=1))
    other = group_of("hog2", 5, limit=400, certain=600, outside_slope=160.0 * MIB, pod=WEB)
    first = culprit()
    first.name, other.name = "ns/a/x", "ns/b/x"  # of one tenant
    desk.tick(short(1005), first, other)
    desk.order(HOG)
    assert desk.tick(short(1006)) is not None
    desk.order(WEB, now=1007.0)
    assert desk.tick(short(1007)) is None
    assert desk.said == ("waits", "the kills of this minute are spent")
