# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a place: a pod of six containers is killed as a whole, and each of them
has a message of its own on the same slow disk.
"""

from typing import Any, Final

MOST: Final = 64
"""Of each kind: reports of many workloads leave room for what tells of a kill."""
KINDS: Final = ("termination_message", "job_output", "run", "hook", "job_command")
"""What happened once and is told once; all others are asked for again anyway."""


class WaitingRequests:
    """Requests to the aide that wait for a place, the oldest first; bounded."""

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: list[tuple[str, dict[str, Any]]] = []

    def __len__(self) -> int:
        return len(self._requests)

    def put(self, kind: str, request: dict[str, Any]) -> bool:
        """False: it has to be told as not done."""
        if kind not in KINDS or sum(of == kind for of, _ in self._requests) >= MOST:
            return False
        self._requests.append((kind, request))
        return True

    def take(self, kind: str) -> dict[str, Any] | None:
        """The one of this kind that has waited longest."""
        for at, (of, request) in enumerate(self._requests):
            if of == kind:
                del self._requests[at]
                return request
        return None
