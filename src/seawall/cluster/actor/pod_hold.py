# SPDX-License-Identifier: Apache-2.0
"""How a pod on a silent node is kept there for half an hour, and no longer.  Pure.

The core deletes it when the shortest toleration of the node's taints is over, 300 s as a rule.  A
longer one that comes later is passed over so long as that deletion is planned: only a toleration
without an end cancels it.  So the hold has two steps, and the second must not come before the core
has seen the first.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from seawall.cluster.changes.changeable_kinds import DEATH_TAINTS

HOLD_SECONDS: Final = 1800
CANCEL_SECONDS: Final = 5.0
"""Between the two steps: the core makes one change of several to a pod that follow fast."""
Toleration = Mapping[str, Any]


class HoldStage(Enum):
    """How far the hold of a pod has come."""

    NONE = "none"
    ENDLESS = "endless"
    """The pending deletion is cancelled; without the second step the pod would stay for ever."""
    HELD = "held"


def held_tolerations(
    before: Sequence[Toleration], seconds: int | None
) -> list[dict[str, Any]] | None:
    """``before`` with another end of those for silent nodes; ``seconds`` None: without one.
    None: there is no such toleration, so nothing could be put back, for the API lets nobody take a
    toleration away again.
    """
    if not any(_is_of_death(one) for one in before):
        return None
    after = []
    for one in before:
        row = dict(one)
        if _is_of_death(one):
            row.pop("tolerationSeconds", None)
            if seconds is not None:
                row["tolerationSeconds"] = seconds
        after.append(row)
    return after


def hold_stage(tolerations: Sequence[Toleration]) -> HoldStage:
    """As it stands, whoever wrote it."""
    ends = {one.get("tolerationSeconds") for one in tolerations if _is_of_death(one)}
    if ends == {None}:
        return HoldStage.ENDLESS
    return HoldStage.HELD if ends == {HOLD_SECONDS} else HoldStage.NONE


def _is_of_death(one: Toleration) -> bool:
    return one.get("key") in DEATH_TAINTS and one.get("effect") == "NoExecute"
