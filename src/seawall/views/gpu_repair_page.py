# SPDX-License-Identifier: Apache-2.0
"""What both forms of ``seawall gpu repair`` are made from: the plan, what was done, the verdict."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from seawall.accounts.devices.repairs.step import KINDS, RepairOutcome, RepairPlan, RepairScope
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread

Verdict: TypeAlias = Literal["nothing", "unseen", "planned", "verified", "unverified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPage:
    """What ``seawall gpu repair`` shows: the plan, what was done, and what is left."""

    scope: RepairScope
    plan: RepairPlan | Unread
    """As it was before anything was done."""
    is_told: bool
    """Whether anything was to be done."""
    wanted: tuple[int, ...] = ()
    """Numbers of steps that were told to be done; empty: all."""
    results: tuple[RepairOutcome, ...] = ()
    left: RepairPlan | Unread | None = None
    """The plan after it was done."""
    unseen: tuple[NotSeen, ...] = ()
    bundle_notes: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[RepairOutcome, ...]:
        """What was told to be done, and whatever else is planned, in their order."""
        plan = self.left if self.is_told else self.plan
        known = {told.step.id for told in self.results}
        planned = plan.steps if isinstance(plan, RepairPlan) else ()
        others = [RepairOutcome(step, "planned", "") for step in planned if step.id not in known]
        return tuple(sorted((*self.results, *others), key=lambda told: told.step.number))

    @property
    def verdict(self) -> Verdict:
        """``nothing``: nothing to mend; ``unseen``: that is not known (exit 11); ``unverified``:
        told to act, and not all of it was done and verified (exit 10).
        """
        if isinstance(self.plan, Unread):
            return "unseen"
        if self.asks_nobody:
            return "unverified"
        if self.results:
            return "verified" if all(told.is_verified for told in self.results) else "unverified"
        if self.plan.steps and not self.wanted:
            return "unverified" if self.is_told else "planned"
        return "unseen" if self._is_unseen(self.plan) else "nothing"

    @property
    def asks_nobody(self) -> bool:
        """Whether it was told to do what no plan lets anybody do, and this one does not have."""
        number = KINDS.index("rules") + 1
        return number in self.wanted and all(told.step.number != number for told in self.results)

    def _is_unseen(self, plan: RepairPlan) -> bool:
        """Who has no device as far as is seen may have one; the host's nodes hide behind nobody."""
        is_nobody_there = not plan.asked and self.scope.what != "host" and bool(self.unseen)
        return bool(plan.untried or plan.unseen or is_nobody_there)


_NOTHING: Final = {
    "host": "Nothing to mend on the host: no control node that a loaded module implies is missing.",
    "plugin": "Nothing to mend: no device plugin that was found here lacks a device of the host.",
}


_BY_NOBODY: Final = (
    "8 is done by nobody, in no plan: the rules of a running container are its runtime's, and a"
    " change of them leaves the cause."
)


def sentence(page: RepairPage) -> str:
    """The answer of ``seawall gpu repair`` in one sentence."""
    plan = page.plan
    if isinstance(plan, Unread):
        return f"Nothing can be told of devices: {plan.path}: {plan.detail or plan.why}."
    verdict = page.verdict
    if verdict == "nothing" and page.wanted and plan.steps:
        numbers = ", ".join(map(str, page.wanted))
        return f"Nothing was done: the plan has no step {numbers}, or has it no more."
    if verdict == "nothing":
        words = f"Nothing to mend: {page.scope.words} has no device that is refused."
        if page.scope.what == "plugin" and not plan.asked:
            return "No device plugin was found here."
        return _NOTHING.get(page.scope.what, words)
    if verdict == "unseen":
        who = ", ".join(plan.untried[:3]) or page.scope.words
        why = _first_unseen(page) if page.unseen or not plan.unseen else plan.unseen[0]
        return f"{who}: whether anything is to be mended could not be seen: {why}."
    if verdict == "planned":
        return "Nothing was done; this is the plan."
    if verdict == "verified":
        return "Verified: what was to be done is done" + _left(page)
    return f"Not mended: {_unverified(page)}"


def _first_unseen(page: RepairPage) -> str:
    if page.unseen and not (isinstance(page.plan, RepairPlan) and page.plan.untried):
        return f"{page.unseen[0].what}: {page.unseen[0].why}".rstrip(".")
    return "its devices could not be tried"


def _left(page: RepairPage) -> str:
    numbers = list(dict.fromkeys(str(one.step.number) for one in page.steps if is_left(page, one)))
    return f"; left: {', '.join(numbers)}." if numbers else "."


def is_left(page: RepairPage, told: RepairOutcome) -> bool:
    """Whether somebody has still to do it; what is only explained is nobody's."""
    if told.step.by == "nobody" or told.state in ("done", "skipped"):
        return False
    return isinstance(page.left, RepairPlan) and told.step.id in {
        step.id for step in page.left.steps
    }


def _unverified(page: RepairPage) -> str:
    bad = [told for told in page.results if not told.is_verified]
    if not bad and page.asks_nobody:
        return _BY_NOBODY
    if not bad:
        return "nothing of what was told is Seawall's to do."
    first = bad[0]
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return f"{first.step.number} {first.state}: {first.words}{more}."
