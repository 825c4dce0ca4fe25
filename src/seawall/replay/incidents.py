# SPDX-License-Identifier: Apache-2.0
"""From decisions to what an owner asks: whom, when, how much sooner or later, who was spared."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from seawall.actions.orders import Order
from seawall.replay.replay_results import BootReplay, ReplayResult, ReplayStretch, ReplayVictim

STRENGTH: Final = ("clamp", "freeze", "terminate", "kill")
HELD: Final = "suspected"
"""Stands still until it is known: nobody's end."""
Kind: TypeAlias = Literal["same", "silent", "refuses", "acts"]
"""Of another policy: the same in the same ticks; says nothing at all; only says why not; or
orders something else, or at another time."""


@dataclass
class WhatIf:
    """Another policy over one incident, beside what was decided then."""

    kind: Kind
    results: list[ReplayResult]
    both: list[tuple[ReplayVictim, ReplayVictim]] = field(default_factory=list)
    """Then, and with the policy."""
    spared: list[ReplayVictim] = field(default_factory=list)
    """Of then only."""
    beside: list[ReplayVictim] = field(default_factory=list)
    """Of the policy only."""
    parts_unix_seconds: float | None = None
    """From here on the recording does not tell what would have come of it."""


@dataclass
class Incident:
    """One stretch in which something was decided, then or now."""

    stretch: ReplayStretch
    results: list[ReplayResult]
    """With the settings of then."""
    kernel_kills: list[tuple[float, str]]
    what_if: WhatIf | None = None


def incidents(boot: BootReplay) -> list[Incident]:
    """In their order; stretches in which nobody decides anything are left out."""
    made = []
    for stretch in boot.stretches:
        then = within(boot.as_live.results, stretch)
        kills = [
            kill
            for kill in boot.kernel_kills
            if stretch.first_unix_seconds <= kill[0] <= stretch.last_unix_seconds
            and "Memory cgroup out of memory" not in kill[1]
        ]
        what_if = None
        if boot.other is not None:
            what_if = what_if_of(then, within(boot.other.results, stretch))
        if then or kills or (what_if is not None and what_if.results):
            made.append(Incident(stretch, then, kills, what_if))
    return made


def within(found: Iterable[ReplayResult], stretch: ReplayStretch) -> list[ReplayResult]:
    """Those of the stretch that were taken on every tick."""
    return [one for one in found if one.is_exact and stretch.holds(one.number)]


def in_peace(boot: BootReplay) -> list[ReplayResult]:
    """What the policy orders between the stretches, and the settings of then do not, on the same
    few ticks.
    """
    if boot.other is None:
        return []
    then = {(one.number, *map(_act, one.verdict.orders)) for one in boot.as_live.results}
    return [
        one
        for one in boot.other.results
        if not one.is_exact
        and one.acts
        and (one.number, *map(_act, one.verdict.orders)) not in then
    ]


def what_if_of(then: Sequence[ReplayResult], now: Sequence[ReplayResult]) -> WhatIf:
    """What the policy makes of one incident."""
    parts = parting(then, now)
    if parts is None and list(map(_decided, then)) == list(map(_decided, now)):
        return WhatIf("same", list(now))
    made = WhatIf("acts" if any(one.acts for one in now) else "refuses", list(now))
    if not now:
        made.kind = "silent"
    made.parts_unix_seconds = parts
    was, would = victims(then), victims(now)
    made.both = [(victim, would[path]) for path, victim in was.items() if path in would]
    made.spared = [victim for path, victim in was.items() if path not in would]
    made.beside = [victim for path, victim in would.items() if path not in was]
    return made


def parting(then: Sequence[ReplayResult], now: Sequence[ReplayResult]) -> float | None:
    """When the first order differs; None: all are the same, in the same ticks."""
    was, would = _acts(then), _acts(now)
    for one, other in zip(was, would, strict=False):
        if one != other:
            return min(one[1], other[1])
    longer = max(was, would, key=len)
    rest = longer[min(len(was), len(would)) :]
    return rest[0][1] if rest else None


def _acts(found: Sequence[ReplayResult]) -> list[tuple[int, float, str, tuple[str, ...]]]:
    return [
        (one.number, one.unix_seconds, one.mode, tuple(map(_act, one.verdict.orders)))
        for one in found
        if one.verdict.orders
    ]


def _act(order: Order) -> str:
    return f"{order.step} {order.limit_bytes or ''} {order.target.inode} {order.target.path}"


def _decided(one: ReplayResult) -> tuple[int, str, str, str]:
    """Its number in a journal may be another one."""
    verdict = one.verdict
    return one.number, verdict.trigger, verdict.refused, verdict.sentence


def victims(found: Iterable[ReplayResult]) -> dict[str, ReplayVictim]:
    """By path: the first order against it, and the strongest step of all."""
    made: dict[str, ReplayVictim] = {}
    for one in found:
        for order in one.verdict.orders:
            if order.step not in STRENGTH or order.why == HELD:
                continue
            target, was = order.target, made.get(order.target.path)
            if was is None:
                made[target.path] = ReplayVictim(
                    target.path, target.name, order.step, one.unix_seconds, order.decision
                )
            elif STRENGTH.index(order.step) > STRENGTH.index(was.step):
                made[target.path] = was._replace(step=order.step)
    return made


def hold_victims(found: Iterable[ReplayResult]) -> list[ReplayVictim]:
    """Who stands still on suspicion, each time."""
    return [
        ReplayVictim(order.target.path, order.target.name, "hold", one.unix_seconds, order.decision)
        for one in found
        for order in one.verdict.orders
        if order.step == "freeze" and order.why == HELD
    ]
