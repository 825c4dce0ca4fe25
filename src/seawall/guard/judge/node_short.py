# SPDX-License-Identifier: Apache-2.0
"""The node is short: rank, choose or refuse, and give the first orders by the time there is."""

from collections.abc import Mapping

from seawall.actions.orders import Step
from seawall.guard.judge import sentences, suspicion
from seawall.guard.judge.case_steps import start_verifying
from seawall.guard.judge.cooldown import TENANTS_TIMES, tenant_of
from seawall.guard.judge.decision_case import DecisionCase
from seawall.guard.judge.evidence import given_back_since
from seawall.guard.judge.policy_state import DONE, OBSERVED, PolicyState
from seawall.guard.judge.proof import (
    LASTS_SECONDS,
    LEAST_GROWTH,
    Causes,
    accuse_of_all,
    acquit,
    takes_on,
)
from seawall.guard.judge.ranking import RankedRows, rank, ranks_of, rows_of
from seawall.guard.judge.row import OVER_LIMIT, PROVED, Row
from seawall.guard.judge.shortage import URGENT_SECONDS, Shortage, base_floor
from seawall.guard.judge.user_parts import parts_of_rows, why_no_part
from seawall.guard.judge.victim_choice import ChoiceContext, VictimChoice, choose
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node
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
    state: PolicyState, shortage: Shortage, node: Node, groups: Mapping[str, Group]
) -> Verdict | None:  # fmt: skip
    """A decision, a refusal that is news, or None: nothing to say in this tick."""
    is_beside, is_held = bool(state.cases), state.suspicion is not None
    if state.hold.is_off(node.seconds) or (is_beside and not _may_choose_beside(state, node)):
        return None
    rows, causes = rows_with_causes(state, node, groups)
    able = rank(rows, causes, state.protection, node.capacity_bytes, shortage.need_bytes)
    if is_beside and not _is_urgent(state):
        able = [row for row in able if takes_on(row)]
    kills_left = state.hold.kills_left(node.seconds, state.settings.kills_per_minute)
    if is_beside or is_held:  # a hold decides nothing: only proof does
        able = [row for row in able if row.tier <= PROVED]
    if not kills_left:
        able = _with_own_kill(state, node, able)
        most = TENANTS_TIMES * state.settings.kills_per_minute
        kills_left = min(len(able), state.hold.kills_left(node.seconds, most))
    context = ChoiceContext(
        shortage, causes, kills_left, state.window.watched_seconds(node),
        state.short_seconds(node.seconds), state.hold.kept_bytes(node),
        _spare(node, base_floor(node, state.settings)),
    )  # fmt: skip
    choice = choose(able, rows, context) if kills_left else _spent(state)
    ranked = RankedRows(rows, able)
    if choice.rows:
        return _decide(state, node, choice, causes, ranked)
    found = suspicion.hold(state, node, causes, ranked) if choice.code == "unseen" else None
    if found is not None or is_beside or is_held:
        return found
    return _refuse(state, node, choice, ranked)


def judge_low(
    state: PolicyState, shortage: Shortage, node: Node, groups: Mapping[str, Group]
) -> Verdict | None:  # fmt: skip
    """Under the floor while the kernel still keeps up, at the price of program text or of the
    others' memory, which goes to swap: no watermark says so yet.  Only they may go by whom it was
    brought there, by what is certain of their uncounted memory.  While there is swap left,
    only who is over its own limit: nobody promised it a place in memory, or theirs in swap.
    """
    seconds = state.low_seconds(node.seconds)
    is_believed = given_back_since(node, state.window) is not None
    if seconds < LOW_SECONDS or not is_believed or state.hold.is_off(node.seconds):
        return None
    if state.suspicion is not None or (state.cases and not _may_choose_beside(state, node)):
        return None
    if all(group.outside.certain_bytes < LEAST_GROWTH for group in groups.values()):
        return None
    rows, causes = rows_with_causes(state, node, groups)
    able = rank(rows, causes, state.protection, node.capacity_bytes, shortage.need_bytes)
    guilty = [row for row in able if row.is_proved_outside and row.beyond >= LEAST_GROWTH]
    if shortage.is_swapping:
        guilty = [row for row in guilty if row.tier == OVER_LIMIT]
    if state.cases:
        guilty = [row for row in guilty if takes_on(row)]
    is_most = 2 * sum(row.beyond for row in guilty) > causes.owed
    chosen = next((row for row in guilty if state.may_kill(row.group, node.seconds)), None)
    if not is_most or chosen is None:
        return None
    without = " without swap" if shortage.is_swapping else ""
    words = f"less than the floor of {size(shortage.floor_bytes)}{without} for {seconds:.1f} s"
    state.shortage = shortage._replace(proof=words)
    return _decide(state, node, VictimChoice((chosen,), "", ""), causes, RankedRows(rows, able))


