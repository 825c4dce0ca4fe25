# SPDX-License-Identifier: Apache-2.0
"""One rescue order at a time, from the file to its answer in the status.

The order names a culprit and nothing else: how, whom and whether is the judge's.  Where the guard
only observes, its own file has to say ``rescue = true``.  An order is answered once.
"""

import time
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from seawall.actions.orders import Outcome
from seawall.guard.judge.decision_case import ENOUGH_SHARE, DecisionCase
from seawall.guard.judge.judge import Judge
from seawall.guard.judge.rescue import RescueProof, RescueRequest
from seawall.guard.order_files import OrderFiles, RescueOrder
from seawall.guard.settings import Settings
from seawall.guard.tell.plain import plain
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import Verdict

PATIENCE_SECONDS: Final = 30.0
"""So long an order waits for the node to be short and the culprit to be proved."""
CALM_SECONDS: Final = 30.0
"""So long without a shortage, what was proved in it proves nothing more."""
PROOF_SECONDS: Final = 600.0
_PROOFS_MOST: Final = 16
_CALM: Final = ("peace", "near")
OrderState: TypeAlias = Literal["waits", "accepted", "done", "refused"]


class _KeptProof(NamedTuple):
    seconds: float
    proof: RescueProof


class RescueResult(NamedTuple):
    """What became of the last order, for the status."""

    order: str
    state: OrderState
    words: str
    decision: str
    returned_bytes: int | None
    """None: nothing was ended, or it is not measured yet."""

    def document(self) -> dict[str, Any]:
        """As it stands in status.json."""
        return {
            "order": plain(self.order, 128), "state": self.state, "words": plain(self.words, 600),
            "decision": plain(self.decision, 64), "returned_bytes": self.returned_bytes,
        }  # fmt: skip


class RescueDesk:
    """``step`` in every tick, after the judge's own; None of it costs anything without an order."""

    __slots__ = ("_case", "_order", "_proofs", "_short_at", "_until", "result")

    def __init__(self) -> None:
        self.result: RescueResult | None = None
        self._order: RescueOrder | None = None
        """Not answered yet."""
        self._until = 0.0
        """Monotonic: it waits no longer."""
        self._case: DecisionCase | None = None
        self._proofs: dict[tuple[str, int], _KeptProof] = {}
        self._short_at = float("-inf")

    @property
    def is_waiting(self) -> bool:
        """An order is there and not answered."""
        return self._order is not None

    def hear(self, verdict: Verdict, now: float) -> None:
        """Whom a decision proves that is only observed."""
        if verdict.trigger != "node_short" or not verdict.orders:
            return
        sources = {(one.path, one.inode): one for one in verdict.ranking if one.is_source}
        for order in verdict.orders:
            here = (order.target.path, order.target.inode)
            if here in sources and order.why != "suspected":
                reasons = sources[here].reasons
                proof = RescueProof(verdict.decision, reasons[0] if reasons else "")
                self._proofs[here] = _KeptProof(now, proof)
        while len(self._proofs) > _PROOFS_MOST:
            del self._proofs[next(iter(self._proofs))]

    def look(self, now: float, state: str) -> None:
        """Forget what was proved in a shortage that is over."""
        if state not in _CALM:
            self._short_at = now
        elif self._proofs and now - self._short_at >= CALM_SECONDS:
            self._proofs.clear()

    def take(self, files: OrderFiles, now: float) -> None:
        """Another order has come, or it was taken back."""
        order = files.order
        if order is None:
            self._order = None
            return
        if self.result is not None and self.result.order == order.order:
            return  # answered, or waits
        left = order.until_unix_seconds - time.time()
        self._order, self._case = order, None
        self._until = now + min(left, PATIENCE_SECONDS)
        self.result = RescueResult(order.order, "waits", "taken", "", None)

    def step(
        self, node: Node, groups: Mapping[str, Group], judge: Judge, settings: Settings,
        boot_id: str, brake: str,
    ) -> Verdict | None:  # fmt: skip
        """At most one verdict; the answer stands in ``result``."""
        self._follow(judge, node)
        order = self._order
        if order is None:
            return None
        why = _why_never(order, settings, boot_id, brake)
        if why or self._until <= node.seconds - PATIENCE_SECONDS:
            return self._refuse(node, judge, order, why or "it came when its time was over")
        wish = RescueRequest(order.by, _uids(order), self._kept(node.seconds))
        answer = judge.rescue(node, groups, wish)
        if answer.state == "refused" or (answer.state == "waits" and node.seconds >= self._until):
            return self._refuse(node, judge, order, answer.words)
        if answer.verdict is None:
            self._say(order, "waits", answer.words)
            return None
        self._order, self._case = None, answer.case
        self._say(order, "accepted", answer.words, answer.verdict.decision)
        return answer.verdict

    def learn(self, outcomes: list[Outcome]) -> None:
        """How the kills of the order went."""
        case, result = self._case, self.result
        if case is None or result is None:
            return
        failed = [o for o in outcomes if not o.is_done and not o.processes]
        if outcomes and len(failed) == len(outcomes):
            self._case = None
            words = failed[0].problem or "it could not be killed"
            self.result = result._replace(state="refused", words=words)

    def _follow(self, judge: Judge, node: Node) -> None:
        """Longer than the judge does: on a node that thrashes a killed process ends late."""
        case, result = self._case, self.result
        if case is None or result is None:
            return
        back = max(case.most, result.returned_bytes or 0)
        if node.is_seen:
            back = max(back, min(case.predicted, node.headroom_bytes - case.headroom))
        is_over = back >= ENOUGH_SHARE * case.predicted or node.seconds - case.seconds >= (
            PATIENCE_SECONDS
        )
        if is_over and not judge.is_open(case.decision):
            self._case = None
            self.result = result._replace(state="done", returned_bytes=back)
        elif result.returned_bytes != back:
            self.result = result._replace(returned_bytes=back)

    def _kept(self, now: float) -> dict[tuple[str, int], RescueProof]:
        return {at: one.proof for at, one in self._proofs.items()
                if now - one.seconds <= PROOF_SECONDS}  # fmt: skip

    def _refuse(self, node: Node, judge: Judge, order: RescueOrder, why: str) -> Verdict:
        self._order = None
        sentence = f"A rescue order of {order.by} is not carried out: {why}"
        verdict = judge.refuse(node, why, sentence)
        self._say(order, "refused", why, verdict.decision)
        return verdict

    def _say(self, order: RescueOrder, state: OrderState, words: str, decision: str = "") -> None:
        self.result = RescueResult(order.order, state, words, decision, None)


def _why_never(order: RescueOrder, settings: Settings, boot_id: str, brake: str) -> str:
    if order.boot_id != boot_id:
        return "it is of another boot of this node"
    if brake:
        return f"the brake is on ({brake})"
    if settings.mode != "enforce" and not settings.rescue:
        return "this guard only observes, and its file does not say rescue = true"
    return ""


def _uids(order: RescueOrder) -> tuple[str, ...]:
    return tuple(uid.replace("_", "-") for uid in order.pods)
