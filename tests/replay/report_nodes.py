# SPDX-License-Identifier: Apache-2.0
"""Nodes whose guards only observed for a month: films through the judge, lines through records.

Nobody performs: the world goes on as it would have, and its own OOM killer kills.
"""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.films.film import Film, pause_of
from tests.films.scripts import Cast, random_film

from seawall.actions.orders import Order, Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.tell import decision_lines, guard_sentences
from seawall.guard.tick_facts import Node
from seawall.guard.verdict import Verdict

OWN = "/system.slice/guard.service"


class Moment(NamedTuple):
    """What the guard told in one tick."""

    node: Node
    verdict: Verdict | None
    outcomes: tuple[Outcome, ...]
    kernel_killed: tuple[str, ...]
    """The truth, by name; a guard only sees how many."""
    state: str


def watched(film: Film, boot: str = "5eed0000-0000") -> list[Moment]:
    """A film that nobody but its kernel acts in."""
    judge = Judge(film.settings._replace(mode="observe"), boot, own_cgroup=OWN)
    world, moments, pause = film.world, [], 0.5
    end = world.now + film.seconds
    while world.now < end:
        before = len(world.kernel_killed)
        node = world.pass_time(pause * world.chance.uniform(0.95, 1.2))
        world.detail_all(judge.wants(node, world.groups))
        verdict = judge.step(node, world.groups)
        outcomes = tuple(map(_observed, verdict.orders if verdict else ()))
        for outcome in outcomes:
            judge.learn(outcome, node)
        killed = tuple(world.kernel_killed[before:])
        moments.append(Moment(node, verdict, outcomes, killed, judge.state()))
        pause = pause_of(judge)
    return moments


def _observed(order: Order) -> Outcome:
    return Outcome(order, is_done=True, processes=3, is_observed=True)


def lines_of(
    moments: Iterable[Moment], boot: str, unix: float, mode: str = "observe"
) -> list[bytes]:  # fmt: skip
    """Their journal; ``unix``: when the film began."""
    lines: list[bytes] = []
    moments = list(moments)
    begin = moments[0].node.seconds
    for moment in moments:
        node = moment.node
        stamp = decision_lines.Stamp(unix + node.seconds - begin, boot, mode)
        if node.kernel_kills:
            lines.append(decision_lines.kernel_line(node.kernel_kills, node.seconds, stamp))
        if moment.verdict is not None:
            lines.append(decision_lines.verdict_line(moment.verdict, stamp))
        for outcome in moment.outcomes:
            words = guard_sentences.outcome_sentence(outcome)
            lines.append(decision_lines.outcome_line(outcome, words, node.seconds, stamp))
    return lines


def shifted(moments: list[Moment], seconds: float, number: int, boot: str) -> list[Moment]:
    """The same, later in a boot, under ids of its own."""
    return [
        moment._replace(
            node=moment.node._replace(seconds=moment.node.seconds + seconds),
            verdict=moment.verdict and _renamed(moment.verdict, seconds, number, boot),
            outcomes=tuple(
                o._replace(order=_order(o.order, number, boot)) for o in moment.outcomes
            ),
        )
        for moment in moments
    ]  # fmt: skip


def _renamed(verdict: Verdict, seconds: float, number: int, boot: str) -> Verdict:
    orders = tuple(_order(order, number, boot) for order in verdict.orders)
    decision = _decision(verdict.decision, number, boot)
    return verdict._replace(
        decision=decision, orders=orders, seconds=verdict.seconds + seconds
    )  # fmt: skip


def _order(order: Order, number: int, boot: str) -> Order:
    return order._replace(decision=_decision(order.decision, number, boot))


def _decision(decision: str, number: int, boot: str) -> str:
    return f"{boot[:8]}-{int(decision.rpartition('-')[2]) + 100 * number:04d}"


def month(
    folder: Path, nodes: int, until: float, *, incidents: int = 12, days: float = 30.0,
    scripts: tuple[Callable[[Cast], Film], ...] | None = None,
) -> None:  # fmt: skip
    """A folder a node, with the journals of its guard."""
    chance = random.Random(6)
    pool = [
        watched(random_film(910_000 + seed, scripts[seed % len(scripts)] if scripts else None))
        for seed in range(32)
    ]
    for number in range(nodes):
        boot = f"{number:08x}-1111-2222-3333-444455556666"
        begin = until - days * 86_400
        parts = []
        for at in range(incidents):
            later = at * days * 86_400 / incidents
            moments = shifted(chance.choice(pool), later, at, boot)
            parts += lines_of(moments, boot, begin + later)
        place = folder / f"node-{number:03d}"
        place.mkdir(parents=True)
        half = len(parts) // 2
        (place / "decisions.1.jsonl").write_bytes(b"".join(parts[:half]))
        (place / "decisions.jsonl").write_bytes(b"".join(parts[half:]))