def _with_own_kill(state: PolicyState, node: Node, able: list[Row]) -> list[Row]:
    """The kills of this minute are spent: who is proved, of a tenant that had none of them; the
    first of each.  Else whoever has his own killed one after the other would make all others safe.
    """
    found: dict[str, Row] = {}
    for row in able:
        if row.tier <= PROVED and state.may_kill(row.group, node.seconds):
            found.setdefault(tenant_of(row.group), row)
    return list(found.values())


def rows_with_causes(
    state: PolicyState, node: Node, groups: Mapping[str, Group]
) -> tuple[list[Row], Causes]:  # fmt: skip
    """Who holds what, with the reasons against that only the judge's memory knows."""
    own_limits = state.overruns.own_limits()
    rows, causes = rows_of(node, groups.values(), state.window, state.hold.doubts, own_limits)
    if state.shortage is not None:
        accuse_of_all(rows, causes, state.shortage.need_bytes)
        acquit(rows, causes, state.shortage.need_bytes)
        need, gone = state.shortage.need_bytes, state.window.gone
        causes = state.descent.accuse(rows, causes, node, need, gone)
    _mark(state, rows, node)
    return rows, causes


def _spare(node: Node, floor: int) -> int:
    """Over ``floor`` swap counts too: who goes on there, past its limit, is looked at again."""
    left = node.headroom_bytes if node.headroom_bytes >= floor else node.memory_bytes
    return left - floor // KEPT_PART


def _may_choose_beside(state: PolicyState, node: Node) -> bool:
    """Before it is known what the last one gave back: when seconds are running out, or did until
    somebody was made to stand still, or when others take at once what comes back.
    """
    shortage = state.shortage
    if shortage is None or len(state.cases) > 3:
        return False
    is_urgent = _is_urgent(state)
    return all(
        case.phase == "killed" and node.seconds - case.seconds >= BESIDE_SECONDS
        and (
            case.most >= case.predicted // 4
            or node.seconds - case.seconds >= state.settings.verify_seconds
        )
        and (is_urgent or case.is_eaten(node))
        for case in state.cases
    )  # fmt: skip


def _is_urgent(state: PolicyState) -> bool:
    shortage = state.shortage
    is_held = state.suspicion is not None
    return is_held or (shortage is not None and shortage.budget_seconds < URGENT_SECONDS)


def _mark(state: PolicyState, rows: list[Row], node: Node) -> None:
    """Reasons against that only the judge's memory knows."""
    for row in rows:
        done = state.hold.why_done(row.group)
        done = done or why_no_part(state, row.group, uncounted=row.tier == OVER_LIMIT, at=node)
        if done:
            row.against.append(done)
        elif row.tier == OVER_LIMIT and not _lasts_or_grows(state, row, node):
            row.against.append("over its limit only since a moment: looked at again first")


def _lasts_or_grows(state: PolicyState, row: Row, node: Node) -> bool:
    if row.grown or row.group.outside_slope > 0:
        return True
    return state.overruns.lasts(row.group, node.seconds, LASTS_SECONDS)


def _spent(state: PolicyState) -> VictimChoice:
    most = state.settings.kills_per_minute
    return VictimChoice((), "spent", f"{most} kills in the last minute: more are not allowed")


