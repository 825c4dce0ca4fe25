# SPDX-License-Identifier: Apache-2.0
"""What the planner answers: steps that are to be made in order, and what is refused.  Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from seawall.cluster.changes.object_change import ObjectAddress
from seawall.cluster.objects.action_levers import ActionLever
from seawall.cluster.objects.quarantine_actions import QuarantineCanary
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState


class RefusalReason(Enum):
    """Why a step is not made; the value is a metric's label."""

    APPROVAL = "approval"
    OBSERVE = "observe"
    LEVER_OFF = "lever off"
    NO_CANARY = "no canary"
    PROTECTED = "protected"
    NODES = "nodes"
    HOUR = "quarantines per hour"
    DAY = "quarantines per day"
    HELD = "held pods"
    SINGLE_REPLICA = "single replica"
    BRAKE = "brake"
    REVERTED = "reverted"
    NO_SWITCH = "no switch"
    UNSEEN = "unseen"
    NOT_IN_FORCE = "not in force"
    REFUSED_BY_API = "refused by the API"


@dataclass(frozen=True, slots=True)
class StateStep:
    """Another state or mode of the quarantine itself."""

    state: QuarantineState
    mode: QuarantineMode
    why: str


@dataclass(frozen=True, slots=True)
class FieldStep:
    """A field of somebody's object gets another value."""

    lever: ActionLever
    target: ObjectAddress
    path: str
    before: Any
    after: Any
    why: str


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """A living pod is deleted, which cannot be undone."""

    lever: ActionLever
    namespace: str
    name: str
    uid: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class GateStep:
    """A pod that waits is let go, onto guarded nodes alone; there is no way back."""

    lever: ActionLever
    namespace: str
    name: str
    uid: str
    why: str


LeverStep = StateStep | FieldStep | DeleteStep | GateStep


@dataclass(frozen=True, slots=True)
class LeverRefusal:
    """A step that is not made."""

    lever: str
    """An ``ActionLever``'s value, or ``activate``."""
    reason: RefusalReason
    words: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class LeverPlan:
    """For one quarantine, at one moment."""

    finishing: tuple[LeverStep, ...] = ()
    """Second halves of what was begun: made whatever brake is set, and in a dry run, too."""
    steps: tuple[LeverStep, ...] = ()
    refusals: tuple[LeverRefusal, ...] = ()
    is_dry_run: bool = False
    canary: QuarantineCanary | None = None
    """As it is to stand in the status; another one than stands there is written before any step."""
