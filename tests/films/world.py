"""A node over fake time: groups take, hold and give back; drivers leak; claims come late.

Nothing here is the judge's: the world knows the truth, and shows of it what a guard would see,
with the noise and the delays that real counters have.
"""

import operator
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

from tests.films.actor import Actor

from seawall.actions.orders import Order, Outcome
from seawall.guard.tick_facts import Group, Node, Outside

MIB = 1 << 20
FREEZE_SECONDS = 2.0
FIRST_PRICE = 0.5
PRICE_BYTES = 16 * MIB
LATE_GROWN = 256 * MIB
LATE_SHARE = 0.12
"""The watcher asks drivers when so much has grown, or so little of the node is free."""


def plain_sum(numbers: Iterable[float]) -> float:
    """Term by term: ``sum`` itself corrects the rounding of floats since Python 3.12, and a film
    whose world differs in the last bit is another film.
    """
    return reduce(operator.add, numbers, 0.0)


@dataclass
class World:
    """The node.  ``system`` is what kernel and daemons hold."""

    chance: random.Random
    total: int
    system: float
    actors: list[Actor]
    claims_every: float = 0.7
    claims_late: float = 0.5
    """Claims tell what was so long ago."""
    proof_late: float = 0.0
    """And their certain part what was so long before that; the bound is not later."""
    text: float = 0.0
    """Of ``system``, program text: the kernel drops it to stay over the low watermark, and the
    programs stand still."""
    swap: float = 0.0
    """Room for so many bytes: anonymous memory goes there before text."""
    swap_cost: float = 0.0
    """Bytes of memory that a byte there takes (zram); 0: a disk."""
    leak_rate: float = 0.0
    leak_starts: float = 0.0
    leak_most: float = float("inf")
    """A driver takes for nobody (a workqueue): in no claim at all."""
    noise: float = 2 * MIB
    rebases: bool = False
    """The residual's base follows when nothing grows (a slow leak is forgotten by it)."""
    has_watcher: bool = True
    watcher_hangs: float = float("inf")
    """From then on no claims come."""
    now: float = 1000.0
    leaked: float = 0.0
    kept: float = 0.0
    starved: float = 0.0
    """Seconds in which a third of the text or more was gone."""
    kernel_killed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.whole_text = self.text
        self.price = FIRST_PRICE if self.swap_cost else 0.0
        self.repriced = 0.0
        self.low, self.min = self.total * 0.008, self.total * 0.005
        self.groups = {actor.path: actor.sees for actor in self.actors}
        self.claims_at = float("-inf")
        self.told_of = self.now
        self.pending: list[tuple[float, list[tuple[Actor, float, float, float]]]] = []
        self.headroom = self.true_headroom()
        self.slope = 0.0
        self.residual_base = self.residual = 40.0 * MIB + plain_sum(a.outside for a in self.actors)
        self.residual_slope = 0.0
        self.exits = self.kills = 0
        for _ in range(2):
            self._watch(force=True)
            self.now += self.claims_late + 0.01
        self._show(1.0, first=True)

    def free(self) -> float:
        used = plain_sum(
            a.anon - a.swapped + a.cache + a.outside for a in self.actors if not a.is_gone
        )
        used += self.swap_cost * self.swap_used()
        return self.total - self.system - self.leaked - self.kept - used

    def swap_used(self) -> float:
        return plain_sum(a.swapped + a.kept_in_swap for a in self.actors if not a.is_gone)

    def true_headroom(self) -> float:
        cache = plain_sum(a.cache for a in self.actors if not a.is_gone)
        return self.free() - self.low + cache + (1 - self.swap_cost) * self.swap_room()

    def swap_room(self) -> float:
        """What can still go there."""
        there = plain_sum(a.anon - a.swapped for a in self.actors if not a.is_gone)
        return min(max(0.0, self.swap - self.swap_used()), there)

    def pass_time(self, seconds: float) -> Node:
        """The world goes on; what the guard sees then."""
        self.now += seconds
        for actor in self.actors:
            if not actor.is_gone:
                if actor.is_frozen and self.now - actor.frozen_at >= FREEZE_SECONDS:
                    actor.is_frozen = False  # by the hands, whatever the judge does
                if self.now >= actor.restarts and actor.ends is None:
                    actor.begin_anew(self.now)
                    self.groups[actor.path] = actor.sees
                    self.exits += 1
                actor.take(self.now, seconds)
                if self.proof_late:
                    actor.past.append((self.now, actor.outside))
                if actor.ends is not None and self.now >= actor.ends:
                    self._end(actor, seconds)
        if self.now >= self.leak_starts:
            more = min(self.leak_rate * seconds, self.leak_most)
            self.leaked, self.leak_most = self.leaked + more, self.leak_most - more
        self._reclaim()
        if self.text < self.whole_text * 2 / 3:
            self.starved += seconds
        if self.has_watcher:
            self._watch()
        return self._show(seconds)

    def _end(self, actor: Actor, seconds: float) -> None:
        """An ending group gives back a third of the node in a second."""
        back = self.total / 3 * seconds
        for kind in ("anon", "cache", "outside"):
            held = getattr(actor, kind)
            gone = min(held, back)
            back -= gone
            setattr(actor, kind, held - gone)
            if kind == "anon":
                actor.swapped = min(actor.swapped, actor.anon)
                actor.kept_in_swap = min(actor.kept_in_swap, actor.anon - actor.swapped)
            if kind == "outside" and actor.driver_keeps:
                self.leaked += gone
            if kind == "anon" and not actor.gives_back:
                self.kept += gone
        if actor.anon + actor.cache + actor.outside < 1:
            actor.is_gone = True
            self.exits += 1
            self.groups.pop(actor.path, None)

    def _reclaim(self) -> None:
        """Cache goes first, then swap takes what it can, then text; when there is none, the kernel
        kills by its own badness.
        """
        short = self.low - self.free()
        if short > 0:
            for actor in self.actors:
                gone = min(actor.cache, short)
                actor.cache -= gone
                short -= gone
        short = self._swap_out(short) if short > 0 else self._swap_in(short)
        # With room again, what was dropped is read again.
        gone = max(min(self.text, short), self.text - self.whole_text)
        self.text, self.system = self.text - gone, self.system - gone
        if self.free() < self.min / 2 and not any(
            a.ends is not None and not a.is_gone and not a.stuck_seconds for a in self.actors
        ):
            alive = [a for a in self.actors if a.ends is None and not a.is_gone]
            alive = [a for a in alive if a.adj is None or a.adj > -998]
            if alive:
                worst = max(alive, key=lambda a: a.anon / self.total * 1000 + (a.adj or 0))
                worst.ends = self.now
                self.kills += 1
                self.kernel_killed.append(worst.name)

    def _swap_out(self, short: float) -> float:
        """Of everybody's memory; what is short still."""
        room = self.swap_room()
        if self.swap_cost >= 1 or room <= 0:
            return short
        share = min(1.0, short / (1 - self.swap_cost) / room) * room
        share /= plain_sum(a.anon - a.swapped for a in self.actors if not a.is_gone)
        for actor in self.actors:
            gone = (actor.anon - actor.swapped) * share
            actor.swapped += gone
            actor.kept_in_swap = max(0.0, actor.kept_in_swap - gone)
            short -= gone * (1 - self.swap_cost)
        return max(0.0, short)

    def _swap_in(self, short: float) -> float:
        """With room again everybody reads some of its memory back, and keeps its place there."""
        for actor in self.actors:
            back = min(actor.swapped * 0.1, max(0.0, -short))
            actor.swapped -= back
            if self.swap_used() < self.swap / 2:
                actor.kept_in_swap += back
            short += back
        return short

    def _watch(self, *, force: bool = False) -> None:
        if self.now >= self.watcher_hangs:
            return
        if force or self.now - self.claims_at >= self.claims_every:
            self.claims_at = self.now
            held = [
                (a, self._proved(a), a.outside, a.suspected)
                for a in self.actors
                if (a.outside or a.suspected) and not (a.is_asked_late and self._is_calm)
            ]  # fmt: skip
            self.pending.append((self.now + self.claims_late, held))
        while self.pending and self.pending[0][0] <= self.now:
            due, held = self.pending.pop(0)
            self.told_of = due - self.claims_late
            for actor, proved, outside, suspected in held:
                if self.told_of < actor.born:
                    continue
                sure = int(proved * actor.certainty * self.chance.uniform(0.98, 1.0))
                most = max(sure, int(outside + suspected))
                old = actor.told.certain_bytes
                actor.told = Outside(sure, max(sure, most // 2), most, actor.sources)
                actor.sees.outside_slope = (sure - old) / self.claims_every

    @property
    def _is_calm(self) -> bool:
        grown = self.residual - self.residual_base
        return grown < LATE_GROWN and self.free() > LATE_SHARE * self.total

    def _proved(self, actor: Actor) -> float:
        """What it held when its proof was made."""
        then = self.now - self.proof_late
        known = [held for at, held in actor.past if at <= then]
        return min(actor.outside, known[-1] if known else actor.outside)

    def _show(self, seconds: float, *, first: bool = False) -> Node:
        chance, noise = self.chance, self.noise
        certain = 0
        cached = plain_sum(actor.kept_in_swap for actor in self.actors if not actor.is_gone)
        for actor in self.actors:
            if actor.is_gone:
                continue
            sees = actor.sees
            wobble = actor.wobble * chance.random() if actor.wobble else 0.0
            charge = int(
                actor.anon - actor.swapped + actor.cache + wobble + noise * 0.2 * chance.random()
            )
            was = sees.taken_bytes
            if self.swap:
                sees.swapped_bytes = int(actor.swapped + actor.kept_in_swap)
                sees.swap_cached_bytes = min(sees.swapped_bytes, int(cached))
            sees.charge_bytes = charge
            slope = 0.0 if first else (sees.taken_bytes - was) / seconds
            sees.charge_slope += 0.5 * (slope - sees.charge_slope)
            sees.outside = actor.told
            certain += actor.told.certain_bytes
            if sees.gives_back_bytes is not None and not first:
                hard = (actor.anon - actor.swapped) * actor.gives_back + wobble
                sees.gives_back_bytes = int(min(charge, hard))
        self._learn_price()
        room = (1 - self.price) * self.swap_room()
        headroom = self.true_headroom() - (1 - self.swap_cost) * self.swap_room() + room
        headroom += noise * chance.uniform(-1, 1)
        weight = min(1.0, seconds / 1.0)
        fall = (self.headroom - headroom) / seconds
        self.slope = 0.0 if first else self.slope + weight * (fall - self.slope)
        self.headroom = headroom
        self._show_residual(seconds)
        return self._node(int(headroom), certain)

    def _learn_price(self) -> None:
        """Once there is enough in it, it is known what a byte in zram takes."""
        if self.swap_cost and self.swap_used() > PRICE_BYTES and self.price != self.swap_cost:
            self.repriced += (self.swap_cost - self.price) * self.swap_room()
            self.price = self.swap_cost

    def _show_residual(self, seconds: float) -> None:
        held = plain_sum(a.outside for a in self.actors if not a.is_gone)
        residual = 40.0 * MIB + held + self.leaked + self.noise * self.chance.uniform(-1, 1)
        slope = (residual - self.residual) / seconds
        self.residual_slope += min(1.0, seconds) * (slope - self.residual_slope)
        self.residual = residual
        if self.rebases and abs(self.residual_slope) < 2 * MIB:
            self.residual_base = residual

    def _node(self, headroom: int, certain: int) -> Node:
        free = self.free()
        grown = max(0, int(self.residual - self.residual_base))
        is_tight = free < self.low
        kills, exits, self.kills, self.exits = self.kills, self.exits, 0, 0
        age = self.now - self.told_of if self.has_watcher else None
        return Node(
            seconds=self.now, total_bytes=self.total, free_bytes=max(0, int(free)),
            headroom_bytes=headroom, swap_bytes=int((1 - self.price) * self.swap_room()),
            swap_used_bytes=int(self.swap_used()),
            comparable_bytes=int(headroom + self.repriced + self.text),
            slope_bytes_per_second=self.slope,
            residual_bytes=int(self.residual), residual_grown_bytes=grown,
            residual_slope_bytes_per_second=self.residual_slope,
            unexplained_growth_bytes=max(0, min(grown, int(self.residual) - 40 * MIB - certain)),
            is_low=is_tight, is_min=free < self.min,
            stalls_per_second=40.0 if is_tight else 0.0,
            protected_stall=0.3 if free < self.min else 0.0,
            late_seconds=0.0, own_major_faults=0, kernel_kills=kills, exits=exits,
            claims_seconds=age,
        )  # fmt: skip

    def detail_all(self, wanted: Iterable[Group]) -> None:
        """What reading their memory.stat tells; of others it is not known any more."""
        for group in self.groups.values():
            group.gives_back_bytes = None
        for group in wanted:
            actor = next(a for a in self.actors if a.sees is group)
            hard = (actor.anon - actor.swapped) * actor.gives_back
            group.gives_back_bytes = int(min(group.charge_bytes, hard))
            group.swap_cached_bytes = min(group.swap_cached_bytes, int(actor.kept_in_swap))

    def thaw_all(self) -> None:
        """What a guard does when it starts."""
        for actor in self.actors:
            actor.is_frozen = False

    def perform(self, order: Order) -> Outcome:
        """The order takes effect as it would on a node."""
        actor = next((a for a in self.actors if a.path == order.target.path), None)
        if actor is None or actor.is_gone or actor.inode != order.target.inode:
            return Outcome(order, is_done=False, problem="it is gone")
        if order.step in ("freeze", "thaw"):
            actor.is_frozen, actor.frozen_at = order.step == "freeze", self.now
        elif order.step == "kill":
            actor.ends = self.now + actor.stuck_seconds + self.chance.uniform(0.02, 0.2)
            left = 2 if actor.stuck_seconds else 0
            return Outcome(order, is_done=True, processes=3, left=left, seconds=0.01)
        elif order.step == "terminate" and actor.term_seconds is not None:
            actor.ends = actor.ends or self.now + actor.term_seconds
        return Outcome(order, is_done=True, processes=3, seconds=0.01)
