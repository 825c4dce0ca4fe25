# SPDX-License-Identifier: Apache-2.0
"""Between watches, which are threads of their own, and the one thread that takes what they tell."""

import contextlib
import queue
import time
from collections.abc import Callable
from typing import Any

from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind

Taker = Callable[[ObjectEvent[Any]], None]


class _FirstList:
    """Of one watch."""

    is_taken = False


class EventQueue:
    """Of one controller."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._first_lists: dict[str, _FirstList] = {}

    def sink(self, resource: str, taker: Taker) -> Taker:
        """For a watch that begins: what it tells is given to ``taker`` by who calls ``take``."""
        first = self._first_lists[resource] = _FirstList()

        def take(event: ObjectEvent[Any]) -> None:
            first.is_taken = first.is_taken or event.kind is ObjectEventKind.SYNCED
            taker(event)

        return lambda event: self._queue.put(lambda: take(event))

    def take(self, round_seconds: float, batch_seconds: float) -> None:
        """All there are; the first is waited for, and a moment more."""
        with contextlib.suppress(queue.Empty):
            self._queue.get(timeout=round_seconds)()
            time.sleep(batch_seconds)
            while True:
                self._queue.get_nowait()()

    def is_taken(self, resource: str) -> bool:
        """Whether the first list of its last watch was taken to the end: the watch has it before,
        and who looked in between would take what was not heard of yet for gone.
        """
        first = self._first_lists.get(resource)
        return first is not None and first.is_taken

    def empty(self) -> bool:
        """Whether all that was told is taken."""
        return self._queue.empty()
