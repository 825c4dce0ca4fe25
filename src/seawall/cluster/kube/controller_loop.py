# SPDX-License-Identifier: Apache-2.0
"""What each controller process of ours is: watches and a lease in threads of their own, and one
thread that takes what they tell and does what is due.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from seawall.cluster.kube.custom_watch import CustomWatch
from seawall.cluster.kube.event_queue import EventQueue
from seawall.cluster.kube.kube_client import KubeClient, Object, RetryDelay, steady_seconds
from seawall.cluster.kube.leader_lease import LeaderLease
from seawall.cluster.kube.list_watch import ListWatch, ObjectEvent
from seawall.cluster.kube.node_row import NodeRow, RowFields
from seawall.cluster.kube.node_watch import NodeWatch
from seawall.cluster.objects.api_group import CustomKind, path_of


@dataclass(slots=True)
class WorkRetry:
    """Work that failed waits before it is tried again."""

    delay: RetryDelay = field(default_factory=RetryDelay)
    due: float = 0.0


class ControllerLoop:
    """A controller says what it watches (``_watch_all``) and what a round is (``turn``)."""

    ROUND_SECONDS: ClassVar = 0.5
    """So long a round waits for something to happen."""
    BATCH_SECONDS: ClassVar = 0.25
    """And so long for more of it: many nodes tell at once."""
    STUCK_SECONDS: ClassVar = 120.0
    """Who has not turned for so long is ill."""

    def __init__(self, client: KubeClient, lease: LeaderLease) -> None:
        self._client, self._lease = client, lease
        self._queue = EventQueue()
        self._is_stopped = False
        """A plain flag: a signal handler that sets an Event may wait for ever for that one's lock,
        which the line it interrupted holds.
        """
        self._turned_at = steady_seconds()
        self._threads: list[threading.Thread] = []
        self._custom: dict[CustomKind, CustomWatch] = {}
        self._node_watch: NodeWatch | None = None
        self._row_fields: RowFields | None = None

    def run(self) -> None:
        """Until ``stop``; the lease is given back.  RuntimeError: a thread has ended."""
        self._watch_all()
        self._start("lease", self._lease.run)
        try:
            while not self._is_stopped:
                self.turn()
                if dead := self._dead_threads():  # a view that never moves again would look whole
                    raise RuntimeError(f"a thread has ended: {dead}")
        finally:
            self.stop()
            for watch in self._watches().values():
                watch.stop()
            self._lease.stop()
            for thread in self._threads:
                thread.join(10.0)

    def turn(self) -> None:
        """Take what the watches told, then do what is due."""
        raise NotImplementedError

    def stop(self) -> None:
        """``run`` returns soon; from any thread, and from a signal's handler."""
        self._is_stopped = True

    def problem(self) -> str:
        """Why this process is ill; empty: it is well."""
        stuck = steady_seconds() - self._turned_at
        return f"the loop has not turned for {stuck:.0f} s" if stuck > self.STUCK_SECONDS else ""

    def watch_restarts(self) -> dict[tuple[str, str], int]:
        """By resource and reason, for the metrics."""
        return {
            (resource, reason): number
            for resource, watch in self._watches().items()
            for reason, number in dict(watch.restarts).items()
        }

    def _watch_all(self) -> None:
        raise NotImplementedError

    def _watch_kinds(
        self, takers: Mapping[CustomKind, Callable[[ObjectEvent[Object]], None]]
    ) -> None:
        for kind, taker in takers.items():
            watch = CustomWatch(self._client, path_of(kind), self._queue.sink(kind.plural, taker))
            self._custom[kind] = watch
            self._start(kind.plural, watch.run)

    def _watch_nodes(
        self, fields: RowFields, taker: Callable[[ObjectEvent[NodeRow]], None]
    ) -> None:  # fmt: skip
        """From now on these fields of each; another watch of them ends."""
        if self._node_watch is not None:
            self._node_watch.stop()
            self._threads = [one for one in self._threads if one.name != "nodes"]
        self._row_fields = fields
        self._node_watch = NodeWatch(self._client, fields, self._queue.sink("nodes", taker))
        self._start("nodes", self._node_watch.run)

    def _watches(self) -> dict[str, ListWatch[Any]]:
        watches: dict[str, ListWatch[Any]] = {
            kind.plural: watch for kind, watch in self._custom.items()
        }
        if self._node_watch is not None:
            watches["nodes"] = self._node_watch
        return watches

    def _take_events(self) -> None:
        """All there are; the first is waited for, and a moment more."""
        self._queue.take(self.ROUND_SECONDS, self.BATCH_SECONDS)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _dead_threads(self) -> str:
        """Those that ended by themselves."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        return "" if self._is_stopped else ", ".join(dead)
