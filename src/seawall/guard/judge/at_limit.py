# SPDX-License-Identifier: Apache-2.0
"""Workloads at or over their own limits, while the node has room: report, kill, clamp, undo."""

from collections.abc import Mapping

from seawall.actions.orders import Order, Step, Target
from seawall.guard.facts import Group, Node
from seawall.guard.judge import over_limit, stuck
from seawall.guard.judge.case import Case
from seawall.guard.judge.mind import Mind
from seawall.guard.judge.node_short import begin, step_words
from seawall.guard.judge.overrun import LOWERED, Overrun, clamp_of, has_shrunk
from seawall.guard.judge.ranking import rows_of, shown
from seawall.guard.judge.sentences import plain
from seawall.guard.verdict import Verdict
from seawall.words import size

UNTOLD_SECONDS = 60.0
"""A watcher that was lost is replaced sooner than that."""


def judge_over_limit(mind: Mind, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first of them of which there is something to say or to do; old claims say nothing, but
    a limit does not stay lowered on them.
    """
    verdict = _judge_lowered(mind, node, groups)
    if verdict is not None or not mind.is_believed:
        return verdict
    for path, entry in mind.overruns.entries.items():
        if _is_to_tighten(mind, node, entry, groups[path]):
            return _clamp(mind, node, entry, groups[path])
    for path, entry in mind.overruns.entries.items():
        group = groups[path]
        if entry.asked in LOWERED:
            continue
        if node.seconds - entry.since < mind.settings.over_limit_seconds:
            continue
        is_first = mind.overruns.said_of(group) is None
        verdict = _over(mind, node, entry, group)
        if verdict is not None:
            is_news = is_first or verdict.orders
            return _with_ranking(verdict, mind, node, groups, group) if is_news else verdict
    return None


def _judge_lowered(mind: Mind, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first limit of ours that must not stay."""
    for path, entry in mind.overruns.entries.items():
        if entry.asked == "clamp" and node.seconds >= entry.again_seconds:
            if entry.is_undercut(groups[path]):
                return _undercut(mind, node, entry, groups[path])
            if why := _why_unclamp(mind, node, entry, groups[path]):
                return _unclamp(mind, node, entry, groups[path], why)
    return None


def _why_unclamp(mind: Mind, node: Node, entry: Overrun, group: Group) -> str:
    """Why its limit is raised again; empty: it stays."""
    name = plain(group.name)
    if mind.overruns.policy_for(group, mind.settings) != "clamp":
        return f"{name} is not to be clamped any more"
    if reason := mind.protection.reason(group):
        return f"{name} may not be acted on: {reason}"
    if node.claims_seconds is None or node.claims_seconds > UNTOLD_SECONDS:
        return f"nobody tells any more what {name} holds uncounted"
    if mind.is_believed and has_shrunk(entry, group):
        return f"{name} holds {size(group.outside.certain_bytes)} of uncounted memory now"
    return ""


def _is_to_tighten(mind: Mind, node: Node, entry: Overrun, group: Group) -> bool:
    """It held so much more uncounted memory than its lowered limit makes up for, for as long as
    the first time.
    """
    if (
        entry.more_since is None
        or node.seconds - entry.more_since < mind.settings.over_limit_seconds
    ):
        return False
    if entry.refused or mind.hold.why_done(group):
        return False
    return not any(source in mind.hold.distrusted for source in _sources(group))


def _with_ranking(
    verdict: Verdict, mind: Mind, node: Node, groups: Mapping[str, Group], meant: Group
) -> Verdict:
    """Who else was looked at, and why it is none of them; when nobody ends, not every time.  At a
    lowered limit the kernel ends it.
    """
    is_end = any(order.step in ("terminate", "kill", "clamp") for order in verdict.orders)
    if not (mind.overruns.takes_ranking(node.seconds) or is_end):
        return verdict
    own_limits = mind.overruns.own_limits()
    rows, _ = rows_of(node, groups.values(), mind.window, mind.hold.distrusted, own_limits)
    for row in rows:
        if row.group is meant:
            against = verdict.refused
        else:
            against = mind.protection.reason(row.group) or _why_not(verdict, mind, row.group.path)
        if against:
            row.against.append(against)
    ranking, mind.rest = shown(rows, [row for row in rows if not row.against])
    return verdict._replace(ranking=ranking)


def _why_not(verdict: Verdict, mind: Mind, path: str) -> str:
    if verdict.trigger == "stuck_at_limit":
        return "does not stand still at its limit for good"
    if path in mind.overruns.entries:
        return "over its limit too: a decision of its own"
    return "not over its own limit"


def _over(mind: Mind, node: Node, entry: Overrun, group: Group) -> Verdict | None:
    policy = mind.overruns.policy_for(group, mind.settings)
    apart = mind.protection.reason(group)
    against = apart or mind.hold.why_done(group) or entry.refused
    if any(source in mind.hold.distrusted for source in _sources(group)):
        against = against or "this kind of evidence did not hold a moment ago"
    if policy == "report":
        why = 'the policy is "report"'
        if mind.settings.over_limit != "report":
            why = "over_limit_opt_in does not name it"
        return _report(mind, node, entry, group, f"{why}, and {apart}" if apart else why)
    if against:
        return _report(mind, node, entry, group, against)
    if policy == "clamp":
        return _clamp(mind, node, entry, group)
    if not mind.hold.kills_left(node.seconds, mind.settings.kills_per_minute):
        return _report(mind, node, entry, group, "no further kill is allowed in this minute")
    if mind.hold.is_off(node.seconds):
        return None  # the kernel ended something: it may have been what held it
    return _kill(mind, node, entry, group)


def _sources(group: Group) -> tuple[str, ...]:
    return tuple(part.strip() for part in group.outside.sources.split(","))


def _report(
    mind: Mind, node: Node, entry: Overrun, group: Group, refused: str
) -> Verdict | None:  # fmt: skip
    said = mind.overruns.said_of(group)
    if not over_limit.is_news(entry, said, node.seconds):
        return None
    decision = mind.next_decision()
    mind.overruns.say(group, node.seconds, decision)
    text = f"{over_limit.words(entry, group)}. Nothing is done: {refused}. "
    text += f"Before the node is short: {over_limit.advice(entry, group)}"
    if said is not None:
        text += f"; told first as {said.decision}"
    return mind.verdict(
        decision, node, "over_limit", need=max(0, entry.bytes), refused=refused, sentence=text
    )


def _kill(mind: Mind, node: Node, entry: Overrun, group: Group) -> Verdict:
    step: Step = "terminate" if mind.settings.terminate_seconds > 0 else "kill"
    case = Case(mind.next_decision(), "over_limit", node, [(group, group.outside.certain_bytes)])
    case.need = max(0, entry.bytes)
    entry.asked = "kill"
    begin(mind, case, node, step)
    done = step_words(step, is_observed=mind.is_observing)
    lasted = f"for {node.seconds - entry.since:.0f} s"
    return mind.verdict(
        case.decision, node, "over_limit", orders=case.orders(step), need=case.need,
        sentence=f"{over_limit.words(entry, group)} {lasted}: {done}, as it was opted in",
    )  # fmt: skip


def _clamp(mind: Mind, node: Node, entry: Overrun, group: Group) -> Verdict | None:
    limit, refused = clamp_of(entry, group)
    if refused:
        return _report(mind, node, entry, group, refused)
    entry.lower(limit, float("inf") if mind.is_observing else node.seconds)
    decision = mind.next_decision()
    target = Target(group.path, group.inode, plain(group.name))
    order = Order(decision, "clamp", target, "over_limit", max(0, entry.bytes), limit)
    verb = "would be" if mind.is_observing else "is"
    return mind.verdict(
        decision, node, "over_limit", orders=(order,), need=max(0, entry.bytes),
        sentence=f"{over_limit.words(entry, group)}: its limit {verb} lowered to {size(limit)}, "
        "so that the limit stops its uncounted memory too",
    )  # fmt: skip


def _unclamp(mind: Mind, node: Node, entry: Overrun, group: Group, why: str) -> Verdict:
    entry.leave("unclamp", node.seconds)
    text = f"{why}: its limit is {size(entry.limit)} as before"
    return _put_back(mind, node, entry, group, text)


def _undercut(mind: Mind, node: Node, entry: Overrun, group: Group) -> Verdict:
    """What is there counts; where it is the limit of a cgroup above, ours is put back below it."""
    entry.leave("left", node.seconds)
    text = f"{plain(group.name)} has a limit below the {size(entry.lowered)} that were set"
    return _put_back(mind, node, entry, group, f"{text}: that is the one that counts")


def _put_back(mind: Mind, node: Node, entry: Overrun, group: Group, text: str) -> Verdict:
    decision = mind.next_decision()
    target = Target(group.path, group.inode, plain(group.name))
    order = Order(decision, "unclamp", target, "over_limit", 0, entry.limit)
    return mind.verdict(decision, node, "over_limit", orders=(order,), sentence=text)


def learn_clamp(mind: Mind, path: str, problem: str) -> None:
    """A clamp that was refused is not tried again for this overrun; one before it stays."""
    entry = mind.overruns.entries.get(path)
    if entry is not None and entry.asked == "clamp":
        if entry.lowered_before:
            entry.lower_as_before()
        else:
            entry.asked = ""
        entry.refused = problem or "the limit could not be lowered"


def learn_unclamp(mind: Mind, path: str, now: float) -> None:
    """It was refused: ours is in force still, and it is tried again."""
    entry = mind.overruns.entries.get(path)
    if entry is not None and entry.asked == "unclamp":
        entry.keep_lowered(now)


def judge_stuck(mind: Mind, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first group that stands still at its limit for good."""
    for group in groups.values():
        if group.at_limit_seconds and stuck.is_stuck(group, mind.settings):
            if mind.hold.why_done(group):
                continue
            against = mind.protection.reason(group)
            if not mind.hold.bar(group, against):
                continue
            verdict = _end_stuck(mind, node, group, against)
            return verdict and _with_ranking(verdict, mind, node, groups, group)
    return None


def _end_stuck(mind: Mind, node: Node, group: Group, against: str) -> Verdict | None:
    """Reported once when it may not be killed, killed as a whole when it may."""
    seen = f"{plain(group.name)} {stuck.words(group)}: {plain(group.hopeless_why)}"
    if against:
        return mind.verdict(
            mind.next_decision(), node, "stuck_at_limit", refused=against,
            sentence=f"{seen}. Nothing is done: {against}",
        )  # fmt: skip
    if not mind.hold.kills_left(node.seconds, mind.settings.kills_per_minute):
        return None
    case = Case(mind.next_decision(), "stuck_at_limit", node, [(group, 0)])
    case.need = case.predicted
    begin(mind, case, node, "kill")
    done = step_words("kill", is_observed=mind.is_observing)
    return mind.verdict(
        case.decision, node, "stuck_at_limit", orders=case.orders("kill"), need=case.need,
        sentence=f"{seen}: {done}, as a whole",
    )  # fmt: skip
