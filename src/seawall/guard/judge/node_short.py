# SPDX-License-Identifier: Apache-2.0
"""The node is short: rank, choose or refuse, and give the first orders by the time there is."""

from collections.abc import Mapping

from seawall.actions.orders import Step
from seawall.guard.facts import Group, Node
from seawall.guard.judge import sentences, suspicion
from seawall.guard.judge.case import Case
from seawall.guard.judge.going_on import start_verifying
from seawall.guard.judge.mind import DONE, OBSERVED, Mind
from seawall.guard.judge.proof import (
    LASTS_SECONDS,
    LEAST_GROWTH,
    Causes,
    accuse_of_all,
    acquit,
    takes_on,
)
from seawall.guard.judge.ranking import rank, rows_of, shown
from seawall.guard.judge.row import OVER_LIMIT, PROVED, SOURCE_OUTSIDE, Row
from seawall.guard.judge.shortage import URGENT_SECONDS, Shortage, base_floor
from seawall.guard.judge.usefulness import Choice, Context, choose
from seawall.guard.settings import Settings
from seawall.guard.verdict import Verdict
from seawall.words import size

AGAIN_SECONDS = 60.0
SETTLED_SECONDS = 2.0
"""A refusal is said once it has held for so long (claims come a second late), and again every
minute."""
LOW_SECONDS = 0.5
"""Under the floor for so long, who proves to have brought the node there goes."""
KEPT_PART = 4
"""Of the floor: with so little left a node lives, if nobody takes more."""
BESIDE_SECONDS = 0.4
"""So long after a kill a further one is chosen before the first is verified, if time runs out."""


def judge_short(
    mind: Mind, shortage: Shortage, node: Node, groups: Mapping[str, Group]
) -> Verdict | None:  # fmt: skip
    """A decision, a refusal that is news, or None: nothing to say in this tick."""
    is_beside, is_held = bool(mind.cases), mind.suspicion is not None
    if mind.hold.is_off(node.seconds) or (is_beside and not _may_choose_beside(mind, node)):
        return None
    rows, causes = _rows(mind, node, groups)
    able = rank(rows, causes, mind.protection, node.capacity_bytes, shortage.need_bytes)
    if is_beside and not _is_urgent(mind):
        able = [row for row in able if takes_on(row)]
    kills_left = mind.hold.kills_left(node.seconds, mind.settings.kills_per_minute)
    if is_beside or is_held:  # a hold decides nothing: only proof does
        able = [row for row in able if row.tier <= PROVED]
    context = Context(
        shortage, causes, kills_left, mind.window.watched_seconds(node),
        mind.short_seconds(node.seconds), mind.hold.kept_bytes(node),
        _spare(node, base_floor(node, mind.settings)),
    )  # fmt: skip
    choice = choose(able, rows, context) if kills_left else _spent(mind)
    if choice.rows:
        return _decide(mind, node, choice, causes, (rows, able))
    found = suspicion.hold(mind, node, causes, (rows, able)) if choice.code == "unseen" else None
    if found is not None or is_beside or is_held:
        return found
    return _refuse(mind, node, choice, (rows, able))


def judge_low(
    mind: Mind, shortage: Shortage, node: Node, groups: Mapping[str, Group]
) -> Verdict | None:  # fmt: skip
    """Under the floor while the kernel still keeps up, at the price of program text or of the
    others' memory, which goes to swap: no watermark says so yet.  Only they may go by whom it was
    brought there, by what is certain of their uncounted memory.  While there is swap left,
    only who is over its own limit: nobody promised it a place in memory, or theirs in swap.
    """
    seconds = mind.low_seconds(node.seconds)
    if seconds < LOW_SECONDS or not mind.is_believed or mind.hold.is_off(node.seconds):
        return None
    if mind.suspicion is not None or (mind.cases and not _may_choose_beside(mind, node)):
        return None
    if all(group.outside.certain_bytes < LEAST_GROWTH for group in groups.values()):
        return None
    rows, causes = _rows(mind, node, groups)
    able = rank(rows, causes, mind.protection, node.capacity_bytes, shortage.need_bytes)
    tiers = (OVER_LIMIT,) if shortage.is_swapping else (OVER_LIMIT, SOURCE_OUTSIDE)
    guilty = [row for row in able if row.tier in tiers and row.beyond >= LEAST_GROWTH]
    if mind.cases:
        guilty = [row for row in guilty if takes_on(row)]
    is_most = 2 * sum(row.beyond for row in guilty) > causes.owed
    if not is_most or not mind.hold.kills_left(node.seconds, mind.settings.kills_per_minute):
        return None
    without = " without swap" if shortage.is_swapping else ""
    words = f"less than the floor of {size(shortage.floor_bytes)}{without} for {seconds:.1f} s"
    mind.shortage = shortage._replace(proof=words)
    return _decide(mind, node, Choice((guilty[0],), "", ""), causes, (rows, able))


