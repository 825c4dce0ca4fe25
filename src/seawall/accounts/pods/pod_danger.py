# SPDX-License-Identifier: Apache-2.0
"""Which rows of ``seawall pods`` must jump to the eye.  A mark, not a finding: the rules
judge with rates and reasons (``seawall why``).
"""

from dataclasses import dataclass
from typing import Literal

from seawall.accounts.cgroup_memory.danger_thresholds import (
    CLOSE_FRACTION,
    NEAR_FRACTION,
    STALL_FRACTION,
)
from seawall.accounts.pods.pod_table import PodRow, Room


@dataclass(frozen=True, slots=True)
class Danger:
    """How bad, what for people, and the numbers in it."""

    level: Literal["critical", "warning"]
    what: Literal["under_oom", "near_limit", "over_outside", "stalled", "killed"]


def danger_of(row: PodRow) -> Danger | None:
    """The worst thing that one look can tell; None when there is none."""
    if row.memcg.under_oom:
        return Danger("critical", "under_oom")
    if row.kills is not None and row.kills.in_window:
        return Danger("critical", "killed")
    if isinstance(row.room, Room):
        left = row.room.grows / max(row.room.limit, 1)
        if left < NEAR_FRACTION:
            return Danger("critical", "near_limit")
        if row.overrun is not None and row.overrun.level == "critical":
            return Danger("critical", "over_outside")
        if left < CLOSE_FRACTION:
            return Danger("warning", "near_limit")
    if row.overrun is not None:
        return Danger("warning", "over_outside")
    if row.pressure is not None and row.pressure >= STALL_FRACTION:
        return Danger("warning", "stalled")
    if row.oom_kills:
        return Danger("warning", "killed")
    return None


def attention_of(row: PodRow) -> Danger | None:
    """The danger of a row that stands for a workload: a parent repeats what its children tell,
    but for what it alone holds.
    """
    danger = danger_of(row)
    if danger is None or row.is_leaf or danger.what == "over_outside":
        return danger
    return None
