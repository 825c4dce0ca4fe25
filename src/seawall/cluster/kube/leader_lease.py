# SPDX-License-Identifier: Apache-2.0
"""Which of several observers leads: a Lease of ``coordination.k8s.io/v1``, as client-go keeps it.

What another one wrote is judged by when *we* saw it change, on our own steady clock: nobody's wall
clock counts.  A leader that cannot renew stops leading by itself, ``deadline_seconds`` after the
last renewal was *sent*, which is before anybody else may take over.
"""

import contextlib
import datetime as dt
import logging
import threading
from typing import Final, NamedTuple

from seawall.cluster.kube.kube_client import (
    KubeClient,
    KubeProblem,
    KubeRefusal,
    Object,
    steady_seconds,
)

LOG: Final = logging.getLogger("seawall.lease")
_REQUEST_SECONDS: Final = 4.0
"""So that there are two tries before the deadline."""


class LeaseTimes(NamedTuple):
    """As kube-controller-manager has them."""

    duration_seconds: int = 15
    """Others wait so long after the last change that they saw."""
    deadline_seconds: float = 10.0
    """A leader stops so long after its last renewal."""
    retry_seconds: float = 2.0


class LeaderLease:
    """``run`` in a thread of its own; ``holds`` from any.

    A write of a leader is fenced: ``client.fence = lambda: lease.holds(term)`` with the ``term`` in
    which it began, so that who was stopped for a while and leads again does not go on where it was.
    """

    def __init__(self, client: KubeClient, namespace: str, name: str, identity: str,
                 times: LeaseTimes | None = None) -> None:  # fmt: skip
        """identity: of this process alone, a pod's name and uid."""
        self._client, self._identity = client, identity
        self._name, self._times = name, times or LeaseTimes()
        self.namespace = namespace
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._ended = threading.Event()
        self._lease: Object | None = None
        self._seen: tuple[str, object] | None = None
        self._seen_at = 0.0
        self._until = 0.0
        self.term = 0
        """Grows each time that this process begins to lead."""
        self.answered_at = 0.0
        """When the API last answered, on ``steady_seconds``; 0: never."""
        self.holder = ""
        """Who leads, as far as known."""
        self.problem = ""
        """Why the last try failed; empty: it did not."""

    def holds(self, term: int | None = None) -> bool:
        """Whether this process leads now, and did so without a break since that term began."""
        return steady_seconds() < self._until and term in {None, self.term}

    def stop(self) -> None:
        """``run`` gives the lease back and returns."""
        self._ended.set()

    def run(self) -> None:
        """Contends and renews until ``stop``."""
        while not self._ended.is_set():
            began = steady_seconds()
            try:
                self._try(began)
                self._note("")
            except KubeProblem as problem:
                self._note("" if _is_conflict(problem) else str(problem))
                if isinstance(problem, KubeRefusal):
                    self.answered_at = steady_seconds()
                if _is_conflict(problem):
                    self._lease = None  # somebody else wrote it
            self._ended.wait(self._pause())
        self._give_back()

    def _note(self, problem: str) -> None:
        """Say it once: who does not lead writes nothing else that anybody could find."""
        if problem and problem != self.problem:
            LOG.warning("lease %s: %s", self._name, problem)
        elif self.problem and not problem:
            LOG.info("lease %s: answered again", self._name)
        self.problem = problem

    def _pause(self) -> float:
        """Another one's lease is looked at right when it runs out."""
        left = self._seen_at + self._duration() - steady_seconds()
        is_soon = 0.0 < left < self._times.retry_seconds and not self.holds()
        return left + 0.05 if is_soon else self._times.retry_seconds

    def _duration(self) -> float:
        """Of the lease as it was last seen."""
        spec = (self._lease or {}).get("spec") or {}
        return float(spec.get("leaseDurationSeconds") or self._times.duration_seconds)

    def _try(self, began: float) -> None:
        """One renewal, or one look at whose it is."""
        if self._lease is None or not self.holds():
            self._look()
        if self._lease is None:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": self._name}, "spec": self._spec(None)}  # fmt: skip
            answer = self._client.create(
                self._collection, body, seconds=_REQUEST_SECONDS, is_urgent=True
            )
        elif self._may_take():
            body = {**self._lease, "spec": self._spec(self._lease.get("spec") or {})}
            answer = self._client.replace(
                self._path, body, seconds=_REQUEST_SECONDS, is_urgent=True
            )
        else:
            return
        self._observe(answer)
        until = began + self._times.deadline_seconds
        if not self.holds() and steady_seconds() < until:
            self.term += 1  # first: whoever holds the term before it must not hold for a moment
        self._until = until

    def _look(self) -> None:
        try:
            self._observe(self._client.get(self._path, seconds=_REQUEST_SECONDS, is_urgent=True))
        except KubeRefusal as problem:
            if problem.status != 404:
                raise
            self._lease = None

    def _observe(self, lease: Object) -> None:
        self.answered_at = steady_seconds()
        spec = lease.get("spec") or {}
        seen = (str(spec.get("holderIdentity") or ""), spec.get("renewTime"))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self.answered_at
        self._lease, self.holder = lease, seen[0]

    def _may_take(self) -> bool:
        """Its own, nobody's, or one that has not changed for as long as its holder said."""
        if self.holder in {"", self._identity}:
            return True
        return steady_seconds() - self._seen_at > self._duration()

    def _spec(self, before: Object | None) -> Object:
        now = self._now()
        mine = before is not None and before.get("holderIdentity") == self._identity
        began = (before or {}).get("acquireTime") if mine else now
        changes = 0 if before is None else int(before.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._times.duration_seconds,
            "acquireTime": began or now, "renewTime": now,
            "leaseTransitions": changes + (0 if mine or before is None else 1),
        }  # fmt: skip

    def _now(self) -> str:
        """For people to read; nobody decides by it."""
        moment = dt.datetime.fromtimestamp(self._client.server_seconds(), dt.timezone.utc)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _give_back(self) -> None:
        """So that the next one does not wait."""
        is_mine = self.holds() and self._lease is not None
        self._until = 0.0
        if is_mine and self._lease is not None:
            spec = {**self._spec(self._lease["spec"]), "holderIdentity": "",
                    "leaseDurationSeconds": 1}  # fmt: skip
            with contextlib.suppress(KubeProblem):
                self._client.replace(
                    self._path, {**self._lease, "spec": spec}, seconds=_REQUEST_SECONDS,
                    is_urgent=True,
                )  # fmt: skip


def _is_conflict(problem: KubeProblem) -> bool:
    return isinstance(problem, KubeRefusal) and problem.status == 409
