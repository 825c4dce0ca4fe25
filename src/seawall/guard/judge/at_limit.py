# SPDX-License-Identifier: Apache-2.0
"""Workloads at or over their own limits, while the node has room: report, kill, clamp, undo."""

from collections.abc import Mapping

from seawall.actions.orders import Order, Step, Target
from seawall.guard.judge import over_limit, stuck
from seawall.guard.judge.cooldown import is_distrusted
from seawall.guard.judge.decision_case import DecisionCase
from seawall.guard.judge.evidence import given_back_since
from seawall.guard.judge.node_short import begin, step_words
from seawall.guard.judge.overrun import LOWERED, Overrun, clamp_of, has_shrunk
from seawall.guard.judge.policy_state import PolicyState
from seawall.guard.judge.proof import least_overrun
from seawall.guard.judge.ranking import ranks_of, rows_of
from seawall.guard.judge.sentences import plain
from seawall.guard.judge.user_parts import parts_of, why_no_part
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import NOT_OPTED_IN, POLICY_IS_REPORT, Verdict
from seawall.words import size

UNTOLD_SECONDS = 60.0
"""A watcher that was lost is replaced sooner than that."""


def judge_over_limit(state: PolicyState, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first of them of which there is something to do; old claims say nothing, but a limit
    does not stay lowered on them.  Before anything is said: many reports hold up nobody's end.
    """
    verdict = _judge_lowered(state, node, groups)
    given_back = given_back_since(node, state.window)
    if verdict is not None or given_back is None:
        return verdict
    if not given_back:
        for path, entry in state.overruns.entries.items():
            if _is_to_tighten(state, node, entry, groups[path]):
                return _clamp(state, node, entry, groups[path])
    able = [
        row for row in _lasting(state, node, groups, given_back)
        if not _why_reported(state, node, *row)
    ]  # fmt: skip
    # Who has many of his own over their limits does not keep another's waiting behind them.
    able.sort(key=lambda row: not state.hold.has_own_kill(row[1], node.seconds))
    for entry, group in able:
        is_first = state.overruns.said_of(group) is None
        verdict = _act(state, node, entry, group, given_back)
        if verdict is not None:
            is_news = is_first or verdict.orders
            return _with_ranking(verdict, state, node, groups, group) if is_news else verdict
    return None


def report_over_limit(
    state: PolicyState, node: Node, groups: Mapping[str, Group]
) -> Verdict | None:  # fmt: skip
    """The first of them of which there is something to say."""
    given_back = given_back_since(node, state.window)
    if given_back is None:
        return None
    for entry, group in _lasting(state, node, groups, given_back):
        if why := _why_reported(state, node, entry, group):
            is_first = state.overruns.said_of(group) is None
            verdict = _report(state, node, entry, group, why)
            if verdict is not None:
                return (
                    _with_ranking(verdict, state, node, groups, group) if is_first else verdict
                )  # fmt: skip
    return None


def _lasting(
    state: PolicyState, node: Node, groups: Mapping[str, Group], given_back: int
) -> list[tuple[Overrun, Group]]:  # fmt: skip
    """Who is over its limit for long enough, and by enough without what may be given back; of
    whom a decision is open more is told when it is over.  An account that is older than the overrun
    does not say that it lasts.
    """
    claimed = node.seconds - (node.claims_seconds or 0.0)
    open_now = {aim.judged.path for case in state.cases for aim in case.aims}
    return [
        (entry, groups[path])
        for path, entry in state.overruns.entries.items()
        if entry.asked not in LOWERED
        and path not in open_now
        and node.seconds - entry.since >= state.settings.over_limit_seconds
        and claimed > entry.since
        and (not given_back or entry.bytes - given_back >= least_overrun(entry.limit))
    ]  # fmt: skip


def _judge_lowered(state: PolicyState, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first limit of ours that must not stay."""
    for path, entry in state.overruns.entries.items():
        if entry.asked == "clamp" and node.seconds >= entry.again_seconds:
            if entry.is_undercut(groups[path]):
                return _undercut(state, node, entry, groups[path])
            if why := _why_unclamp(state, node, entry, groups[path]):
                return _unclamp(state, node, entry, groups[path], why)
    return None


def _why_unclamp(state: PolicyState, node: Node, entry: Overrun, group: Group) -> str:
    """Why its limit is raised again; empty: it stays."""
    name = plain(group.name)
    if state.overruns.policy_for(group, state.settings) != "clamp":
        return f"{name} is not to be clamped any more"
    if reason := state.protection.reason(group):
        return f"{name} may not be acted on: {reason}"
    if node.claims_seconds is None or node.claims_seconds > UNTOLD_SECONDS:
        return f"nobody tells any more what {name} holds uncounted"
    if state.is_believed and has_shrunk(entry, group):
        return f"{name} holds {size(group.outside.certain_bytes)} of uncounted memory now"
    return ""


def _is_to_tighten(state: PolicyState, node: Node, entry: Overrun, group: Group) -> bool:
    """It held so much more uncounted memory than its lowered limit makes up for, for as long as
    the first time.
    """
    if (
        entry.more_since is None
        or node.seconds - entry.more_since < state.settings.over_limit_seconds
    ):
        return False
    if entry.refused or state.hold.why_done(group):
        return False
    return not is_distrusted(group, state.hold.doubts)


def _with_ranking(
    verdict: Verdict, state: PolicyState, node: Node, groups: Mapping[str, Group], meant: Group
) -> Verdict:
    """Who else was looked at, and why it is none of them; when nobody ends, not every time.  At a
    lowered limit the kernel ends it.
    """
    is_end = any(order.step in ("terminate", "kill", "clamp") for order in verdict.orders)
    if not (state.overruns.takes_ranking(node.seconds) or is_end):
        return verdict
    own_limits = state.overruns.own_limits()
    rows, _ = rows_of(node, groups.values(), state.window, state.hold.doubts, own_limits)
    for row in rows:
        if row.group is meant:
            against = verdict.refused
        else:
            against = state.protection.reason(row.group) or _why_not(verdict, state, row.group.path)
        if against:
            row.against.append(against)
    ranking, state.rest = ranks_of(rows, [row for row in rows if not row.against])
    return verdict._replace(ranking=ranking)


def _why_not(verdict: Verdict, state: PolicyState, path: str) -> str:
    if verdict.trigger == "stuck_at_limit":
        return "does not stand still at its limit for good"
    if path in state.overruns.entries:
        return "over its limit too: a decision of its own"
    return "not over its own limit"


def _why_reported(state: PolicyState, node: Node, entry: Overrun, group: Group) -> str:
    """Why it is only told; empty: something is to be done."""
    policy = state.overruns.policy_for(group, state.settings)
    apart = state.protection.reason(group)
    against = apart or state.hold.why_done(group) or entry.refused
    if policy == "kill":
        against = against or why_no_part(state, group, uncounted=True)
    if is_distrusted(group, state.hold.doubts):
        against = against or "its own evidence of this kind did not hold a moment ago"
    if policy == "report":
        why = POLICY_IS_REPORT if state.settings.over_limit == "report" else NOT_OPTED_IN
        return f"{why}, and {apart}" if apart else why
    if not against and policy == "kill" and not state.may_kill(group, node.seconds):
        return "no further kill is allowed in this minute"
    return against


def _act(
    state: PolicyState, node: Node, entry: Overrun, group: Group, given_back: int
) -> Verdict | None:  # fmt: skip
    if state.overruns.policy_for(group, state.settings) == "clamp":
        return None if given_back else _clamp(state, node, entry, group)
    if state.hold.is_off(node.seconds):
        return None  # the kernel ended something: it may have been what held it
    return _kill(state, node, entry, group, given_back)


def _report(
    state: PolicyState, node: Node, entry: Overrun, group: Group, refused: str
) -> Verdict | None:  # fmt: skip
    said = state.overruns.said_of(group)
    if not over_limit.is_news(entry, said, node.seconds):
        return None
    decision = state.next_decision()
    state.overruns.say(group, node.seconds, decision)
    text = f"{over_limit.words(entry, group)}. Nothing is done: {refused}. "
    text += f"Before the node is short: {over_limit.advice(entry, group)}"
    if said is not None:
        text += f"; told first as {said.decision}"
    return state.verdict(
        decision, node, "over_limit", need=max(0, entry.bytes), refused=refused, sentence=text
    )


def _kill(
    state: PolicyState, node: Node, entry: Overrun, group: Group, given_back: int
) -> Verdict:  # fmt: skip
    step: Step = "terminate" if state.settings.terminate_seconds > 0 else "kill"
    case = DecisionCase(
        state.next_decision(), "over_limit", node,
        [(group, group.outside.certain_bytes - given_back)],
        parts_of((group,), state.window.looks[1], uncounted=True),
    )  # fmt: skip
    case.need = max(0, entry.bytes)
    entry.asked = "kill"
    begin(state, case, node, step)
    done = step_words(step, is_observed=state.is_observing)
    lasted = f"for {node.seconds - entry.since:.0f} s"
    return state.verdict(
        case.decision, node, "over_limit", orders=case.orders(step), need=case.need,
        sentence=f"{over_limit.words(entry, group)} {lasted}: {done}{case.part_words}, as it was "
        "opted in",
    )  # fmt: skip


def _clamp(state: PolicyState, node: Node, entry: Overrun, group: Group) -> Verdict | None:
    limit, refused = clamp_of(entry, group)
    if refused:
        return _report(state, node, entry, group, refused)
    entry.lower(limit, float("inf") if state.is_observing else node.seconds)
    decision = state.next_decision()
    target = Target(group.path, group.inode, plain(group.name))
    order = Order(decision, "clamp", target, "over_limit", max(0, entry.bytes), limit)
    verb = "would be" if state.is_observing else "is"
    return state.verdict(
        decision, node, "over_limit", orders=(order,), need=max(0, entry.bytes),
        sentence=f"{over_limit.words(entry, group)}: its limit {verb} lowered to {size(limit)}, "
        "so that the limit stops its uncounted memory too",
    )  # fmt: skip


def _unclamp(state: PolicyState, node: Node, entry: Overrun, group: Group, why: str) -> Verdict:
    entry.leave("unclamp", node.seconds)
    text = f"{why}: its limit is {size(entry.limit)} as before"
    return _put_back(state, node, entry, group, text)


def _undercut(state: PolicyState, node: Node, entry: Overrun, group: Group) -> Verdict:
    """What is there counts; where it is the limit of a cgroup above, ours is put back below it."""
    entry.leave("left", node.seconds)
    text = f"{plain(group.name)} has a limit below the {size(entry.lowered)} that were set"
    return _put_back(state, node, entry, group, f"{text}: that is the one that counts")


def _put_back(state: PolicyState, node: Node, entry: Overrun, group: Group, text: str) -> Verdict:
    decision = state.next_decision()
    target = Target(group.path, group.inode, plain(group.name))
    order = Order(decision, "unclamp", target, "over_limit", 0, entry.limit)
    return state.verdict(decision, node, "over_limit", orders=(order,), sentence=text)


def learn_clamp(state: PolicyState, path: str, problem: str) -> None:
    """A clamp that was refused is not tried again for this overrun; one before it stays."""
    entry = state.overruns.entries.get(path)
    if entry is not None and entry.asked == "clamp":
        if entry.lowered_before:
            entry.lower_as_before()
        else:
            entry.asked = ""
        entry.refused = problem or "the limit could not be lowered"


def learn_unclamp(state: PolicyState, path: str, now: float) -> None:
    """It was refused: ours is in force still, and it is tried again."""
    entry = state.overruns.entries.get(path)
    if entry is not None and entry.asked == "unclamp":
        entry.keep_lowered(now)


def judge_stuck(state: PolicyState, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first group that stands still at its limit for good."""
    for group in groups.values():
        if group.at_limit_seconds and stuck.is_stuck(group, state.settings):
            if state.hold.why_done(group):
                continue
            against = state.protection.bar(group)
            if not state.hold.bar(group, against):
                continue
            verdict = _end_stuck(state, node, group, against)
            return verdict and _with_ranking(verdict, state, node, groups, group)
    return None


def _end_stuck(state: PolicyState, node: Node, group: Group, against: str) -> Verdict | None:
    """Reported once when it may not be killed, killed as a whole when it may."""
    seen = f"{plain(group.name)} {stuck.words(group)}: {plain(group.hopeless_why)}"
    if against:
        return state.verdict(
            state.next_decision(), node, "stuck_at_limit", refused=against,
            sentence=f"{seen}. Nothing is done: {against}",
        )  # fmt: skip
    if not state.may_kill(group, node.seconds):
        return None
    case = DecisionCase(state.next_decision(), "stuck_at_limit", node, [(group, 0)])
    case.need = case.predicted
    begin(state, case, node, "kill")
    done = step_words("kill", is_observed=state.is_observing)
    return state.verdict(
        case.decision, node, "stuck_at_limit", orders=case.orders("kill"), need=case.need,
        sentence=f"{seen}: {done}, as a whole",
    )  # fmt: skip
