# SPDX-License-Identifier: Apache-2.0
"""Groups stuck at their limit: whether the kernel's OOM killer can end them; asked in a child.

Two looks some seconds apart, of the cgroups that the guard names.  ``why`` is told only where
both hold: no kill could help (accounts/kill_prospects), and nothing in it got on meanwhile
(accounts/group_progress).
"""

import time
from typing import Any, Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.group_progress import GroupProgress, progress_of, refused_per_s
from seawall.accounts.limits.kill_prospects import KillProspects
from seawall.accounts.oom import salvage
from seawall.accounts.scene import TopicWindow
from seawall.findings.kill_words import hopeless_words
from seawall.host.host import JSON, Unread
from seawall.host.live import LiveHost
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.readings.snapshot import Snapshot
from seawall.watcher.guard_endpoint import word

WINDOW_SECONDS: Final = 2.0
_GROUPS_MOST: Final = 16
_NEAR: Final = 0.95
_BACK_FRACTION: Final = 0.10
_KILLS_MOST: Final = 200
_FULL_SHARE: Final = 0.5
_USER_CPUS: Final = 0.05
_REFUSED_LEAST: Final = 1.0


def stuck(cgroups: list[str]) -> JSON:
    """Rows of the message ``stuck``."""
    wanted = cgroups[:_GROUPS_MOST]
    host = LiveHost("/")
    try:
        first = Snapshot(host)
        first.get(MemoryGroups), first.get(Processes)
        began = time.monotonic()
        time.sleep(WINDOW_SECONDS if wanted else 0.0)
        last = Snapshot(host)
        return _rows(wanted, first, last, time.monotonic() - began)
    finally:
        host.close()


def _rows(wanted: list[str], first: Snapshot, last: Snapshot, seconds: float) -> JSON:
    before, groups = first.get(MemoryGroups), last.get(MemoryGroups)
    earlier, later = first.get(Processes), last.get(Processes)
    kernel, prospects = last.get(Kernel), last.get(KillProspects)
    if isinstance(before, Unread) or isinstance(groups, Unread) or isinstance(kernel, Unread):
        return []
    window = TopicWindow(before, groups, seconds)
    tasks: TopicWindow[Processes] | Unread = Unread("/proc", "failed")
    if not isinstance(earlier, Unread) and not isinstance(later, Unread):
        tasks = TopicWindow(earlier, later, seconds)
    rows: list[JSON] = []
    for path in wanted:
        group = groups.by_path.get(path)
        if group is None:
            continue
        refused = refused_per_s(group, window, _NEAR)
        seen = progress_of(group, window, tasks, kernel, refused[1] if refused else None)
        rows.append(_row(group, refused[0] if refused else None, seen, prospects))
    return rows


def _row(
    group: MemoryGroup,
    refused: float | None,
    seen: GroupProgress,
    prospects: KillProspects | Unread,
) -> dict[str, Any]:
    has_seen = seen.full is not None or seen.user_cpus is not None
    is_stuck = (
        has_seen
        and (refused or 0.0) >= _REFUSED_LEAST
        and seen.is_refused_for_good  # whoever is only slow is not to be killed
        and seen.is_stuck(_FULL_SHARE, _USER_CPUS)
    )
    row: dict[str, Any] = {
        "cgroup": group.path,
        "why": "",
        "returns": group.held_bytes or 0,
        "is_stuck": is_stuck,
        "refused_per_second": refused,
        "full": seen.full,
        "user_cpus": seen.user_cpus,
        "processes": seen.processes,
    }
    if is_stuck and not isinstance(prospects, Unread):
        found = prospects.hopeless(group, _BACK_FRACTION, _KILLS_MOST)
        if isinstance(found, salvage.Hopeless):
            row["why"] = word(hopeless_words(group, found)[0])
    return row
