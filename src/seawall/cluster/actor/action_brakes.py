# SPDX-License-Identifier: Apache-2.0
"""What stops everything new: an old view, an API server that fails, a storm, a person.  Pure.

None of them stops an undo, nor the second step of a hold.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

STORM_LEAST: Final = 10
STORM_SHARE: Final = 0.03
STORM_WITHIN_SECONDS: Final = 60.0
STORM_OVER_SECONDS: Final = 600.0
"""Without a further node."""
ERRORS_WITHIN_SECONDS: Final = 60.0
ERRORS_SHARE: Final = 0.10
REQUESTS_LEAST: Final = 10
RequestCounts = Mapping[tuple[str, str, str], int]


class SilenceStorm:
    """Many nodes that fall silent at once: power, network or the API server, and no workload."""

    def __init__(self, least: int = STORM_LEAST, words: str = "within a minute") -> None:
        """least: so many nodes at any size of the cluster; words: how close together they fell"""
        self._least, self._words = least, words
        self._fell: list[tuple[float, str]] = []
        self._last = float("-inf")
        self._nodes = 0

    def fall(self, node: str, at_seconds: float) -> None:
        """A node that spoke is silent."""
        self._fell.append((at_seconds, node))

    def why(
        self, now_seconds: float, nodes: int, within_seconds: float = STORM_WITHIN_SECONDS
    ) -> str:
        """Why this is a storm; empty: it is none, or over.

        within_seconds:  how far apart nodes may be seen silent that fell silent together
        """
        self._fell = [one for one in self._fell if one[0] >= now_seconds - within_seconds]
        fallen = len({node for _, node in self._fell})
        if fallen >= max(self._least, nodes * STORM_SHARE):
            self._last, self._nodes = now_seconds, max(fallen, self._nodes)
        if now_seconds - self._last < STORM_OVER_SECONDS:
            return f"{self._nodes} nodes fell silent {self._words}"
        self._nodes = 0
        return ""


class ApiErrors:
    """The share of our own requests that the API server could not answer, of the last minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, int]] = deque()

    def take(self, counts: RequestCounts, at_seconds: float) -> None:
        """What the client has counted up to now."""
        whole = sum(number for (*_, code), number in counts.items() if code != "fenced")
        bad = sum(number for (*_, code), number in counts.items() if _is_bad(code))
        self._samples.append((at_seconds, whole, bad))
        while len(self._samples) > 2 and self._samples[1][0] < at_seconds - ERRORS_WITHIN_SECONDS:
            self._samples.popleft()

    def why(self) -> str:
        """Why the API server is no ground to stand on; empty: it is."""
        if len(self._samples) < 2:
            return ""
        whole = self._samples[-1][1] - self._samples[0][1]
        bad = self._samples[-1][2] - self._samples[0][2]
        if whole >= REQUESTS_LEAST and bad > ERRORS_SHARE * whole:
            return f"{bad} of {whole} requests of the last minute failed"
        return ""


def _is_bad(code: str) -> bool:
    return code == "unreachable" or (code.isdigit() and int(code) >= 500)
