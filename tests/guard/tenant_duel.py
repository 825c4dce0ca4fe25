"""A node in motion on which one tenant does what it likes while another one takes it all.

What is told is half a second old, what is killed is gone a tick later, and each number follows from
what is held: so a test says only who does what.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.guard.judge_scene import MIB, TOTAL, calm, done, group_of, judge_of

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node, Outside

TICK = 0.1
TOLD_TICKS = 5
FREE = 1200
"""MiB that nobody has at first."""
RINGS = "packet rings traced page by page"


class Holding(NamedTuple):
    """MiB of one workload: uncounted for certain, at most, and charged."""

    certain: float = 0.0
    most: float = 0.0
    charged: float = 5.0


class Duel:
    """``holds``: what each workload has by name, changed by whoever plays it."""

    def __init__(self, **settings: Any) -> None:
        self.judge: Judge = judge_of(terminate_seconds=0.0, **settings)
        self.now = 1000.0
        self.holds: dict[str, Holding] = {"web": Holding(charged=120), "batch": Holding(charged=60)}
        self.limits: dict[str, int] = {}
        self.nobodys = 0.0
        """MiB that are held and in no claim."""
        self.node_values: dict[str, Any] = {}
        self.hands_on: set[str] = set()
        """Whose uncounted memory stays when they are killed."""
        self.ended: list[tuple[float, str]] = []
        self.sentences: list[str] = []
        self._groups: dict[str, Group] = {}
        self._past: list[dict[str, Holding]] = []
        self._left: list[float] = []
        self._residual: list[float] = []

    def step(self) -> None:
        """One tick: what is held now, what was told of it, what the judge says, what it does."""
        self._past = [*self._past, dict(self.holds)][-TOLD_TICKS - 1 :]
        node, groups = self._node(), self._seen()
        self.judge.wants(node, groups)
        verdict = self.judge.step(node, groups)
        if verdict is not None:
            self.sentences.append(verdict.sentence)
        for order in verdict.orders if verdict else ():
            self.judge.learn(done(order), node)
            if order.step == "kill":
                self._end(order.target.name.removeprefix("ns/").removeprefix("evil/"))
        self.judge.updates(node, groups)
        self.now += TICK

    def run(self, seconds: float, play: Callable[[float], None] = lambda passed: None) -> None:
        """``play``: whatever anybody does at that second of the run, before each tick."""
        began = self.now
        for _ in range(round(seconds / TICK)):
            play(self.now - began)
            self.step()

    def seconds_of(self, name: str) -> float:
        """When it was ended; infinity: never."""
        return next((at for at, one in self.ended if one == name), float("inf"))

    @property
    def victims(self) -> set[str]:
        return {name for _, name in self.ended}

    def _end(self, name: str) -> None:
        if name in self.holds:
            self.ended.append((self.now, name))
            held = self.holds.pop(name)
            if name in self.hands_on:
                self.nobodys += held.certain

    def _seen(self) -> dict[str, Group]:
        told = self._past[0]
        for name, held in self.holds.items():
            group = self._groups.get(name)
            if group is None:
                group = self._groups[name] = group_of(name, 0, limit=self.limits.get(name))
                group.started_seconds = self.now
                if name.startswith("evil"):
                    group.name, group.pod = f"evil/{name}", name
                if name == "batch":
                    group.class_rank, group.adj = BEST_EFFORT, 1000
                if name == "web":
                    group.request_bytes = 150 * MIB
            was = told.get(name, Holding())
            certain, most = int(was.certain * MIB), int(max(was.certain, was.most) * MIB)
            group.outside_slope = max(0.0, (certain - group.outside.certain_bytes) / TICK)
            group.outside = Outside(certain, certain, most, RINGS if most else "")
            charge = int(held.charged * MIB)
            group.charge_slope = (charge - group.charge_bytes) / TICK if group.charge_bytes else 0.0
            group.charge_bytes = group.gives_back_bytes = charge
        return {self._groups[name].path: self._groups[name] for name in self.holds}

    def _node(self) -> Node:
        outside = self.nobodys + sum(max(h.certain, h.most) for h in self.holds.values())
        left = FREE - outside - sum(held.charged for held in self.holds.values())
        self._left, self._residual = [*self._left, left][-11:], [*self._residual, outside][-11:]
        span = max(1, len(self._left) - 1) * TICK
        is_low = left < 60
        values: dict[str, Any] = {
            "seconds": self.now, "free_bytes": int(max(0.0, left) * MIB),
            "residual_bytes": int((40 + outside) * MIB), "claims_seconds": TOLD_TICKS * TICK,
            "slope_bytes_per_second": (self._left[0] - left) / span * MIB,
            "residual_slope_bytes_per_second": (outside - self._residual[0]) / span * MIB,
            "is_low": is_low, "stalls_per_second": 20.0 if is_low else 0.0, "total_bytes": TOTAL,
            **self.node_values,
        }  # fmt: skip
        return calm(int(left), **values)
