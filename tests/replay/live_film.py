# SPDX-License-Identifier: Apache-2.0
"""Films of ``tests/films`` played as the guard's loop does, with everything kept that it saw."""

from dataclasses import dataclass, field

from tests.films.film import Film, pause_of
from tests.films.world import World

from seawall.actions.orders import Order, Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings
from seawall.guard.tell import decision_lines
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import Verdict
from seawall.replay.group_rows import group_of, row_of
from seawall.replay.tick import Tick

BOOT = "5eed0000-1111-2222-3333-444455556666"
OWN = "/system.slice/guard.service"
EPOCH = 1_790_000_000.0
"""Unix seconds of monotonic 0."""


@dataclass
class Lived:
    """One guard's life, from its start to its end."""

    settings: Settings
    last_decision: str
    ticks: list[Tick] = field(default_factory=list)
    verdicts: list[Verdict | None] = field(default_factory=list)
    """Of each tick."""
    lines: list[tuple[int, str]] = field(default_factory=list)
    """Number of the tick, and the line of the journal."""

    @property
    def decided(self) -> list[tuple[int, Verdict]]:
        pairs = zip(self.ticks, self.verdicts, strict=True)
        return [(tick.number, verdict) for tick, verdict in pairs if verdict is not None]


def copied(groups: dict[str, Group]) -> dict[str, Group]:
    """As they are now; the world changes its own."""
    return {path: group_of(row_of(group)) for path, group in groups.items()}


def perform(world: World, order: Order, settings: Settings) -> Outcome:
    if settings.mode == "observe":
        return Outcome(order, is_done=True, processes=3, is_observed=True)
    return world.perform(order)


def live(film: Film) -> list[Lived]:
    """A judge in the loop of the guard; a restart counts decisions on, as the guard does."""
    world, number = film.world, 0
    lives = [Lived(film.settings, "")]
    judge = Judge(film.settings, BOOT, own_cgroup=OWN)
    end, pause = world.now + film.seconds, 0.5
    while world.now < end:
        node = world.pass_time(pause * world.chance.uniform(0.95, 1.2))
        if film.restart_at is not None and world.now >= film.restart_at:
            film.restart_at = None
            world.thaw_all()
            last = next((v.decision for v in reversed(lives[-1].verdicts) if v), "")
            lives.append(Lived(film.settings, last))
            judge = Judge(film.settings, BOOT, own_cgroup=OWN)
            judge.count_from(last)
        number += 1
        _tick(judge, world, node, lives[-1], number)
        pause = pause_of(judge)
    return lives


def _tick(judge: Judge, world: World, node: Node, lived: Lived, number: int) -> None:
    world.detail_all(judge.wants(node, world.groups))
    verdict = judge.step(node, world.groups)
    seen = copied(world.groups)
    outcomes = []
    for order in verdict.orders if verdict is not None else ():
        outcomes.append(perform(world, order, lived.settings))
        judge.learn(outcomes[-1], node)
    judge.updates(node, world.groups)
    unix = EPOCH + node.seconds
    lived.ticks.append(Tick(number, unix, judge.state(), node, seen, tuple(outcomes)))
    lived.verdicts.append(verdict)
    if verdict is not None:
        stamp = decision_lines.Stamp(unix, BOOT, lived.settings.mode)
        lived.lines.append((number, decision_lines.verdict_line(verdict, stamp).decode().rstrip()))