def _rows(
    mind: Mind, node: Node, groups: Mapping[str, Group]
) -> tuple[list[Row], Causes]:  # fmt: skip
    """Who holds what, with the reasons against that only the judge's memory knows."""
    own_limits = mind.overruns.own_limits()
    rows, causes = rows_of(node, groups.values(), mind.window, mind.hold.distrusted, own_limits)
    if mind.shortage is not None:
        accuse_of_all(rows, causes, mind.shortage.need_bytes)
        acquit(rows, causes, mind.shortage.need_bytes)
        need, gone = mind.shortage.need_bytes, mind.window.gone
        causes = mind.descent.accuse(rows, causes, node, need, gone)
    _mark(mind, rows, node)
    return rows, causes


def _spare(node: Node, floor: int) -> int:
    """Over ``floor`` swap counts too: who goes on there, past its limit, is looked at again."""
    left = node.headroom_bytes if node.headroom_bytes >= floor else node.memory_bytes
    return left - floor // KEPT_PART


def _may_choose_beside(mind: Mind, node: Node) -> bool:
    """Before it is known what the last one gave back: when seconds are running out, or did until
    somebody was made to stand still, or when others take at once what comes back.
    """
    shortage = mind.shortage
    if shortage is None or len(mind.cases) > 3:
        return False
    is_urgent = _is_urgent(mind)
    return all(
        case.phase == "killed" and node.seconds - case.seconds >= BESIDE_SECONDS
        and case.most >= case.predicted // 4
        and (is_urgent or case.is_eaten(node))
        for case in mind.cases
    )  # fmt: skip


def _is_urgent(mind: Mind) -> bool:
    shortage = mind.shortage
    is_held = mind.suspicion is not None
    return is_held or (shortage is not None and shortage.budget_seconds < URGENT_SECONDS)


def _mark(mind: Mind, rows: list[Row], node: Node) -> None:
    """Reasons against that only the judge's memory knows."""
    for row in rows:
        done = mind.hold.why_done(row.group)
        if done:
            row.against.append(done)
        elif row.tier == OVER_LIMIT and not _lasts_or_grows(mind, row, node):
            row.against.append("over its limit only since a moment: looked at again first")


def _lasts_or_grows(mind: Mind, row: Row, node: Node) -> bool:
    if row.grown or row.group.outside_slope > 0:
        return True
    return mind.overruns.lasts(row.group, node.seconds, LASTS_SECONDS)


def _spent(mind: Mind) -> Choice:
    most = mind.settings.kills_per_minute
    return Choice((), "spent", f"{most} kills in the last minute: more are not allowed")


