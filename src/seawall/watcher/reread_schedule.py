# SPDX-License-Identifier: Apache-2.0
"""The schedule by which a group is read again: soon after it came, then about once a minute.

A runtime puts a container's first process into its cgroup, and then has it write its
oom_score_adj (runc: Apply, then the bootstrap data of nsexec): until then it has the runtime's,
-998 or -999, as a pod that the node needs.
"""

import math
from typing import Final

AGAIN_SECONDS: Final = 60.0
"""Values that processes can change are read again, a part of the groups each time."""
SETTLED_SECONDS: Final = 3.0
"""What was read of a group before is not yet its own."""
_SPREAD_SECONDS: Final = 16


class RereadSchedule:
    """Seconds of the monotonic clock, by path."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._young: dict[str, float] = {}

    def is_due(self, path: str, now: float) -> bool:
        """Also where it was never read."""
        return now >= self._due.get(path, -math.inf)

    def is_any_settled(self, now: float) -> bool:
        """Whether a group that was new is due."""
        return any(now >= due for due in self._young.values())

    def was_read(self, path: str, now: float, *, is_new: bool) -> None:
        """``is_new``: its cgroup was not there before."""
        if is_new:
            self._due[path] = self._young[path] = now + SETTLED_SECONDS
            return
        # Spread, so that a thousand groups are not read in one look.
        self._due[path] = now + AGAIN_SECONDS - hash(path) % _SPREAD_SECONDS
        self._young.pop(path, None)

    def forget(self, path: str) -> None:
        """Drop a group whose cgroup is gone from the schedule."""
        self._due.pop(path, None)
        self._young.pop(path, None)
