# SPDX-License-Identifier: Apache-2.0
"""Hold still while the proof is on its way (docs/decisions/0011).

Certain evidence of driver memory comes seconds after the memory went, and a node can be gone by
then.  Who alone could hold most of what nobody owns stands still meanwhile: for two seconds at
the most, and not again for ten.  Standing still can be taken back, so a bound is enough for it.
Nobody is killed by it: the kill is the ordinary one, on the ordinary proof, or does not come.
"""

from collections.abc import Mapping, Sequence

from seawall.actions.orders import Order, Outcome
from seawall.guard.judge import sentences
from seawall.guard.judge.cooldown import is_distrusted
from seawall.guard.judge.policy_state import PolicyState
from seawall.guard.judge.proof import Causes
from seawall.guard.judge.ranking import RankedRows, ranks_of
from seawall.guard.judge.row import Row
from seawall.guard.judge.shortage import HURRY_SECONDS
from seawall.guard.judge.suspects import (
    CLEARED_SECONDS,
    REST_SECONDS,
    SuspectGuess,
    Suspicion,
    guess,
    hold_seconds,
    is_outside,
)
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import DecisionUpdate, Verdict
from seawall.words import size

OBSERVED_SECONDS = 60.0
SETTLED_SECONDS = 0.5
"""By then what was taken before is counted."""
WENT_ON_SHARE = 0.75
WENT_ON_BYTES = 32 << 20
"""When what nobody owns grows on by so much of its rate, and so many bytes, it was not they."""
UNPROVED = "nothing was proved against {them}"


def hold(
    state: PolicyState, node: Node, causes: Causes, ranked: RankedRows
) -> Verdict | None:  # fmt: skip
    """Nobody is proved, and time runs out: who could be it stands still."""
    found = _guess(state, node, causes, ranked.rows) if _is_time(state, node) else None
    shortage = state.shortage
    if found is None or shortage is None:
        return None
    seconds = hold_seconds(state.settings)
    held = Suspicion(state.next_decision(), node, found.rows, seconds)
    held.floor = shortage.floor_bytes
    held.relief = shortage.floor_bytes + shortage.need_bytes // 2
    state.suspicion = held
    _rest(state, held, node.seconds + seconds + REST_SECONDS)
    for row in found.rows:
        if row.against:  # that it keeps its promise by what is certain
            row.against[:] = ["it may be the cause, and nothing proves it yet"]
    left = sentences.left(
        node.headroom_bytes, node.total_bytes, shortage, node.slope_bytes_per_second
    )
    ranking, state.rest = ranks_of(*ranked)
    return state.verdict(
        held.decision, node, "node_short", orders=held.orders("freeze"), ranking=ranking,
        need=shortage.need_bytes, sentence=f"{left}. {_hold_words(state, held, found)}",
    )  # fmt: skip


def _is_time(state: PolicyState, node: Node) -> bool:
    shortage = state.shortage
    if shortage is None or not shortage.is_short:
        return False
    if shortage.budget_seconds >= HURRY_SECONDS and not shortage.is_pressing:
        return False
    if state.suspicion is not None or not hold_seconds(state.settings):
        return False
    return state.is_believed and is_outside(node)


def _guess(
    state: PolicyState, node: Node, causes: Causes, rows: Sequence[Row]
) -> SuspectGuess | None:
    """Whoever is meant must be one that may be killed if it is proved, and not be resting."""
    state.rests.look(node.seconds)
    cleared = [row for row in rows if _key(row.group) in state.rests.cleared]
    found = guess(rows, causes, node, state.window.best(node), cleared)
    if found is None or any(_is_barred(state, row) for row in found.rows):
        return None
    return found


def _is_barred(state: PolicyState, row: Row) -> bool:
    return (
        bool(state.protection.bar(row.group) or state.hold.why_done(row.group))
        or _key(row.group) in state.rests.resting
        or is_distrusted(row.group, state.hold.doubts)
    )


def _key(group: Group) -> tuple[str, int]:
    return group.path, group.inode


def _rest(state: PolicyState, held: Suspicion, until: float) -> None:
    for target in held.targets:
        state.rests.resting[target.path, target.inode] = until