def _decide(
    mind: Mind, node: Node, choice: Choice, causes: Causes, seen: tuple[list[Row], list[Row]]
) -> Verdict:  # fmt: skip
    shortage = mind.shortage
    assert shortage is not None  # noqa: S101 - set at the beginning of every step
    chosen, held = choice.rows, mind.suspicion
    if held is not None and not any(held.holds(row.group) for row in chosen):
        held = None
    decision = held.decision if held is not None else mind.next_decision()
    case = Case(decision, "node_short", node, [(row.group, row.certain) for row in chosen])
    case.need, case.floor = shortage.need_bytes, shortage.floor_bytes
    is_proved = chosen[0].tier <= PROVED
    case.relief = case.floor + (case.need // 2 if is_proved else 0)
    case.counts_swap = not shortage.is_swapping
    step = first_step(shortage, mind.settings)
    if held is not None:
        step = "kill"  # it stood still when seconds were left
    begin(mind, case, node, step)
    going_on, dying = suspicion.release(mind, node, chosen)
    orders = going_on + case.orders(step) + dying
    mind.refusal, mind.refusal_said = "", None
    left = sentences.left(
        node.headroom_bytes, node.total_bytes, shortage, node.slope_bytes_per_second
    )
    why = sentences.guilt_of_all(chosen, causes)
    ranking, mind.rest = shown(*seen)
    what = step_words(step, is_observed=mind.is_observing, is_one=len(chosen) == 1)
    if held is not None and not mind.is_observing:
        stood = f"stood still for {node.seconds - held.seconds:.1f} s"
        was = [sentences.plain(row.group.name) for row in chosen if held.holds(row.group)]
        is_one = len(chosen) == 1
        what = f"it {stood} and is killed" if is_one else f"{was[0]} {stood}, {what}"
    return mind.verdict(
        case.decision, node, "node_short", orders=orders, ranking=ranking,
        need=case.need, sentence=f"{left}. {why}: {what}, {size(case.predicted)} should come back",
    )  # fmt: skip


def first_step(shortage: Shortage, settings: Settings) -> Step:
    """By the seconds that are left."""
    if shortage.budget_seconds < URGENT_SECONDS:
        return "kill"
    if shortage.is_calm and settings.terminate_seconds > 0:
        return "terminate"
    return "freeze" if settings.freeze_seconds > 0 else "kill"


def begin(mind: Mind, case: Case, node: Node, step: Step) -> None:
    """The case is open; whom it aims at is never chosen again."""
    if step == "kill":
        start_verifying(mind, case, node)
    else:
        case.phase = "frozen" if step == "freeze" else "terminating"
        case.deadline = node.seconds + mind.settings.terminate_seconds
    if step in ("kill", "terminate"):
        mind.count_kills(node.seconds, case.workloads)
    why = f"{OBSERVED if mind.is_observing else DONE} ({case.decision}): never twice"
    for aim in case.aims:
        mind.hold.mark_done(aim.target.path, aim.target.inode, why)
    mind.cases.append(case)


def step_words(step: Step, *, is_observed: bool, is_one: bool = True) -> str:
    """What is done now."""
    done = {
        "kill": "killed at once", "terminate": "sent SIGTERM", "freeze": "frozen, then killed",
    }.get(step, step)  # fmt: skip
    they, are = ("it", "is") if is_one else ("they", "are")
    return f"{they} {'would be' if is_observed else are} {done}"


def _refuse(
    mind: Mind, node: Node, choice: Choice, seen: tuple[list[Row], list[Row]]
) -> Verdict | None:  # fmt: skip
    now, shortage = node.seconds, mind.shortage
    if choice.code != mind.refusal:
        mind.refusal, mind.refusal_since = choice.code, now
        if mind.refusal_said is not None:
            mind.refusal_said = min(mind.refusal_said, now - AGAIN_SECONDS)
    said = mind.refusal_said
    if now - mind.refusal_since < SETTLED_SECONDS or shortage is None:
        return None
    if said is not None and now - said < AGAIN_SECONDS:
        return None
    mind.refusal_said = now
    left = sentences.left(
        node.headroom_bytes, node.total_bytes, shortage, node.slope_bytes_per_second
    )
    ranking, rest = shown(*seen)
    if said is None:  # later ones say the same of them
        mind.rest = rest
    return mind.verdict(
        mind.next_decision(), node, "node_short", ranking=ranking, need=shortage.need_bytes,
        refused=choice.refused, sentence=f"{left}. Nobody is killed: {choice.refused}",
    )  # fmt: skip
