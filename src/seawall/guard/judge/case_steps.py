# SPDX-License-Identifier: Apache-2.0
"""The steps of a decision: SIGTERM or freeze, kill, and what came back.

Need and identity are looked at again before every further step.
"""

from collections.abc import Mapping

from seawall.actions.orders import Outcome
from seawall.guard.judge.decision_case import DecisionCase
from seawall.guard.judge.policy_state import PolicyState
from seawall.guard.judge.suspicion import learn as learn_hold
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import DecisionUpdate, Verdict
from seawall.words import percent, size

OBSERVED_SECONDS = 60.0
"""After a decision that is only observed, nothing is chosen for so long: who would have been
killed is still there."""
STUNNED_SECONDS = 0.5
"""By so much late the node itself stood still (a VM is paused, its processor stolen): in that time
nothing could come back."""
STAYS = "the node is not short any more"


def go_on(state: PolicyState, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """The first case that has a next step; ended ones are told and forgotten."""
    for case in list(state.cases):
        if case.phase in ("terminating", "frozen"):
            verdict = _next_step(state, case, node, groups)
            if verdict is not None:
                return verdict
        elif case.phase == "observed":
            if node.seconds >= case.deadline:
                state.cases.remove(case)
        else:
            if node.late_seconds >= STUNNED_SECONDS:
                case.wait_longer(node.late_seconds, state.settings.verify_seconds)
            _verify(state, case, node, groups)
    return None


def _next_step(
    state: PolicyState, case: DecisionCase, node: Node, groups: Mapping[str, Group]
) -> Verdict | None:  # fmt: skip
    if all(aim.has_departed(groups) for aim in case.aims):
        start_verifying(state, case, node)
        case.is_asked = True
        return None
    if case.by_order and state.hold.is_off(node.seconds):
        return None  # something else gives memory back: it may be enough
    is_needed = _is_needed(state, case, node, groups)
    if case.phase == "frozen":
        return _kill(state, case, node) if is_needed else _let_go(state, case, node)
    if is_needed and not _is_calm(state):
        return _kill(state, case, node)
    if not is_needed and not case.is_little(case.returned(node, groups)):
        start_verifying(state, case, node)  # SIGTERM was enough
        case.is_asked = True
        return None
    if node.seconds < case.deadline:
        return None
    if is_needed:
        return _kill(state, case, node)
    _forget(state, case)
    state.tell(_told(case, node, f"{case.names} got SIGTERM and stays: {_stays(state, case)}"))
    return None


def _forget(state: PolicyState, case: DecisionCase) -> None:
    """Who was not killed may be chosen again: who ignores SIGTERM must not be safe for ever."""
    state.cases.remove(case)
    for aim in case.aims:
        state.hold.forget(aim.target.path, aim.target.inode)


def _stays(state: PolicyState, case: DecisionCase) -> str:
    if case.trigger == "node_short":
        return STAYS
    if not state.is_believed:
        return "how much uncounted memory it holds is not known now"
    return "it is not over its limit any more"


def _is_calm(state: PolicyState) -> bool:
    return state.shortage is None or state.shortage.is_calm


def _is_needed(
    state: PolicyState, case: DecisionCase, node: Node, groups: Mapping[str, Group]
) -> bool:
    """Too little is left still, by the floor of then: a frozen group does not grow any more, so
    the seconds that are left say nothing now.
    """
    for aim in case.aims:
        meant = aim.group_in(groups), groups.get(aim.judged.path)
        if any(_is_protected(state, group) for group in meant):
            return False
    if case.trigger == "over_limit":
        group = groups.get(case.aims[0].judged.path)
        is_over = group is not None and state.overruns.lasts(group, node.seconds, 0.0)
        return is_over and state.is_believed
    return case.is_under(case.relief if case.phase == "frozen" else case.floor, node)


def _is_protected(state: PolicyState, group: Group | None) -> bool:
    return group is not None and bool(state.protection.reason(group))


def _kill(state: PolicyState, case: DecisionCase, node: Node) -> Verdict:
    """On cgroup v1 SIGKILL waits for the thaw, so a thaw always follows."""
    was_frozen = case.phase == "frozen"
    if was_frozen:
        state.count_kills(case, node.seconds)
    orders = case.orders("kill") + (case.orders("thaw") if was_frozen else ())
    did = "is frozen" if was_frozen else "got SIGTERM, and what it holds is still there"
    case.start(node)  # not from the SIGTERM on
    start_verifying(state, case, node)
    verb = "would be killed" if state.is_observing else "is killed"
    sentence = f"{size(max(0, node.headroom_bytes))} left: {case.names} {did}, and {verb}"
    return state.verdict(
        case.decision, node, case.trigger, orders=orders, need=case.need, sentence=sentence
    )


def _let_go(state: PolicyState, case: DecisionCase, node: Node) -> Verdict:
    orders = case.orders("thaw")
    _forget(state, case)
    sentence = (
        f"{size(max(0, node.headroom_bytes))} left: {case.names} goes on, {_stays(state, case)}"
    )
    return state.verdict(case.decision, node, case.trigger, orders=orders, sentence=sentence)


def start_verifying(state: PolicyState, case: DecisionCase, node: Node) -> None:
    """From now on it is waited for what comes back."""
    case.phase = "killed"
    case.deadline = node.seconds + state.settings.verify_seconds


def _verify(
    state: PolicyState, case: DecisionCase, node: Node, groups: Mapping[str, Group]
) -> None:
    returned = case.returned(node, groups)
    if not case.is_over(returned, node.seconds, state.settings.verify_seconds):
        return
    state.cases.remove(case)
    _mark_ended(state, case, groups, node.seconds)
    predicted, took = case.predicted, node.seconds - case.seconds
    share = percent(returned / predicted) if predicted > 0 else "all"
    text = f"{size(returned)} came back in {took:.1f} s, {share} of what was foretold"
    if case.is_little(returned):
        state.hold.keep(node, predicted - returned)
        text += f" for {case.names}: "
        if case.is_left:
            text += "its processes are stuck in the kernel and hold the rest"
        elif case.sources and not state.is_believed:
            text += "who holds the rest is not known now"
        elif case.sources and not case.is_little(case.returned_at_most(node, groups)):
            text += "others may have taken the rest meanwhile"
        else:
            text += _distrust(state, case, node)
    state.tell(_told(case, node, text, returned))


def _distrust(state: PolicyState, case: DecisionCase, node: Node) -> str:
    """Of those alone who were killed for it: another one's memory is another one's."""
    for aim in case.aims:
        if aim.sources:
            place = (aim.target.path, aim.target.inode)
            state.hold.distrust(*place, aim.sources, node.seconds)
    if not case.sources:
        return "something else holds it"
    kinds = ", ".join(case.sources)
    return (
        "the driver or another holder kept it; "
        f"of {case.names}, {kinds} prove nothing for the next ten minutes"
    )


def _mark_ended(
    state: PolicyState, case: DecisionCase, groups: Mapping[str, Group], now: float
) -> None:  # fmt: skip
    """Nobody is safe for good: who lives on after SIGTERM may take it all again, and others may
    move into the cgroup that was emptied.
    """
    for aim in case.aims:
        if case.is_asked or aim.whole:  # a user's other parts: by what is told from now on
            state.overruns.begin_anew(aim.judged.path, now)
        if case.is_asked:
            state.hold.forget(aim.target.path, aim.target.inode)
        elif not case.is_left and aim.is_emptied(groups):
            state.hold.mark_emptied(aim.target.path, aim.target.inode)


def _told(
    case: DecisionCase, node: Node, sentence: str, returned: int | None = None
) -> DecisionUpdate:
    return DecisionUpdate(case.decision, node.seconds, None, returned, sentence)


def learn(state: PolicyState, outcome: Outcome, node: Node) -> None:
    """What became of one order."""
    case = next((c for c in state.cases if c.decision == outcome.order.decision), None)
    state.tell_outcome(outcome, node.seconds, _outcome_words(outcome))
    learn_hold(state, outcome, node)
    if case is None or outcome.order.step in ("thaw", "unclamp"):
        return
    if outcome.is_observed:
        _observe(state, case, node)
    elif outcome.order.step == "kill":
        case.is_left = case.is_left or outcome.left > 0
    if outcome.is_done or outcome.is_observed:
        return
    if outcome.order.step == "terminate":
        case.deadline = node.seconds
    elif outcome.order.step in ("kill", "clamp"):
        _fail(state, case, outcome)


def _observe(state: PolicyState, case: DecisionCase, node: Node) -> None:
    """Who would have been killed lives, and is chosen again when it is looked at again."""
    case.phase = "observed"
    case.deadline = node.seconds + OBSERVED_SECONDS
    if case.trigger == "node_short":
        for aim in case.aims:
            state.hold.forget(aim.target.path, aim.target.inode)


def _fail(state: PolicyState, case: DecisionCase, outcome: Outcome) -> None:
    """Not done: nothing comes back from there, and it is not tried again."""
    for aim in case.aims:
        if aim.target.path == outcome.order.target.path and outcome.processes == 0:
            aim.is_failed = True
    if all(aim.is_failed for aim in case.aims):
        state.cases.remove(case)


def _outcome_words(outcome: Outcome) -> str:
    order = outcome.order
    did = _DID[order.step]
    name = order.target.name
    if outcome.is_observed:
        if not outcome.is_done:
            return f"observed only: {name} could not be {did}: {outcome.problem}"
        return f"observed only: {name} would be {did}"
    if not outcome.is_done:
        return f"{name} could not be {did}: {outcome.problem or 'no reason was given'}"
    text = f"{name} was {did} in {outcome.seconds * 1000:.0f} ms"
    if outcome.processes:
        text += f", {outcome.processes} process{'es' if outcome.processes > 1 else ''}"
    return text + (f", {outcome.left} still there" if outcome.left else "")


_DID = {
    "freeze": "frozen", "thaw": "thawed", "terminate": "sent SIGTERM", "kill": "killed",
    "clamp": "clamped", "unclamp": "unclamped",
}  # fmt: skip
