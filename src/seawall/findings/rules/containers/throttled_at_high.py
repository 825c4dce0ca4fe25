# SPDX-License-Identifier: Apache-2.0
"""A container is above memory.high and is slowed down for it (cgroup v2).

Nothing is killed at memory.high: each allocation above it has to reclaim, then sleeps up to
two seconds.  The container gets slow without a log line, and stays so as long as it holds
more than it may.  The kubelet sets memory.high with MemoryQoS, systemd with MemoryHigh=.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, innermost
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.group_words import parts, show, unjudged, write
from seawall.findings.rule import rule
from seawall.words import count, percent, size


@rule(
    id="SW208",
    title="A container is slowed down at memory.high",
    severity="warning",
    thresholds={
        "near_fraction": "usage / memory.high at both ends of the window",
        "stalled_share": "share of the window in which a task stalled on memory (PSI some)",
    },
    confirm=("grep -H . /sys/fs/cgroup/PATH/memory.{current,high,events,pressure}",),
    remedy=("raise memory.high, or make the program use less",),
    provide="root on the host, and a window of some seconds",
)
def judge(
    window: TopicWindow[MemoryGroups], *, near_fraction: float = 0.97, stalled_share: float = 0.10
) -> list[Finding]:
    over = innermost(
        group for group in window.later.by_path.values()
        if _is_over(group, near_fraction)
        and (before := window.earlier.by_path.get(group.path))
        and _is_over(before, near_fraction)
    )  # fmt: skip
    findings = []
    for group in over:
        was, now = window.earlier.by_path[group.path].memcg, group.memcg
        rose = gained(was.events.get("high"), now.events.get("high"))
        stalled = _stalled(window, group)
        if rose and (stalled is None or stalled >= stalled_share):
            findings.append(_finding(group, rose / window.seconds, stalled))
    nothing = quiet("no container is slowed down at memory.high")
    return findings or unjudged(window.later) or [nothing]


def _is_over(group: MemoryGroup, near: float) -> bool:
    return bool(group.high) and (group.memcg.usage or 0) >= near * (group.high or 0)


def _stalled(window: TopicWindow[MemoryGroups], group: MemoryGroup) -> float | None:
    was = window.earlier.by_path[group.path].memcg.memory_pressure
    now = group.memcg.memory_pressure
    if was is None or now is None or now.some.total_seconds < was.some.total_seconds:
        return None
    return (now.some.total_seconds - was.some.total_seconds) / window.seconds


def _finding(group: MemoryGroup, rate: float, stalled: float | None) -> Finding:
    high = group.high or 0
    lost = "" if stalled is None else f" and its tasks waited {percent(stalled)} of the time"
    pressure = Evidence("stalled on memory", stalled, "fraction", group.file("memory.pressure"))
    return fires(
        "warning",
        f"{size(group.memcg.usage or 0)} in use with memory.high at {size(high)}: slowed down"
        f" {count(round(rate))} times a second{lost}",
        [
            Evidence("usage", group.memcg.usage, "bytes", group.usage_file),
            Evidence("memory.high", high, "bytes", group.file("memory.high")),
            Evidence("high events", rate, "per second", group.file("memory.events")),
            *([] if stalled is None else [pressure]),
            *parts(group),
        ],
        outlook="It stays slow until it holds less; nothing is killed at memory.high.",
        workload=group.name,
        confirm=(show(group, "memory.current", "memory.high", "memory.events", "memory.pressure"),),
        remedy=(
            "find what it holds: seawall pods",
            f"give it a quarter more: {write(group, high * 5 // 4, 'memory.high')}",
        ),
    )
