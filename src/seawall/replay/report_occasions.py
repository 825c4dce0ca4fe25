# SPDX-License-Identifier: Apache-2.0
"""``seawall guard report``: what the guard did or would have done, held against what happened.

Pure.  Nobody is blamed or praised without evidence: what no record tells is ``unknown``.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from seawall.cgroup_paths import is_within
from seawall.replay.boot_story import CALM, BootStory, StoryKill
from seawall.replay.incidents import HELD, STRENGTH
from seawall.replay.journal_lines import DecisionLine, JournalOrder
from seawall.replay.report_model import (
    HARM,
    ActualEvents,
    EndedWorkload,
    Ending,
    Judgement,
    Occasion,
    ReportTarget,
)

GAP_SECONDS: Final = 90.0
"""Decisions that are nearer to each other belong together: what is only observed is said again
every 60 s."""
BEFORE_SECONDS: Final = 30.0
AFTER_SECONDS: Final = 120.0
"""What happens in these around an occasion is held against it."""
SILENT_SECONDS: Final = 60.0
LONG_ENOUGH_SECONDS: Final = 60.0
"""So long something has to be recorded after it before "nothing happened" is said."""
_STEPS: Final = ("unclamp", *STRENGTH)
_NO_END: Final = (HELD, "undo", "self_test")
_COUNTED_TOGETHER_SECONDS: Final = 5.0


def occasions_of(node: str, story: BootStory, since: float) -> list[Occasion]:
    """Of one boot since then (Unix seconds), oldest first; mere reports of limits are none
    (``report_limits``).
    """
    found: list[Occasion] = []
    for some in _together(story):
        verdicts = [said for said in some if said.kind == "verdict"]
        if verdicts[0].unix_seconds < since:
            continue
        if all(not v.aims and v.trigger != "node_short" for v in verdicts):
            continue
        occasion = _occasion(node, story, some, verdicts)
        occasion.truth = _truth(story, occasion, story.seconds_of(verdicts[-1]))
        occasion.ending = _ending(occasion)
        occasion.judgement = _judgement(occasion)
        found.append(occasion)
    return found


def _together(story: BootStory) -> Iterable[list[DecisionLine]]:
    """Verdicts that follow each other closely, with the outcomes and results under their ids."""
    later: dict[str, list[DecisionLine]] = {}
    runs: list[list[DecisionLine]] = []
    last = float("-inf")
    for said in story.by_time:
        if said.kind in ("outcome", "told"):
            later.setdefault(said.decision, []).append(said)
        elif said.kind == "verdict":
            now = story.seconds_of(said)
            if now - last > GAP_SECONDS:
                runs.append([])
            runs[-1].append(said)
            last = now
    for run in runs:
        for decision in dict.fromkeys(said.decision for said in run):
            run += later.pop(decision, [])
    return runs


def _occasion(
    node: str, story: BootStory, some: Sequence[DecisionLine], verdicts: Sequence[DecisionLine]
) -> Occasion:
    acting = [v for v in verdicts if _targets([v])]
    first = (acting or verdicts)[0]
    returned = [said.returned_bytes for said in some if said.returned_bytes is not None]
    return Occasion(
        node, story.boot_id, first.unix_seconds, story.seconds_of(first), first.mode,
        first.trigger, list(dict.fromkeys(v.decision for v in verdicts)), first.sentence,
        next((v.refused for v in reversed(verdicts) if v.refused), ""), _targets(verdicts),
        list(dict.fromkeys(a.name for v in verdicts for a in v.aims if a.why == HELD)),
        [said.done for said in some if said.done is not None],
        sum(returned) if returned else None,
    )  # fmt: skip


def _targets(verdicts: Iterable[DecisionLine]) -> list[ReportTarget]:
    """Everybody whom an order was meant for, with the hardest one."""
    found: dict[tuple[str, int], ReportTarget] = {}
    for aim in (aim for verdict in verdicts for aim in verdict.aims):
        if aim.why in _NO_END or aim.step not in _STEPS:
            continue
        known = found.get((aim.path, aim.inode))
        if known is None or _STEPS.index(aim.step) >= _STEPS.index(known.step):
            found[aim.path, aim.inode] = _target(aim, known)
    return list(found.values())


def _target(aim: JournalOrder, known: ReportTarget | None) -> ReportTarget:
    before = known.predicted_bytes if known else 0
    return ReportTarget(aim.name, aim.path, aim.inode, aim.step, max(before, aim.predicted_bytes))


def _truth(story: BootStory, occasion: Occasion, last: float) -> ActualEvents:
    begin, until = occasion.seconds, last + AFTER_SECONDS
    truth = ActualEvents()
    kills = story.kills_between(begin - BEFORE_SECONDS, until)
    truth.kills = _ended(story, occasion, kills)
    _count_unnamed(story, occasion, truth, (begin - BEFORE_SECONDS, until), kills)
    _after(story, occasion, truth, last)
    return truth


def _ended(story: BootStory, occasion: Occasion, kills: Sequence[StoryKill]) -> list[EndedWorkload]:
    """By workload, in the order of their first."""
    rows: dict[str, EndedWorkload] = {}
    for kill in kills:
        target = next((t for t in occasion.targets if is_within(kill.path, t.path)), None)
        name = target.name if target else story.name_of(kill.path) if kill.path else kill.comm
        row = rows.get(name)
        if row is not None:
            rows[name] = row._replace(processes=row.processes + 1)
            continue
        after = kill.seconds - occasion.seconds
        is_target = target is not None
        rows[name] = EndedWorkload(name, kill.path, 1, after, is_target, kill.is_at_limit)
    return list(rows.values())


def _count_unnamed(
    story: BootStory, occasion: Occasion, truth: ActualEvents, window: tuple[float, float],
    kills: Sequence[StoryKill],
) -> None:  # fmt: skip
    """Counters tell of kills that no line names; one is not counted twice."""
    rows = story.counted_kills(*window)
    rest = sum(number for _, number in rows) - len(kills)
    if rest <= 0:
        return
    alone = [
        at
        for at, _ in rows
        if all(abs(kill.seconds - at) > _COUNTED_TOGETHER_SECONDS for kill in kills)
    ]
    truth.unnamed = rest
    truth.unnamed_seconds = (alone or [rows[0][0]])[0] - occasion.seconds


def _after(story: BootStory, occasion: Occasion, truth: ActualEvents, last: float) -> None:
    """How the node and the workload went on."""
    until = last + AFTER_SECONDS
    end = story.end_seconds
    if not story.is_mute:
        truth.seen_seconds = max(0.0, min(end, until) - occasion.seconds)
    ticks = story.ticks_between(last, until)
    calm_since = None
    for tick in ticks:
        if tick.state not in CALM:
            calm_since = None
        elif calm_since is None:
            calm_since = tick.seconds
    if calm_since is not None and ticks[-1].seconds - calm_since >= 5.0:
        truth.recovered_seconds = calm_since - occasion.seconds
    elif end <= last + SILENT_SECONDS and _died(story, occasion):
        truth.died_seconds = end - occasion.seconds
    _how_targets_went_on(story, occasion, truth, until)


def _died(story: BootStory, occasion: Occasion) -> bool:
    """Silence is evidence only where a black box would have gone on, and the node booted anew."""
    return story.has_box and story.is_followed and not story.was_stopped(occasion.seconds)


def _how_targets_went_on(
    story: BootStory, occasion: Occasion, truth: ActualEvents, until: float
) -> None:
    marks = [(target.path, target.inode) for target in occasion.targets]
    gone = [story.first_missed[mark] for mark in marks if mark in story.first_missed]
    gone = [at for at in gone if at <= until]
    if gone:
        truth.is_alive = len(gone) < len(marks)
        truth.ended_seconds = min(gone) - occasion.seconds
    elif story.ticks and any(story.last_seen.get(m, 0.0) > occasion.seconds for m in marks):
        truth.is_alive = True


# --- what it means, and never beyond the evidence ---------------------------------------------


def _ending(occasion: Occasion) -> Ending:
    truth = occasion.truth
    kills = occasion.node_kills
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


def _without_kill(occasion: Occasion, truth: ActualEvents) -> Ending:
    if truth.ended_seconds is not None and occasion.kind != "did":
        return "ended"
    if truth.recovered_seconds is not None:
        return "recovered"
    return "no_kill" if truth.seen_seconds >= LONG_ENOUGH_SECONDS else "unknown"


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
