# SPDX-License-Identifier: Apache-2.0
"""Another pid was killed than was chosen: a child of it, or another thread of one process.

Kernel source: mm/oom_kill.c oom_kill_process: up to 5.0 a child dies for its parent; and the
chosen pid, or the killed one, may be any thread of its process.  A table has a row for every
process, and none for its other threads.
"""

from typing import Literal, NamedTuple, TypeAlias

from seawall.readings.oom_log.oom_report import Choice, Kill, OomReport

Kin: TypeAlias = Literal["child", "thread", "either"]
"""``thread``: of the killed process the chosen pid is one.  ``either``: the log does not tell."""


class StandIn(NamedTuple):
    """Whom the kernel chose, and whom it killed."""

    choice: Choice
    kill: Kill
    kin: Kin


def stand_in(report: OomReport) -> StandIn | None:
    """None where the chosen pid itself was killed, or a whole cgroup, or nobody."""
    choice = report.choice
    if choice is None or not report.kills or report.group_kill is not None:
        return None
    if any(kill.pid == choice.pid for kill in report.kills):
        return None
    kill = report.kills[0]
    return StandIn(choice, kill, _kin(choice, kill, report))


def _kin(choice: Choice, kill: Kill, report: OomReport) -> Kin:
    rows = {task.pid: task for task in report.tasks}
    chosen, killed = rows.get(choice.pid), rows.get(kill.pid)
    if chosen is not None and killed is not None:
        return "child" if chosen.tgid != killed.tgid else "thread"
    is_one_name = chosen is None and killed is not None and choice.comm == kill.comm
    return "thread" if is_one_name else "either"
