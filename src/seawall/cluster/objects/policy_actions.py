# SPDX-License-Identifier: Apache-2.0
"""``SeawallPolicy.spec.actions``: what the actor may do, to whom, and what stops it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from seawall.cluster.objects.action_levers import (
    APPROVALS,
    LEVERS,
    LEVERS_BY_DEFAULT,
    ActionApproval,
    ActionLever,
)
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    ObjectFields,
    ObjectProblem,
    clean,
    without_absent,
)

NAMESPACES_MOST: Final = 256
BRAKES_MOST: Final = 32
_COUNT_MOST: Final = 1_000_000
CANARY_SECONDS: Final = 600.0
_CANARY_LEAST: Final = 10.0
_CANARY_MOST: Final = 86400.0
_VIEW_AGE_LEAST: Final = 5.0
_VIEW_AGE_MOST: Final = 600.0


@dataclass(frozen=True, slots=True)
class ActionBrakes:
    """Bounds of what the actor does by itself."""

    nodes_least: int = 2
    """Distinct nodes that died with a workload, before anything but a hold."""
    quarantines_per_hour: int = 3
    quarantines_per_day: int = 10
    held_pods_most: int = 500
    held_pods_share: float = 0.02
    """Of all pods of the cluster; the smaller of the two holds."""
    view_age_seconds: float = 30.0
    """Of the oldest watch: what is older is no ground to act on."""
    approval_above_nodes: int = 8
    """A job on more nodes than this is stopped only with a person's word."""

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        return {name: getattr(self, attribute) for name, (attribute, *_) in _NUMBERS.items()}


_NUMBERS: Final[Mapping[str, tuple[str, type, float, float]]] = {
    # One node is a coincidence: nobody may set it lower than two.
    "nodesLeast": ("nodes_least", int, 2, 1000),
    "quarantinesPerHour": ("quarantines_per_hour", int, 0, 1000),
    "quarantinesPerDay": ("quarantines_per_day", int, 0, 1000),
    "heldPodsMost": ("held_pods_most", int, 0, _COUNT_MOST),
    "heldPodsShare": ("held_pods_share", float, 0.0, 1.0),
    "viewAgeSeconds": ("view_age_seconds", float, _VIEW_AGE_LEAST, _VIEW_AGE_MOST),
    "approvalAboveNodes": ("approval_above_nodes", int, 0, _COUNT_MOST),
}


@dataclass(frozen=True, slots=True)
class NamespaceActions:
    """What holds in one namespace instead."""

    name: str
    approval: ActionApproval | None = None
    """None: as everywhere."""
    levers: tuple[tuple[ActionLever, bool], ...] = ()
    """Those that are set here; the others are as everywhere."""


@dataclass(frozen=True, slots=True)
class PolicyActions:
    """What the actor may do; without a word of anybody it tells what it would do."""

    dry_run: bool = True
    approval: ActionApproval = ActionApproval.APPROVE
    levers: frozenset[ActionLever] = LEVERS_BY_DEFAULT
    namespaces: tuple[NamespaceActions, ...] = ()
    brakes: ActionBrakes = field(default=ActionBrakes())
    canary_seconds: float = CANARY_SECONDS
    """So long the first pod on probation runs before others of its family may."""

    def approval_in(self, namespace: str) -> ActionApproval:
        """Who decides there."""
        found = self._namespace(namespace)
        return found.approval if found is not None and found.approval else self.approval

    def levers_in(self, namespace: str) -> frozenset[ActionLever]:
        """What may be done there."""
        found = self._namespace(namespace)
        if found is None:
            return self.levers
        own = dict(found.levers)
        return frozenset(one for one in ActionLever if own.get(one, one in self.levers))

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        return {
            "dryRun": self.dry_run, "approval": self.approval.value,
            "levers": {one.value: one in self.levers for one in ActionLever},
            "namespaces": [
                without_absent({
                    "name": one.name,
                    "approval": None if one.approval is None else one.approval.value,
                    "levers": {lever.value: is_on for lever, is_on in one.levers} or None,
                })
                for one in self.namespaces
            ],
            "brakes": self.brakes.document(), "canarySeconds": self.canary_seconds,
        }  # fmt: skip

    def _namespace(self, name: str) -> NamespaceActions | None:
        return next((one for one in self.namespaces if one.name == name), None)


@dataclass(frozen=True, slots=True)
class TrippedBrake:
    """One that holds the actor back (``SeawallPolicy.status.brakes``)."""

    name: str
    since_seconds: float
    why: str = ""

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        return without_absent({
            "name": self.name, "since": time_words(self.since_seconds),
            "why": clean(self.why, TEXT_LETTERS),
        })  # fmt: skip


def policy_actions(fields: ObjectFields | None) -> PolicyActions:
    """From JSON; what is absent has its default.  ObjectProblem: what is wrong with it."""
    if fields is None:
        return PolicyActions()
    default = PolicyActions()
    own = dict(_levers(fields))
    namespaces = tuple(
        NamespaceActions(row.needed_text("name"), row.word("approval", APPROVALS), _levers(row))
        for row in fields.rows("namespaces", NAMESPACES_MOST)
    )
    names = [one.name for one in namespaces]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ObjectProblem(f"{fields.where}.namespaces: expected each once, found {twice} twice")
    return PolicyActions(
        fields.flag("dryRun", default=default.dry_run),
        fields.word("approval", APPROVALS) or default.approval,
        frozenset(one for one in ActionLever if own.get(one, one in default.levers)),
        namespaces,
        _brakes(fields.fields("brakes")),
        fields.number_between("canarySeconds", _CANARY_LEAST, _CANARY_MOST)
        or default.canary_seconds,
    )


def tripped_brakes(fields: ObjectFields | None) -> tuple[TrippedBrake, ...]:
    """Of a policy's status.  ObjectProblem: what is wrong with it."""
    rows = [] if fields is None else fields.rows("brakes", BRAKES_MOST)
    return tuple(
        TrippedBrake(
            row.needed_text("name"), row.needed_seconds("since"), row.text("why", TEXT_LETTERS)
        )
        for row in rows
    )


def _levers(fields: ObjectFields) -> tuple[tuple[ActionLever, bool], ...]:
    levers = fields.fields("levers")
    if levers is None:
        return ()
    return tuple((one, levers.flag(word)) for word, one in LEVERS.items() if levers.has(word))


def _brakes(fields: ObjectFields | None) -> ActionBrakes:
    numbers: dict[str, Any] = {}
    for name, (attribute, kind, least, most) in _NUMBERS.items() if fields is not None else ():
        assert fields is not None  # noqa: S101 - the loop is empty without it
        if kind is int:
            fields.whole(name)
        number = fields.number_between(name, least, most)
        if number is not None:
            numbers[attribute] = kind(number)
    return ActionBrakes(**numbers)
