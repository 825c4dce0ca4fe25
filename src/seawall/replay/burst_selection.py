# SPDX-License-Identifier: Apache-2.0
"""The selection of one burst of a replay: that at a moment (Unix seconds)."""

from collections.abc import Sequence
from dataclasses import replace

from seawall.blackbox.reader import Boot
from seawall.replay.incidents import within
from seawall.replay.replay_results import BootReplay, DecisionComparison, ReplayRun, ReplayStretch


def boot_near(boots: Sequence[Boot], moment: float) -> list[Boot]:
    """The one that ran then, or next to it."""

    def away(boot: Boot) -> float:
        times = [head.unix_seconds for head in boot.heads]
        return _away(min(times), max(times), moment)

    return sorted(boots, key=away)[:1]


def select_burst(boot: BootReplay, moment: float) -> BootReplay:
    """The burst that holds the moment, or the nearest; where there is none, all of the boot."""
    if not boot.stretches:
        note = "no burst is in it: every tick is needed, and peace keeps one in ten seconds"
        return replace(boot, notes=[*boot.notes, note])

    def seconds(burst: ReplayStretch) -> float:
        return _away(burst.first_unix_seconds, burst.last_unix_seconds, moment)

    one = min(boot.stretches, key=seconds)
    away = seconds(one)
    notes = [f"no burst holds that moment; the nearest is {away:.0f} s away"] if away else []
    return replace(
        boot, stretches=[one], compared=_compared(boot.compared, one), notes=boot.notes + notes,
        live=[line for line in boot.live if one.holds(line.number)],
        ticks=one.ticks, coarse_ticks=0, as_live=_run(boot.as_live, one),
        other=boot.other and _run(boot.other, one),
    )  # fmt: skip


def _away(first: float, last: float, moment: float) -> float:
    return max(0.0, first - moment, moment - last)


def _run(run: ReplayRun, one: ReplayStretch) -> ReplayRun:
    return replace(run, found=within(run.found, one))


def _compared(found: DecisionComparison, one: ReplayStretch) -> DecisionComparison:
    return DecisionComparison(
        [pair for pair in found.same if one.holds(pair[1].number)],
        [row for row in found.differ if one.holds(row[1].number)],
        [row for row in found.missing if one.holds(row[0].number)],
        [extra for extra in found.extra if one.holds(extra.number)],
    )
