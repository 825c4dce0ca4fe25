# SPDX-License-Identifier: Apache-2.0
"""The node's list of pods in quarantine: from the agent's file, and after a boot from the disk.

The disk's copy is read once, by a child of the aide's: a guard that starts before the kubelet knows
the pod that killed the node before that one is started again.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from seawall.guard.judge.judge import Judge
from seawall.guard.order_files import OrderFiles, QuarantinedPods, quarantined_pods
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import Verdict

KEPT_LIST: Final = "/var/lib/seawall/orders/quarantine.json"


class QuarantineDesk:
    """``step`` in every tick, after all that is more urgent; nothing without a list."""

    __slots__ = ("_is_heard", "_listed")

    def __init__(self) -> None:
        self._listed: QuarantinedPods | None = None
        self._is_heard = False
        """The agent has brought a list in this boot: the disk's is an older one."""

    @property
    def count(self) -> int:
        """Pods that are listed."""
        return 0 if self._listed is None else len(self._listed.pods)

    def take(self, files: OrderFiles) -> None:
        """The agent's list has come or changed; one that is gone or no list leaves what was."""
        if files.quarantined is not None:
            self._listed, self._is_heard = files.quarantined, True

    def take_kept(self, answer: Mapping[str, Any]) -> str:
        """What the disk holds, as the aide's child read it; in words, why it does not count."""
        found = answer.get("found")
        if isinstance(found, dict) and not self._is_heard:
            self._listed = quarantined_pods(found)
        return str(answer.get("problem") or "")[:300]

    def step(self, node: Node, groups: Mapping[str, Group], judge: Judge) -> Verdict | None:
        """At most one verdict."""
        if self._listed is None or not self._listed.pods:
            return None
        now, ends = time.time(), self._listed.until_unix_seconds
        over = [uid for uid, until in ends.items() if until <= now]
        for uid in over:
            del self._listed.pods[uid], ends[uid]
        return judge.quarantine(node, groups, self._listed.pods)
