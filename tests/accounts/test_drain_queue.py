"""The brake of draining: never more than its share, in whatever order many nodes ask and act."""

import heapq
import itertools
import random
from dataclasses import replace

import pytest

from seawall.accounts.drain_queue import (
    DrainClaim,
    brake_words,
    drained,
    free_field,
    has_claim,
    lift_refusal,
    next_claim,
    places_before,
    reason_of,
    refusal,
    share_of,
)
from seawall.readings.slurm_node_rows import SlurmNodeRow

NOW = 1_800_000_000.0


def row(name: str, *states: str, reason: str = "", comment: str = "", extra: str = "",
        when: int | None = None) -> SlurmNodeRow:  # fmt: skip
    return SlurmNodeRow(name, name, frozenset(states or ("idle",)), when, comment, extra, reason)


def rows(*given: SlurmNodeRow) -> dict[str, SlurmNodeRow]:
    return {one.name: one for one in given}


@pytest.mark.parametrize(
    ("nodes", "share"), [(1, 1), (4, 1), (20, 1), (39, 1), (40, 2), (200, 10), (10_000, 10)]
)
def test_five_percent_or_ten_and_one_of_a_few(nodes: int, share: int) -> None:
    assert share_of(nodes) == share


@pytest.mark.parametrize(
    "state",
    ["down", "drain", "fail", "maintenance", "reboot_issued", "reboot_requested", "powering_down",
     "powered_down", "powering_up", "power_down", "not_responding", "unknown", "future", "novel"],
)  # fmt: skip
def test_whatever_is_no_plain_state_is_somebody_elses(state: str) -> None:
    assert "left as they are" in refusal(rows(row("n1", "idle", state)), "n1", 5)


@pytest.mark.parametrize(
    "states", [("idle",), ("allocated",), ("mixed", "completing"), ("idle", "cloud", "planned")]
)
def test_a_node_that_serves_may_drain(states: tuple[str, ...]) -> None:
    assert refusal(rows(row("n1", *states)), "n1", 1) == ""


def test_the_brake_counts_drains_with_our_reason_alone() -> None:
    seen = rows(
        row("n1"), row("n2", "idle", "drain", reason="seawall: gpu: x"),
        row("n3", "down", "drain", reason="seawall: gpu: x"),
        row("n4", "idle", "drain", reason="disk"), row("n5", "idle", reason="seawall: old"),
    )  # fmt: skip
    assert drained(seen) == ["n2", "n3"]
    assert refusal(seen, "n1", 2) == brake_words(2, 2, 5)
    assert refusal(seen, "n1", 3) == ""
    assert "knows no node" in refusal(seen, "n9", 3)


def test_a_number_takes_nothing_of_anybodys_away() -> None:
    ours = DrainClaim(3, int(NOW)).text
    assert free_field(row("n", comment="rack 5")) == "Extra"
    assert free_field(row("n", comment=ours, extra="x")) == "Comment"
    assert free_field(row("n", comment="rack 5", extra="x")) == ""
    assert "no place to queue" in refusal(rows(row("n", comment="a", extra="b")), "n", 3)


def test_an_old_number_is_nobodys_and_a_strange_one_is_none() -> None:
    old, strange = DrainClaim(7, int(NOW) - 2000), "seawall wants to drain: 9 at 99 or so"
    seen = rows(row("n1", comment=old.text), row("n2", comment=strange), row("n3"))
    assert next_claim(seen, NOW).number == 1
    fresh = rows(row("n1", comment=DrainClaim(7, int(NOW) - 20).text), row("n3"))
    assert next_claim(fresh, NOW).number == 8
    assert places_before(fresh, "n3", DrainClaim(8, int(NOW)), NOW) == 1
    assert places_before(seen, "n3", DrainClaim(8, int(NOW)), NOW) == 0


TICKET, SETTLE = 5.0, 6.0


@pytest.mark.parametrize("seed", range(300))
def test_no_order_of_looks_and_writes_drains_more_than_the_share(seed: int) -> None:
    """Nodes look, write, wait and look again at random moments; a few take their drains back."""
    chance = random.Random(seed)
    nodes = {f"n{number}": row(f"n{number}") for number in range(chance.randint(2, 30))}
    share = chance.randint(1, 3)
    spread = chance.choice([0.0, 1.0, 4.0, 30.0])
    order = itertools.count()
    queue = [(chance.random() * spread, next(order), name, "look", DrainClaim(0, 0))
             for name in nodes]  # fmt: skip
    heapq.heapify(queue)
    most = 0
    while queue:
        at, _, name, step, claim = heapq.heappop(queue)
        if step == "look":
            if refusal(nodes, name, share):
                continue
            claim, step = next_claim(nodes, NOW + at), "write"
            wait = chance.random() * TICKET
        elif step == "write":
            nodes[name] = replace(nodes[name], comment=claim.text)
            step, wait = "again", SETTLE + chance.random() * 3
        elif step == "again":
            is_in = places_before(nodes, name, claim, NOW + at) < share
            assert has_claim(nodes[name], claim)
            step, wait = "drain" if is_in else "go", chance.random() * 8
        else:
            changed = replace(nodes[name], comment="")
            if step == "drain":
                states = frozenset({"idle", "drain"})
                changed = replace(changed, states=states, reason="seawall: gpu: x")
            nodes[name] = changed
            most = max(most, len(drained(nodes)))
            continue
        heapq.heappush(queue, (at + wait, next(order), name, step, claim))
    assert 1 <= most <= share


def test_a_reason_is_one_plain_line_that_begins_as_ours() -> None:
    text = reason_of(['gpu: "7" | of\n8 \x1b[31m\u20ac', "x" * 500])
    assert text.startswith("seawall: gpu: '7' / of?8 ?[31m?; xxx")
    assert len(text) == 240


OURS = row("n", "idle", "drain", reason="seawall: gpu: x", when=1000)


def test_only_its_own_drain_is_lifted() -> None:
    assert lift_refusal(OURS, "seawall: gpu: x", 1000, [], NOW) == ""
    for other in (
        None, replace(OURS, reason="seawall: gpu: y"), replace(OURS, reason_unix_seconds=1001),
        replace(OURS, states=frozenset({"idle"})),
    ):  # fmt: skip
        assert "not the one that was made here" in lift_refusal(
            other, "seawall: gpu: x", 1000, [], NOW
        )
    assert lift_refusal(OURS, "seawall: gpu: x", None, [], NOW)


@pytest.mark.parametrize("state", ["down", "reboot_issued", "maintenance", "powering_down"])
def test_a_node_that_is_down_or_planned_for_is_not_lifted(state: str) -> None:
    found = replace(OURS, states=OURS.states | {state})
    assert lift_refusal(found, "seawall: gpu: x", 1000, [], NOW).startswith("it is ")


def test_twice_a_day() -> None:
    def words(*lifts: float) -> str:
        return lift_refusal(OURS, "seawall: gpu: x", 1000, lifts, NOW)

    assert words(NOW - 90_000, NOW - 100, NOW - 95_000) == ""
    assert "2 times in a day" in words(NOW - 80_000, NOW - 100)
    assert "2 times in a day" in words(NOW - 100, NOW + 100), "a clock that was set back"
