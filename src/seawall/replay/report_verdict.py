# SPDX-License-Identifier: Apache-2.0
"""From what happened to what it means for a decision; pure, and never beyond the evidence."""

from typing import Final

from seawall.replay.report_found import Ended, Ending, Judgement, Occasion, Truth

HARM: Final = frozenset({"died", "kernel_same", "kernel_others", "kernel_somebody"})
_LONG_ENOUGH_SECONDS: Final = 60.0
"""So long something has to be recorded after it before "nothing happened" is said."""


def conclude(occasion: Occasion) -> None:
    """Set its ending and its judgement."""
    occasion.ending = _ending(occasion)
    occasion.judgement = _judgement(occasion)


def node_kills(occasion: Occasion) -> list[Ended]:
    """Kills that have to do with what the guard saw: at a limit only where that was its trigger,
    or the limit was its target's.
    """
    is_short = occasion.trigger == "node_short"
    return [
        kill for kill in occasion.truth.kills
        if not kill.is_at_limit or kill.is_target or not is_short
    ]  # fmt: skip


def _ending(occasion: Occasion) -> Ending:
    truth = occasion.truth
    kills = node_kills(occasion)
    after = [kill for kill in kills if kill.seconds >= 0]
    if truth.died_seconds is not None:
        return "died"
    if len(after) < len(kills) or (truth.unnamed and truth.unnamed_seconds < 0):
        return "kernel_before"
    if after:
        return "kernel_same" if all(kill.is_target for kill in after) else "kernel_others"
    if truth.unnamed:
        return "kernel_somebody"
    return _without_kill(occasion, truth)


def _without_kill(occasion: Occasion, truth: Truth) -> Ending:
    if truth.ended_seconds is not None and occasion.kind != "did":
        return "ended"
    if truth.recovered_seconds is not None:
        return "recovered"
    return "no_kill" if truth.seen_seconds >= _LONG_ENOUGH_SECONDS else "unknown"


def _judgement(occasion: Occasion) -> Judgement:
    ending = occasion.ending
    if occasion.kind in ("refused", "held"):
        return "none"
    if occasion.kind == "did":
        return _of_deed(occasion)
    if ending == "kernel_before":
        return "too_late"
    if ending == "recovered":
        return "wrong" if occasion.truth.is_alive else "unknown"
    if ending == "kernel_others" and _only_others(occasion):
        return "doubtful"
    if ending == "kernel_somebody":
        return "before_a_kill"
    return "in_time" if ending in HARM else "unknown"


def _only_others(occasion: Occasion) -> bool:
    """The node recovered without the end of the workload that is meant."""
    truth = occasion.truth
    is_whole = truth.recovered_seconds is not None and truth.is_alive is True
    return is_whole and not any(kill.is_target for kill in truth.kills)


def _of_deed(occasion: Occasion) -> Judgement:
    """What would have happened without it, nobody knows: only harm that came can be told."""
    if occasion.ending == "kernel_before":
        return "too_late"
    returned, predicted = occasion.returned_bytes, sum(t.predicted_bytes for t in occasion.targets)
    if returned is None or occasion.ending in HARM or returned * 4 < predicted:
        return "unknown"
    return "worked"
