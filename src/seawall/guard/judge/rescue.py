# SPDX-License-Identifier: Apache-2.0
"""A rescue order before the judge: it names a culprit, and the judge decides as ever.

The order is no evidence.  Whoever it names goes only if the node is short now and he is proved to
be the cause: by this look, or by a decision of this very shortage that was only observed.  Scope,
protection and the kills of a minute hold as for a guard that enforces.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.guard.judge import sentences
from seawall.guard.judge.case_steps import start_verifying
from seawall.guard.judge.decision_case import DecisionCase
from seawall.guard.judge.node_short import rows_with_causes
from seawall.guard.judge.policy_state import DONE, PolicyState
from seawall.guard.judge.ranking import rank, ranks_of
from seawall.guard.judge.row import PROVED, Row
from seawall.guard.judge.shortage import Shortage
from seawall.guard.tick_facts import NOT_TOLD, Group, Node
from seawall.guard.verdict import Verdict
from seawall.role_claims import NOT_NAMED, NOT_SEEN
from seawall.words import size

RescueState: TypeAlias = Literal["waits", "accepted", "refused"]
_PASSING: Final = (NOT_TOLD, NOT_NAMED, NOT_SEEN)
"""Protection that may be lifted within seconds, when the watcher has read more."""
NOT_SHORT: Final = "the node is not short of memory now"
NOT_PROVED: Final = "nobody whom the order names is proved to have taken the memory"


class RescueProof(NamedTuple):
    """A decision of this shortage that would have ended a workload, proved to be the source."""

    decision: str
    why: str
    """In words."""


class RescueRequest(NamedTuple):
    """What an order asks of the judge."""

    by: str
    pods: tuple[str, ...]
    """Uids."""
    proofs: Mapping[tuple[str, int], RescueProof]
    """By path and inode of the cgroup."""


class RescueAnswer(NamedTuple):
    """The judge's answer of one tick."""

    state: RescueState
    """``waits``: not now, perhaps in the next tick."""
    words: str
    verdict: Verdict | None = None
    case: DecisionCase | None = None


def judge_rescue(
    state: PolicyState, node: Node, groups: Mapping[str, Group], wish: RescueRequest
) -> RescueAnswer:  # fmt: skip
    """Whether those whom the order names go now."""
    named = [group for group in groups.values() if group.pod and group.pod in wish.pods]
    if not named:
        return RescueAnswer("refused", "none of the pods that the order names is on this node")
    free = [group for group in named if not _bar(state, group)]
    if not free:
        is_passing = any(group.protected_by in _PASSING for group in named)
        state_now: RescueState = "waits" if is_passing else "refused"
        return RescueAnswer(state_now, f"{sentences.plain(named[0].name)}: {_bar(state, named[0])}")
    shortage = state.shortage
    if shortage is None or not node.is_seen or not _is_needed(shortage):
        return RescueAnswer("waits", NOT_SHORT)
    rows, causes = rows_with_causes(state, node, groups)
    able = rank(rows, causes, state.protection, node.capacity_bytes, shortage.need_bytes)
    proved = [row for row in rows if row.group in free and _is_proved(row, able, wish)]
    if not proved:
        return RescueAnswer("waits", NOT_PROVED)
    allowed = [row for row in proved if state.may_kill(row.group, node.seconds)]
    if not allowed:
        return RescueAnswer("waits", "the kills of this minute are spent")
    case = DecisionCase(
        state.next_decision(), "node_short", node, [(row.group, row.certain) for row in allowed]
    )
    _begin(state, case, node, shortage)
    ranking, state.rest = ranks_of(rows, able)
    left = sentences.left(
        node.headroom_bytes, node.total_bytes, shortage, node.slope_bytes_per_second
    )
    why = "; ".join([_guilt(row, wish) for row in allowed])
    verdict = state.verdict(
        case.decision, node, "node_short", orders=case.orders("kill"), ranking=ranking,
        need=case.need,
        sentence=f"{left}. A rescue order of {wish.by} names {case.names}. {why}: killed, "
        f"{size(case.predicted)} should come back",
    )._replace(is_ordered=True)  # fmt: skip
    return RescueAnswer("accepted", verdict.sentence, verdict, case)


def _is_needed(shortage: Shortage) -> bool:
    return shortage.is_short or shortage.is_under_floor or shortage.is_swapping


def _bar(state: PolicyState, group: Group) -> str:
    """Why it may not go, whatever proves it; what was only observed bars nobody."""
    done = state.hold.why_done(group)
    return state.protection.reason(group) or (done if done.startswith(DONE) else "")


def _is_proved(row: Row, able: list[Row], wish: RescueRequest) -> bool:
    is_now = row.tier <= PROVED and any(row is one for one in able)
    return is_now or (row.group.path, row.group.inode) in wish.proofs


def _guilt(row: Row, wish: RescueRequest) -> str:
    found = wish.proofs.get((row.group.path, row.group.inode))
    if found is not None and row.tier > PROVED:
        return f"{sentences.plain(row.group.name)} was proved by {found.decision}"
    return f"{sentences.plain(row.group.name)} is proved: {sentences.reasons(row)[0]}"


def _begin(state: PolicyState, case: DecisionCase, node: Node, shortage: Shortage) -> None:
    """A kill that is really done, whatever the mode."""
    case.need, case.floor = shortage.need_bytes, shortage.floor_bytes
    case.relief = case.floor + case.need // 2
    case.counts_swap = not shortage.is_swapping
    start_verifying(state, case, node)
    state.hold.count_kills(node.seconds, case.workloads, case.tenants)
    for aim in case.aims:
        words = f"{DONE} ({case.decision}): never twice"
        state.hold.mark_done(aim.target.path, aim.target.inode, words)
    state.cases.append(case)
