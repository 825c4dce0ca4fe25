# SPDX-License-Identifier: Apache-2.0
"""Takes back what was done in the name of quarantines that are released, over, or gone.

What was changed is found by its label, whoever changed it and whenever; no brake stops this.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from seawall.cluster.actor.actor_events import ActorEvent
from seawall.cluster.actor.actor_metrics import ActorMetrics
from seawall.cluster.actor.pod_hold import (
    CANCEL_SECONDS,
    HOLD_SECONDS,
    HoldStage,
    held_tolerations,
    hold_stage,
)
from seawall.cluster.changes.change_patch import ChangeOutcome, FieldChange
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import TOLERATIONS, changeable_kind
from seawall.cluster.changes.changed_objects import (
    ChangedObject,
    ChangeSearch,
    changed_objects,
    gated_pods,
)
from seawall.cluster.changes.object_change import ObjectAddress, ObjectChange, object_address
from seawall.cluster.kube.kube_client import KubeClient, Object
from seawall.cluster.objects.api_group import ACTOR_MANAGER
from seawall.cluster.objects.match_objects import meets_pod
from seawall.cluster.objects.workload_quarantine_object import WorkloadMatch
from seawall.cluster.observer.observer_events import EventTarget

LOG: Final = logging.getLogger("seawall.actor")
_STAYS: Final = (ChangeOutcome.REFUSED,)


class UndoneField(NamedTuple):
    """One field of one object."""

    address: ObjectAddress
    change: FieldChange

    @property
    def quarantine(self) -> str:
        """In whose name it was changed; empty: that is not known."""
        return self.change.record.quarantine if self.change.record else ""

    @property
    def is_over(self) -> bool:
        """Nothing of it is left to undo."""
        return self.change.outcome not in _STAYS


class QuarantineUndo:
    """By the actor's own account."""

    def __init__(
        self, client: KubeClient, metrics: ActorMetrics, tell: Callable[[ActorEvent], None]
    ) -> None:
        self._client, self._metrics, self._tell = client, metrics, tell
        self._writer = ChangeWriter(client, ACTOR_MANAGER)

    def changed(self) -> ChangeSearch:
        """All that carries our label, and which kinds could not be listed.  KubeProblem."""
        return changed_objects(self._client)

    def undo(
        self, objects: Iterable[ChangedObject], standing: Collection[str]
    ) -> list[UndoneField]:
        """Of these all that was changed in the name of none of ``standing``.  KubeProblem."""
        undone: list[UndoneField] = []
        for one in objects:
            names = frozenset() if one.problem else one.quarantines - set(standing)
            for name in sorted(names):
                for change in self._writer.undo(one.address, name):
                    undone.append(UndoneField(one.address, change))
                    self._say(one.address, name, change)
        return undone

    def finish_holds(
        self, objects: Iterable[ChangedObject], standing: Collection[str], now_seconds: float
    ) -> None:
        """The second step of holds that nobody plans for any more: without it those pods would stay
        on their silent nodes for ever.  KubeProblem.
        """
        for one in objects:
            rows = [row for row in one.records if row.path == TOLERATIONS
                    and row.quarantine in standing and row.uid == one.address.uid]  # fmt: skip
            if not rows or hold_stage(rows[-1].after) is not HoldStage.ENDLESS:
                continue
            after = held_tolerations(rows[-1].after, HOLD_SECONDS)
            if after is None or now_seconds - rows[-1].at_seconds < 2 * CANCEL_SECONDS:
                continue
            change = ObjectChange(
                one.address, rows[-1].quarantine, TOLERATIONS, rows[-1].after, after
            )
            result = self._writer.apply(change)
            LOG.info("%s: the hold of %s ends by itself: %s", change.quarantine, one.address,
                     result.words or result.outcome.value)  # fmt: skip

    def ungate(self, gating: Mapping[str, WorkloadMatch]) -> int:
        """Pods that wait by our gate though no quarantine in ``gating`` means them go on; how many
        did.  KubeProblem.
        """
        count = 0
        for pod in gated_pods(self._client):
            if not any(meets_pod(match, pod) for match in gating.values()):
                count += self._open(pod)
        return count

    def _open(self, pod: Object) -> bool:
        """A gate is no change of ours on a living pod: admission put it there."""
        kind = changeable_kind("Pod", "v1")
        result = self._writer.open_gate(object_address(pod, kind))
        if result.outcome is ChangeOutcome.REFUSED:
            LOG.warning("gate of %s: %s", pod["metadata"].get("name"), result.words)
            self._metrics.refusals.labels("refused by the API").inc()
        elif result.outcome is ChangeOutcome.WRITTEN:
            self._metrics.count("undo", "gate opened", is_dry_run=False)
        return result.outcome is ChangeOutcome.WRITTEN

    def _say(self, address: ObjectAddress, name: str, change: FieldChange) -> None:
        words = change.words or change.outcome.value
        path = change.record.path if change.record else ""
        LOG.info("%s: undo %s %s: %s", name, address, path, words)
        self._metrics.count("undo", change.outcome.value, is_dry_run=False)
        if change.outcome is ChangeOutcome.GONE:
            return
        target = EventTarget(address.kind.kind, address.name, address.uid, address.namespace)
        note = f"quarantine {name} is over: {path} {words}"
        is_warning = change.outcome is not ChangeOutcome.WRITTEN
        self._tell(ActorEvent(
            "QuarantineUndone", target, note, f"{name} {path} {change.outcome.value}", is_warning,
            address.kind.api_version,
        ))  # fmt: skip
