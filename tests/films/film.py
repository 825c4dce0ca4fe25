"""A film: a world, who may be chosen in it, and what a judge does over its time."""

from dataclasses import dataclass, field

from tests.films.world import FREEZE_SECONDS, World

from seawall.actions.orders import Order
from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Node
from seawall.guard.verdict import DecisionUpdate, Verdict

REST_SECONDS = 10.0
ENDS = ("freeze", "terminate", "kill", "clamp")


@dataclass
class Film:
    """``right``: the only ones that may ever be acted on, declared before it runs."""

    name: str
    world: World
    right: frozenset[str]
    settings: Settings
    seconds: float
    must_act: bool = False
    """A right victim has to be chosen before the kernel kills."""
    restart_at: float | None = None
    guilty_until: dict[str, float] = field(default_factory=dict)
    """Names that are right as well, up to then."""


@dataclass
class Shown:
    """What happened."""

    film: Film
    chosen: list[str] = field(default_factory=list)
    """Names, in the order of their first destructive order; a freeze before a kill counts,
    one on suspicion does not.
    """
    chosen_at: list[float] = field(default_factory=list)
    held: list[tuple[float, float, str]] = field(default_factory=list)
    """From when until when somebody stood still on suspicion."""
    killed: list[tuple[float, str]] = field(default_factory=list)
    """Seconds and names of SIGTERM and SIGKILL."""
    verdicts: list[Verdict] = field(default_factory=list)
    told: list[DecisionUpdate] = field(default_factory=list)
    kernel_first: bool = False
    """The kernel had killed somebody before the judge chose."""
    ticks: int = 0

    @property
    def wrong(self) -> list[str]:
        until, at = self.film.guilty_until, dict(zip(self.chosen, self.chosen_at, strict=True))
        return [
            name
            for name in self.chosen
            if name not in self.film.right and at[name] >= until.get(name, 0.0)
        ]

    @property
    def unfair(self) -> list[str]:
        """Who was held who may not be, for too long, or again too soon."""
        found, last = [], dict[str, float]()
        may = {actor.sees.name for actor in self.film.world.actors if actor.is_in_reach}
        for since, until, name in self.held:
            if name not in may:
                found.append(f"{name} held, and never may be")
            if until - since > FREEZE_SECONDS:
                found.append(f"{name} held for {until - since:.2f} s")
            if since - last.get(name, -1e9) < REST_SECONDS:
                found.append(f"{name} held again after {since - last[name]:.1f} s")
            last[name] = until
        return found

    @property
    def in_time(self) -> bool:
        return bool(self.chosen) and not self.kernel_first


def play(film: Film) -> Shown:
    """Runs it to its end."""
    world, shown = film.world, Shown(film)
    judge = Judge(film.settings, "5eed0000-0000", own_cgroup="/system.slice/guard.service")
    end = world.now + film.seconds
    pause = 0.5
    while world.now < end:
        node = world.pass_time(pause * world.chance.uniform(0.95, 1.2))
        shown.ticks += 1
        if film.restart_at is not None and world.now >= film.restart_at:
            film.restart_at = None
            world.thaw_all()
            judge = Judge(film.settings, "5eed0001-0000", own_cgroup="/system.slice/guard.service")
        world.detail_all(judge.wants(node, world.groups))
        verdict = judge.step(node, world.groups)
        if verdict is not None:
            _act(judge, verdict, node, shown)
        shown.told += judge.updates(node, world.groups)
        pause = pause_of(judge)
    return shown


def pause_of(judge: Judge) -> float:
    return {"peace": 0.7, "near": 0.25}.get(judge.state(), 0.12)


def _act(judge: Judge, verdict: Verdict, node: Node, shown: Shown) -> None:
    shown.verdicts.append(verdict)
    world = shown.film.world
    for order in verdict.orders:
        name = order.target.name
        if order.why == "suspected":
            _hold(order, node, shown)
        elif order.step in ENDS and name not in shown.chosen:
            if not shown.chosen and world.kernel_killed:
                shown.kernel_first = True
            shown.chosen.append(name)
            shown.chosen_at.append(node.seconds)
        if order.step in ("kill", "terminate"):
            shown.killed.append((node.seconds, name))
        judge.learn(world.perform(order), node)


def _hold(order: Order, node: Node, shown: Shown) -> None:
    name = order.target.name
    if order.step == "freeze":
        until = node.seconds + FREEZE_SECONDS
        shown.held.append((node.seconds, until, name))
        return
    at, (since, _, _) = next(
        (at, row) for at, row in reversed(list(enumerate(shown.held))) if row[2] == name
    )
    shown.held[at] = (since, node.seconds, name)
