# SPDX-License-Identifier: Apache-2.0
"""Of a replay, only the burst at one moment."""

from dataclasses import replace

from seawall.replay.found import BootReplay, Compared, Replayed, Stretch


def narrowed(found: Replayed, unix_seconds: float) -> Replayed:
    """The boot that ran then, and of it the burst that holds the moment, or the nearest."""
    boots = sorted(found.boots, key=lambda boot: _distance(boot, unix_seconds))[:1]
    return replace(found, boots=[_of(boot, unix_seconds) for boot in boots])


def _distance(boot: BootReplay, unix_seconds: float) -> float:
    if boot.first_unix_seconds <= unix_seconds <= boot.last_unix_seconds:
        return 0.0
    ends = (boot.first_unix_seconds, boot.last_unix_seconds)
    return min(abs(end - unix_seconds) for end in ends)


def _of(boot: BootReplay, unix_seconds: float) -> BootReplay:
    if not boot.stretches:
        note = "no burst is in it: every tick is needed, and peace keeps one in ten seconds"
        return replace(boot, notes=[*boot.notes, note])
    one = min(boot.stretches, key=lambda stretch: _away(stretch, unix_seconds))
    away = _away(one, unix_seconds)
    notes = list(boot.notes)
    if away:
        notes.append(f"no burst holds that moment; the nearest is {away:.0f} s away")
    return replace(
        boot, stretches=[one], compared=_compared(boot.compared, one), notes=notes,
        live=[line for line in boot.live if one.holds(line.number)],
    )  # fmt: skip


def _away(stretch: Stretch, unix_seconds: float) -> float:
    before = stretch.first_unix_seconds - unix_seconds
    return max(0.0, before, unix_seconds - stretch.last_unix_seconds)


def _compared(found: Compared, one: Stretch) -> Compared:
    return Compared(
        [pair for pair in found.same if one.holds(pair[1].number)],
        [row for row in found.differ if one.holds(row[1].number)],
        [row for row in found.missing if one.holds(row[0].number)],
        [extra for extra in found.extra if one.holds(extra.number)],
    )
