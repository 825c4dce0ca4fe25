# SPDX-License-Identifier: Apache-2.0
"""Many nodes that fall silent at once: power, network or slurmctld itself, and no job.  Pure."""

from typing import Final

OUTAGE_LEAST: Final = 3
OUTAGE_SHARE: Final = 0.03
OUTAGE_OVER_SECONDS: Final = 600.0
"""Without a further one."""


class OutageBrake:
    """Stops everything new, and no release."""

    def __init__(self) -> None:
        self._fell: list[tuple[float, str]] = []
        self._last = float("-inf")
        self._most = 0

    def fall(self, node: str, at_seconds: float) -> None:
        """A node that answered is silent."""
        self._fell.append((at_seconds, node))

    def why(self, now_seconds: float, nodes: int, round_seconds: float) -> str:
        """Why this is an outage; empty: it is none, or over.

        round_seconds:  how far apart nodes are found silent that fell silent together
        """
        self._fell = [one for one in self._fell if one[0] >= now_seconds - round_seconds]
        fallen = len({node for _, node in self._fell})
        if fallen >= max(OUTAGE_LEAST, nodes * OUTAGE_SHARE):
            self._last, self._most = now_seconds, max(fallen, self._most)
        if now_seconds - self._last < OUTAGE_OVER_SECONDS:
            return f"{self._most} nodes fell silent together"
        self._most = 0
        return ""