def _hold_words(state: PolicyState, held: Suspicion, found: SuspectGuess) -> str:
    is_one = len(held.targets) == 1
    it = "it" if is_one else "they"
    stands = "stands" if is_one else "stand"
    if state.is_observing:
        stands = "would stand"
    together = "" if is_one else "together "
    return (
        f"{held.names} may {together}hold up to {size(found.could)} of the {size(found.unseen)} "
        f"that nobody owns: {it} {stands} still for at most "
        f"{hold_seconds(state.settings):g} s, until it is known"
    )


# --- while it stands still --------------------------------------------------------------------


def look_after(state: PolicyState, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
    """After everything was judged, and nobody proved: none must stand still for nothing."""
    held = state.suspicion
    if held is None:
        return None
    if held.is_gone(groups):
        return let_go(state, node, "{they} ended by {themselves}")
    if node.headroom_bytes >= held.relief:
        return let_go(state, node, "the node is not short any more")
    if state.is_observing or not hold_seconds(state.settings):
        return let_go(state, node, "the configuration holds nobody any more")
    there = [groups[t.path] for t in held.targets if t.path in groups]
    if any(state.protection.bar(group) for group in there):
        return let_go(state, node, "{they} may not be acted on")
    if _went_on(held, node):
        for target in held.targets:
            state.rests.cleared[target.path, target.inode] = node.seconds + CLEARED_SECONDS
        return let_go(state, node, "what nobody owns grew on meanwhile, so it was not {them}")
    return let_go(state, node, UNPROVED) if node.seconds >= held.until else None


def _went_on(held: Suspicion, node: Node) -> bool:
    """The growth did not stop with them; that clears them, the contrary proves nothing."""
    residual = node.residual_bytes
    if residual is None or not held.is_whole or node.seconds - held.seconds < SETTLED_SECONDS:
        return False
    if held.mark is None:
        held.mark, held.mark_seconds = residual, node.seconds
    grown, seconds = residual - held.mark, node.seconds - held.mark_seconds
    return grown >= WENT_ON_BYTES and grown >= WENT_ON_SHARE * held.rate * seconds


def let_go(state: PolicyState, node: Node, why: str) -> Verdict | None:
    """They go on, and are not held again for a while."""
    held = state.suspicion
    if held is None:
        return None
    orders = held.orders("thaw")
    _end(state, held, node)
    sentence = f"{size(max(0, node.headroom_bytes))} left. {_goes_on(held, node, why)}"
    return state.verdict(held.decision, node, "node_short", orders=orders, sentence=sentence)


def release(
    state: PolicyState, node: Node, chosen: Sequence[Row]
) -> tuple[tuple[Order, ...], tuple[Order, ...]]:
    """Somebody is proved.  All are thawed: who goes on at once, for to kill the others takes its
    time; the others after that (v1 dies only then).
    """
    held = state.suspicion
    if held is None:
        return (), ()
    _end(state, held, node)
    if not any(held.holds(row.group) for row in chosen):
        words = _goes_on(held, node, UNPROVED)
        state.tell(DecisionUpdate(held.decision, node.seconds, None, None, words))
    killed = {row.group.path for row in chosen}
    thaws = held.orders("thaw")
    dying = tuple(order for order in thaws if order.target.path in killed)
    return tuple(order for order in thaws if order.target.path not in killed), dying


def _end(state: PolicyState, held: Suspicion, node: Node) -> None:
    state.suspicion = None
    _rest(state, held, node.seconds + REST_SECONDS)


def _goes_on(held: Suspicion, node: Node, why: str) -> str:
    is_one = len(held.targets) == 1
    them, they = ("it", "it") if is_one else ("them", "they")
    themselves = "itself" if is_one else "themselves"
    because = why.format(them=them, they=they, themselves=themselves)
    passed = node.seconds - held.seconds
    goes = "goes" if is_one else "go"
    return f"{held.names} stood still for {passed:.1f} s and {goes} on: {because}"


def learn(state: PolicyState, outcome: Outcome, node: Node) -> None:
    """Who could not be frozen is not held; who observes holds nobody."""
    held = state.suspicion
    if held is None or outcome.order.why != "suspected" or outcome.order.step != "freeze":
        return
    if outcome.is_observed:
        _rest(state, held, node.seconds + OBSERVED_SECONDS)
    elif outcome.is_done:
        held.is_whole = held.is_whole and not outcome.problem
        return
    held.targets = tuple(t for t in held.targets if t != outcome.order.target)
    if not held.targets:
        state.suspicion = None
