# SPDX-License-Identifier: Apache-2.0
"""``seawall guard report``: what the guard did or would have done, held against what happened.

Pure.  Nobody is blamed or praised without evidence: what no record tells is ``unknown``.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from seawall.replay.report_found import Ended, Occasion, Target, Truth
from seawall.replay.report_lines import Aim, Said
from seawall.replay.report_story import CALM, Kill, Story
from seawall.replay.report_verdict import conclude

GAP_SECONDS: Final = 90.0
"""Decisions that are nearer to each other belong together: what is only observed is said again
every 60 s."""
BEFORE_SECONDS: Final = 30.0
AFTER_SECONDS: Final = 120.0
"""What happens in these around an occasion is held against it."""
SILENT_SECONDS: Final = 60.0
_STEPS: Final = ("unclamp", "clamp", "freeze", "terminate", "kill")
_SUSPECTED: Final = "suspected"
_NO_WORKLOAD: Final = ("undo", "self_test")
_COUNTED_TOGETHER_SECONDS: Final = 5.0


def occasions_of(node: str, story: Story, since: float) -> tuple[list[Occasion], int]:
    """Of one boot since then (Unix seconds), oldest first; and how many decisions were mere
    reports of limits.
    """
    found: list[Occasion] = []
    reports = 0
    for some in _together(story):
        verdicts = [said for said in some if said.kind == "verdict"]
        if verdicts[0].unix_seconds < since:
            continue
        if all(not v.aims and v.trigger != "node_short" for v in verdicts):
            reports += len(verdicts)
            continue
        occasion = _occasion(node, story, some, verdicts)
        occasion.truth = _truth(story, occasion, story.seconds_of(verdicts[-1]))
        conclude(occasion)
        found.append(occasion)
    return found, reports


def _together(story: Story) -> Iterable[list[Said]]:
    """Verdicts that follow each other closely, with the outcomes and results under their ids."""
    later: dict[str, list[Said]] = {}
    runs: list[list[Said]] = []
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


def _occasion(node: str, story: Story, some: Sequence[Said], verdicts: Sequence[Said]) -> Occasion:
    acting = [v for v in verdicts if _targets([v])]
    first = (acting or verdicts)[0]
    told = [said for said in some if said.kind == "told"]
    returned = [said.returned_bytes for said in told if said.returned_bytes is not None]
    return Occasion(
        node, story.boot_id, first.unix_seconds, story.seconds_of(first), first.mode,
        first.trigger, list(dict.fromkeys(v.decision for v in verdicts)), first.sentence,
        next((v.refused for v in reversed(verdicts) if v.refused), ""), _targets(verdicts),
        list(dict.fromkeys(a.name for v in verdicts for a in v.aims if a.why == _SUSPECTED)),
        [said.done for said in some if said.done is not None],
        sum(returned) if returned else None, told[-1].sentence if told else "",
    )  # fmt: skip


def _targets(verdicts: Iterable[Said]) -> list[Target]:
    """Everybody whom an order was meant for, with the hardest one."""
    found: dict[tuple[str, int], Target] = {}
    for aim in (aim for verdict in verdicts for aim in verdict.aims):
        if aim.why == _SUSPECTED or aim.why in _NO_WORKLOAD or aim.step not in _STEPS:
            continue
        known = found.get((aim.path, aim.inode))
        if known is None or _STEPS.index(aim.step) >= _STEPS.index(known.step):
            found[aim.path, aim.inode] = _target(aim, known)
    return list(found.values())


def _target(aim: Aim, known: Target | None) -> Target:
    before = known.predicted_bytes if known else 0
    return Target(aim.name, aim.path, aim.inode, aim.step, max(before, aim.predicted_bytes))


def _truth(story: Story, occasion: Occasion, last: float) -> Truth:
    begin, until = occasion.seconds, last + AFTER_SECONDS
    truth = Truth()
    kills = [k for k in story.kills if begin - BEFORE_SECONDS <= k.seconds <= until]
    truth.kills = _ended(story, occasion, kills)
    _count_unnamed(story, occasion, truth, (begin - BEFORE_SECONDS, until), kills)
    _after(story, occasion, truth, last)
    return truth


def _ended(story: Story, occasion: Occasion, kills: Sequence[Kill]) -> list[Ended]:
    """By workload, in the order of their first."""
    rows: dict[str, Ended] = {}
    for kill in kills:
        target = next((t for t in occasion.targets if _is_in(kill.path, t.path)), None)
        name = target.name if target else story.name_of(kill.path) if kill.path else kill.comm
        row = rows.get(name)
        if row is not None:
            rows[name] = row._replace(processes=row.processes + 1)
            continue
        after = kill.seconds - occasion.seconds
        is_target = target is not None
        rows[name] = Ended(name, kill.path, 1, after, is_target, kill.is_at_limit)
    return list(rows.values())


def _is_in(path: str, workload: str) -> bool:
    return path == workload or path.startswith(workload.rstrip("/") + "/")


def _count_unnamed(
    story: Story, occasion: Occasion, truth: Truth, window: tuple[float, float],
    kills: Sequence[Kill],
) -> None:  # fmt: skip
    """Counters tell of kills that no line names; one is not counted twice."""
    rows = story.counted(*window)
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


def _after(story: Story, occasion: Occasion, truth: Truth, last: float) -> None:
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


def _died(story: Story, occasion: Occasion) -> bool:
    """Silence is evidence only where a black box would have gone on, and the node booted anew."""
    return story.has_box and story.is_followed and not story.was_stopped(occasion.seconds)


def _how_targets_went_on(story: Story, occasion: Occasion, truth: Truth, until: float) -> None:
    marks = [(target.path, target.inode) for target in occasion.targets]
    gone = [story.first_missed[mark] for mark in marks if mark in story.first_missed]
    gone = [at for at in gone if at <= until]
    if gone:
        truth.is_alive = len(gone) < len(marks)
        truth.ended_seconds = min(gone) - occasion.seconds
    elif marks and story.ticks and story.ticks[-1].seconds > occasion.seconds:
        truth.is_alive = True