def _decide(
    state: PolicyState, node: Node, choice: VictimChoice, causes: Causes, ranked: RankedRows
) -> Verdict:  # fmt: skip
    shortage = state.shortage
    assert shortage is not None  # noqa: S101 - set at the beginning of every step
    chosen, held = choice.rows, state.suspicion
    if held is not None and not any(held.holds(row.group) for row in chosen):
        held = None
    decision = held.decision if held is not None else state.next_decision()
    case = DecisionCase(
        decision, "node_short", node, [(row.group, row.certain) for row in chosen],
        parts_of_rows(chosen, state.window.best(node)),
    )  # fmt: skip
    case.need, case.floor = shortage.need_bytes, shortage.floor_bytes
    is_proved = chosen[0].tier <= PROVED
    case.relief = case.floor + (case.need // 2 if is_proved else 0)
    case.counts_swap = not shortage.is_swapping
    step = first_step(shortage, state.settings)
    if held is not None:
        step = "kill"  # it stood still when seconds were left
    begin(state, case, node, step)
    going_on, dying = suspicion.release(state, node, chosen)
    orders = going_on + case.orders(step) + dying
    state.refusal, state.refusal_said = "", None
    left = sentences.left(
        node.headroom_bytes, node.total_bytes, shortage, node.slope_bytes_per_second
    )
    why = sentences.guilt_of_all(chosen, causes)
    ranking, state.rest = ranks_of(*ranked)
    what = step_words(step, is_observed=state.is_observing, is_one=len(chosen) == 1)
    if held is not None and not state.is_observing:
        stood = f"stood still for {node.seconds - held.seconds:.1f} s"
        was = [sentences.plain(row.group.name) for row in chosen if held.holds(row.group)]
        is_one = len(chosen) == 1
        what = f"it {stood} and is killed" if is_one else f"{was[0]} {stood}, {what}"
    return state.verdict(
        case.decision, node, "node_short", orders=orders, ranking=ranking,
        need=case.need,
        sentence=f"{left}. {why}: {what}{case.part_words}, {size(case.predicted)} should come back",
    )  # fmt: skip


def first_step(shortage: Shortage, settings: Settings) -> Step:
    """By the seconds that are left."""
    if shortage.budget_seconds < URGENT_SECONDS:
        return "kill"
    if shortage.is_calm and settings.terminate_seconds > 0:
        return "terminate"
    return "freeze" if settings.freeze_seconds > 0 else "kill"


def begin(state: PolicyState, case: DecisionCase, node: Node, step: Step) -> None:
    """The case is open; whom it aims at is never chosen again."""
    if step == "kill":
        start_verifying(state, case, node)
    else:
        case.phase = "frozen" if step == "freeze" else "terminating"
        case.deadline = node.seconds + state.settings.terminate_seconds
    if step in ("kill", "terminate"):
        state.count_kills(case, node.seconds)
    why = f"{OBSERVED if state.is_observing else DONE} ({case.decision}): never twice"
    for aim in case.aims:
        state.hold.mark_done(aim.target.path, aim.target.inode, why)
    state.cases.append(case)


def step_words(step: Step, *, is_observed: bool, is_one: bool = True) -> str:
    """What a step does to its target, in words: ``it is killed at once``."""
    done = {
        "kill": "killed at once", "terminate": "sent SIGTERM", "freeze": "frozen, then killed",
    }.get(step, step)  # fmt: skip
    they, are = ("it", "is") if is_one else ("they", "are")
    return f"{they} {'would be' if is_observed else are} {done}"


def _refuse(
    state: PolicyState, node: Node, choice: VictimChoice, ranked: RankedRows
) -> Verdict | None:  # fmt: skip
    now, shortage = node.seconds, state.shortage
    if choice.code != state.refusal:
        state.refusal, state.refusal_since = choice.code, now
        if state.refusal_said is not None:
            state.refusal_said = min(state.refusal_said, now - AGAIN_SECONDS)
    said = state.refusal_said
    if now - state.refusal_since < SETTLED_SECONDS or shortage is None:
        return None
    if said is not None and now - said < AGAIN_SECONDS:
        return None
    state.refusal_said = now
    left = sentences.left(
        node.headroom_bytes, node.total_bytes, shortage, node.slope_bytes_per_second
    )
    ranking, rest = ranks_of(*ranked)
    if said is None:  # later ones say the same of them
        state.rest = rest
    return state.verdict(
        state.next_decision(), node, "node_short", ranking=ranking, need=shortage.need_bytes,
        refused=choice.refusal, sentence=f"{left}. Nobody is killed: {choice.refusal}",
    )  # fmt: skip
