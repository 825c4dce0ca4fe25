# SPDX-License-Identifier: Apache-2.0
"""What can be done about a workload, by the words of policy and chart."""

from enum import Enum
from typing import Final


class ActionLever(Enum):
    """Mildest first; the value is the switch's name in ``SeawallPolicy.spec.actions.levers``."""

    HOLD = "hold"
    """Its pods stay where they are, by a toleration that ends by itself."""
    PROBATION = "probation"
    """New pods only on nodes whose guard enforces."""
    SUSPEND = "suspend"
    """The owner's own switch."""
    GATE = "gate"
    """New pods wait at admission."""
    STOP_COPIES = "stopCopies"
    """Living pods are deleted."""
    SCALE_TO_ZERO = "scaleToZero"
    """A Deployment or StatefulSet, which has no switch."""
    MOVE_INNOCENTS = "moveInnocents"
    """Pods of others leave a dead node before its 300 s are over."""
    RESCUE = "rescue"
    """A silent node's own guard is asked to end the culprit."""


class ActionApproval(Enum):
    """Who decides that something is done."""

    OBSERVE = "observe"
    """Nobody: nothing is done."""
    APPROVE = "approve"
    """A person, each time (``status.approvedBy``)."""
    AUTO = "auto"
    """The actor, within its brakes."""


class ActionResult(Enum):
    """What became of an action; readers take other words too, those of a later version."""

    DONE = "done"
    DRY_RUN = "dry-run"
    REFUSED = "refused"
    """By a brake or by the API server; ``problem`` says which."""
    FAILED = "failed"
    REVERTED = "reverted"
    """Somebody else put it back: that lever rests."""
    UNDONE = "undone"


LEVERS: Final = {one.value: one for one in ActionLever}
APPROVALS: Final = {one.value: one for one in ActionApproval}
LEVERS_BY_DEFAULT: Final = frozenset({
    ActionLever.HOLD, ActionLever.PROBATION, ActionLever.SUSPEND, ActionLever.GATE,
    ActionLever.STOP_COPIES,
})  # fmt: skip
