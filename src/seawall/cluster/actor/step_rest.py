# SPDX-License-Identifier: Apache-2.0
"""How long a step waits that the API server has refused."""

from typing import Final

from seawall.cluster.kube.kube_client import RetryDelay
from seawall.cluster.objects.api_group import IN_FORCE_FENCE

REST_MOST_SECONDS: Final = 300.0
FENCE_SECONDS: Final = 5.0
"""What the fence of our own account waits for is the observer's next write of its map: that comes
within a second of its return, and nobody else is asked for anything meanwhile.
"""


class StepRest:
    """Of one step: longer each time."""

    def __init__(self) -> None:
        self._delay = RetryDelay(1.0, REST_MOST_SECONDS)
        self._fence_delay = RetryDelay(1.0, FENCE_SECONDS)
        self.due = 0.0

    def refuse(self, words: str, now: float) -> None:
        """``words``: the API server's own; ``now``: on a steady clock, as ``due`` is then."""
        delay = self._fence_delay if IN_FORCE_FENCE in words else self._delay
        self.due = now + delay.next_seconds()
