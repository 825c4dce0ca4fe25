# SPDX-License-Identifier: Apache-2.0
"""The guard's ticks of a black box, as rows of ``seawall blackbox show``."""

from typing import NamedTuple

from seawall.blackbox.moments import chain
from seawall.blackbox.reader import Box
from seawall.guard.tick_facts import Group
from seawall.problems import BundleProblem
from seawall.replay.tick import Tick
from seawall.replay.tick_decoder import TickDecoder
from seawall.views.blackbox_page import BoxEvent, BoxRow


class Ticks(NamedTuple):
    """What was read, by time."""

    rows: list[BoxRow]
    kills: list[BoxEvent]
    """By the kernel's own count (vmstat oom_kill)."""
    lost: int
    """Ticks that cannot be read, for one that they are a difference to is missing."""


class _Found(NamedTuple):
    """By boot and number of the tick: one tick may be there twice, of peace and of a burst."""

    rows: dict[tuple[str, int], BoxRow]
    kills: dict[tuple[str, int], BoxEvent]


def ticks_between(box: Box, since: float, until: float) -> Ticks:
    """Of every boot that ran then."""
    found = _Found({}, {})
    lost = 0
    for boot in box.boots():
        heads = [h for h in boot.heads if h.kind == "tick" and h.unix_seconds <= until]
        if not any(head.unix_seconds >= since for head in heads):
            continue
        reader = TickDecoder()
        for head, body in chain(box, heads, since):
            try:
                ticks = reader.take(body)
            except BundleProblem:
                ticks = []
                lost += 1
            if head.unix_seconds >= since - 1:
                _add(found, boot.boot_id, [t for t in ticks if since <= t.unix_seconds <= until])
        lost += reader.lost_ticks
    rows = sorted(found.rows.values(), key=lambda row: row.unix_seconds)
    kills = sorted(found.kills.values(), key=lambda event: event.unix_seconds)
    return Ticks(rows, kills, lost)


def _add(found: _Found, boot_id: str, ticks: list[Tick]) -> None:
    for tick in ticks:
        key = (boot_id, tick.number)
        found.rows[key] = row_of(tick)
        if kill := _kill(boot_id, tick):
            found.kills[key] = kill


def row_of(tick: Tick) -> BoxRow:
    """What one line tells of it."""
    node = tick.node
    leader = max(tick.groups.values(), key=_shadow_charge, default=None)
    return BoxRow(
        tick.unix_seconds, tick.number, tick.state, node.headroom_bytes, node.residual_bytes,
        node.residual_slope_bytes_per_second, node.protected_stall,
        leader.name if leader else "",
        _shadow_charge(leader) if leader else 0,
        leader.outside.certain_bytes if leader else 0,
    )  # fmt: skip


def _shadow_charge(group: Group) -> int:
    return group.charge_bytes + group.outside.certain_bytes


def _kill(boot_id: str, tick: Tick) -> BoxEvent | None:
    killed = tick.node.kernel_kills
    if killed <= 0:
        return None
    words = f"its OOM killer killed {killed} process{'es' if killed > 1 else ''}"
    return BoxEvent(tick.unix_seconds, boot_id, tick.number, "kill", "", words)
