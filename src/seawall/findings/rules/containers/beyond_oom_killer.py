# SPDX-License-Identifier: Apache-2.0
"""A container near its limit that the OOM killer cannot save.

At the limit the kernel kills inside the container until memory comes back.  That fails where
every process is immune (oom_score_adj -1000), where the memory is files in tmpfs, which no
kill frees, where this kernel's formula gives small and large processes the same points (RHEL 6
and before 3.5: less than 0.1 % of the limit each, 3 % as root), and where hundreds of small
processes have to die one by one.  The container then hangs or dies piece by piece.
"""

from typing import TYPE_CHECKING

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.group_progress import refused_per_s
from seawall.accounts.limits.kill_prospects import KillProspects
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Brief, Evidence, Finding, Severity, blind, fires, quiet
from seawall.findings.group_words import (
    end_all,
    filled,
    limit_steps,
    raise_limit,
    show_usage,
    unjudged,
)  # fmt: skip
from seawall.findings.rule import rule
from seawall.findings.shell import quote
from seawall.host.host import Unread
from seawall.words import size

if TYPE_CHECKING:
    from seawall.accounts.oom.salvage import Hopeless


@rule(
    id="SW210",
    title="A container cannot be saved by the OOM killer",
    severity="critical",
    thresholds={
        "near_fraction": "(usage - file pages - reclaimable slab) / limit",
        "back_fraction": "of the limit: kills that bring back less are no help; proposal",
        "kills_most": "kills for that much, none of which returns 1 % of the limit; proposal",
        "refused_per_second": "refused charges per second: it is at its limit already",
    },
    confirm=("seawall oom predict WORKLOAD",),
    remedy=("raise the limit, or end the container yourself before it hangs",),
    provide="root on the host: who is in the container, /proc/PID/status and oom_score_adj",
    explained_by=("SW203",),
)
def judge(
    groups: MemoryGroups,
    prospects: KillProspects | Unread,
    window: TopicWindow[MemoryGroups] | Unread,
    *,
    near_fraction: float = 0.90,
    back_fraction: float = 0.10,
    kills_most: int = 200,
    refused_per_second: float = 10.0,
) -> list[Finding]:
    findings: list[Finding] = []
    for group in groups.at(near_fraction):
        # The kernel kills nobody in one whose OOM killer is off: SW204 tells.
        is_near = (group.held_bytes or 0) >= near_fraction * (group.limit or 0)
        if not is_near or group.memcg.oom_kill_disable or group.pids == ():
            continue
        found: Hopeless | Unread | None = prospects if isinstance(prospects, Unread) else None
        if not isinstance(prospects, Unread):
            found = prospects.hopeless(group, back_fraction, kills_most)
        if isinstance(found, Unread):
            findings.append(blind(f"{group.name} is near its limit; who would die?", found))
        elif found is not None:
            refused = None if isinstance(window, Unread) else refused_per_s(group, window, 0.99)
            is_stuck = refused is not None and refused[0] >= refused_per_second
            findings.append(_finding(group, found, "critical" if is_stuck else "warning"))
    nothing = quiet("no container is near its limit and beyond help by the OOM killer")
    return findings or unjudged(groups) or [nothing]


def _finding(group: MemoryGroup, found: "Hopeless", severity: Severity) -> Finding:
    from seawall.findings.kill_words import (  # noqa: PLC0415 - rare
        hopeless_brief,
        hopeless_rows,
        hopeless_words,
    )

    headline, outlook = hopeless_words(group, found)
    held = Evidence("cannot be dropped", group.held_bytes, "bytes", group.usage_file)
    return fires(
        severity,
        f"{size(group.held_bytes or 0)} of the limit of {size(group.limit or 0)} cannot be"
        f" dropped, and {headline}",
        [*filled(group), held, *hopeless_rows(group, found)],
        outlook=outlook,
        workload=group.name,
        confirm=(f"seawall oom predict {quote(group.path)}", show_usage(group)),
        remedy=(f"let it go on: {raise_limit(group)}", f"or end it: {end_all(group)}"),
        brief=Brief(
            headline=f"no OOM kill can save it: {hopeless_brief(group, found)}",
            steps=limit_steps(group, "SW210", "let it go on"),
            effect=f"no OOM kill can save it: {hopeless_brief(group, found)}",
        ),
    )
