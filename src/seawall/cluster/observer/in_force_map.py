# SPDX-License-Identifier: Apache-2.0
"""Which quarantines there are and how far each has gone, where the actor's fences can look it up.

The chart makes the ConfigMap where it installs an actor; where it does not, there is nothing to
write, and no right to.
"""

import logging
from collections.abc import Iterable
from typing import Final

from seawall.cluster.kube.kube_client import KubeClient, KubeRefusal, steady_seconds
from seawall.cluster.objects.api_group import IN_FORCE_MAP, OBSERVER_MANAGER
from seawall.cluster.objects.object_fields import word_of
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
)

LOG: Final = logging.getLogger("seawall.observer")
LOOK_SECONDS: Final = 60.0
"""Until it is read again: somebody may have installed an actor, or made the map anew."""
NAMES_MOST: Final = 1000
_ABSENT: Final = (403, 404)


class InForceMap:
    """As the leader writes it."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{IN_FORCE_MAP}"
        self._known: dict[str, str] | None = None
        self._look_at = 0.0

    def forget(self) -> None:
        """Somebody else may have written it."""
        self._look_at = 0.0

    def write(self, quarantines: Iterable[WorkloadQuarantineObject]) -> None:
        """Where it differs from what stands there.  KubeProblem."""
        wanted = {
            one.name: f"{word_of(one.state)} {one.mode.value}"
            for one in quarantines
            if one.state is not QuarantineState.RELEASED
        }
        wanted = dict(sorted(wanted.items())[:NAMES_MOST])
        is_due = steady_seconds() >= self._look_at
        if not is_due and self._known in (None, wanted):
            return
        try:
            if is_due:
                self._known = dict(self._client.get(self._path).get("data") or {})
                self._look_at = steady_seconds() + LOOK_SECONDS
            known = self._known or {}
            gone = dict.fromkeys(known.keys() - wanted.keys())
            changed = {name: value for name, value in wanted.items() if known.get(name) != value}
            if gone or changed:
                body = {"data": {**gone, **changed}}
                self._client.merge(self._path, body, manager=OBSERVER_MANAGER)
            self._known = wanted
        except KubeRefusal as problem:
            if problem.status not in _ABSENT:
                raise
            self._known, self._look_at = None, steady_seconds() + LOOK_SECONDS
            LOG.debug("no actor is installed: %s", problem)
