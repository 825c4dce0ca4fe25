# SPDX-License-Identifier: Apache-2.0
"""What the judge says in one tick: why, whom it looked at, what is to be done."""

from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.actions.orders import Order, Outcome

Trigger: TypeAlias = Literal["node_short", "over_limit", "stuck_at_limit", "quarantined"]
TRIGGERS: Final = ("node_short", "over_limit", "stuck_at_limit", "quarantined")
POLICY_IS_REPORT: Final = 'the policy is "report"'
NOT_OPTED_IN: Final = "over_limit_opt_in does not name it"
"""So ``refused`` begins where nothing was wanted but the report."""


class Rank(NamedTuple):
    """One group as it was looked at; kept whole, whether it was chosen or not."""

    path: str
    inode: int
    name: str
    place: int
    """1 goes first; 0: never (see ``against``)."""
    class_rank: int
    charge_bytes: int
    limit_bytes: int | None
    outside_certain_bytes: int
    outside_most_bytes: int
    expected_return_bytes: int
    growth_bytes_per_second: float
    score: float
    reasons: tuple[str, ...]
    """For it to go, in words a person understands, numbers first."""
    against: tuple[str, ...]
    """Why it does not."""
    is_source: bool = False
    """Most of what the node lost was proved to have gone to it, alone or as one of two or three."""


class Verdict(NamedTuple):
    """One decision; its orders belong together."""

    decision: str
    """``BOOT8-NNNN``: first eight characters of the boot id, and a number that goes up."""
    seconds: float
    trigger: Trigger
    is_report: bool
    """Nothing is done: ``refused`` says why, or the policy is ``report``."""
    need_bytes: int
    """What has to come back."""
    budget_seconds: float
    """Headroom divided by slope: so long the node has."""
    orders: tuple[Order, ...]
    ranking: tuple[Rank, ...]
    """The leaders; the others are ``Judge.rest``."""
    refused: str
    """Why nothing, or nothing more, is done; empty when something is."""
    sentence: str
    """What a person reads first."""
    is_ordered: bool = False
    """By a rescue order: it is carried out also where the guard only observes, if its file lets it
    (``rescue``)."""

    @property
    def is_refusal(self) -> bool:
        """Something was to be done, and is not."""
        return bool(self.refused) and not self.refused.startswith((POLICY_IS_REPORT, NOT_OPTED_IN))


class DecisionUpdate(NamedTuple):
    """What became of a decision; goes into the journal under the same id."""

    decision: str
    seconds: float
    outcome: Outcome | None
    """None: it only tells what came back."""
    returned_bytes: int | None
    """What came back since the first order; None: not measured yet."""
    sentence: str
