# SPDX-License-Identifier: Apache-2.0
"""``seawall stacks --json``: the document ``seawall.stacks/1``."""

from typing import Any, Final

from seawall.accounts.stacks.stack_kinds import TITLES
from seawall.accounts.stacks.stack_tally import GroupTask, StackGroup
from seawall.readings.sysrq_backtraces import Backtrace
from seawall.readings.task_stacks import Stack
from seawall.views.document import not_seen_rows
from seawall.views.stacks_page import StacksPage, place_of_backtrace

TASKS_MOST: Final = 500


def document(head: dict[str, Any], page: StacksPage) -> dict[str, Any]:
    """The whole answer; ``share`` is of all observations, one thread in one sample each."""
    return {
        **head,
        "samples": page.samples,
        "every_seconds": page.every_seconds,
        "workload": page.wanted,
        "threads": page.tally.threads,
        "observations": page.found.observations,
        "groups": [_group(group, page.samples) for group in page.found.groups],
        "sysrq": [
            _backtrace(trace, number)
            for number, found in enumerate(page.cpus, start=1)
            for trace in found.traces
        ],
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def _group(group: StackGroup, samples: int) -> dict[str, Any]:
    return {
        "kind": group.place.kind,
        "title": TITLES[group.place.kind],
        "name": group.place.name,
        "share": round(group.share, 6),
        "observations": group.observations,
        "samples": group.samples,
        "tasks_average": round(group.observations / samples, 3),
        "blocked_share": round(group.blocked / group.observations, 6),
        "frames": _frames(group.frames),
        "frames_observations": group.frames_observations,
        "drivers": [{"name": name, "observations": times} for name, times in group.drivers],
        "tasks": [_task(one) for one in group.tasks[:TASKS_MOST]],
        "tasks_left_out": max(0, len(group.tasks) - TASKS_MOST),
        "holders": [_task(one) for one in group.holders[:TASKS_MOST]],
    }


def _task(one: GroupTask) -> dict[str, Any]:
    still = one.still_seconds
    return {
        "pid": one.task.pid,
        "tid": one.task.tid,
        "comm": one.task.comm,
        "state": one.task.state,
        "is_kernel_thread": one.task.is_kernel_thread,
        "workload": one.workload and one.workload.name,
        "cgroup": one.workload and one.workload.cgroup,
        "observations": one.observations,
        "still_seconds": None if still is None else round(still, 3),
    }


def _backtrace(trace: Backtrace, number: int) -> dict[str, Any]:
    place = place_of_backtrace(trace)
    return {
        "question": number,
        "cpu": trace.cpu,
        "pid": trace.pid,
        "comm": trace.comm,
        "state": trace.state,
        "kind": place and place.kind,
        "name": place and place.name,
        "frames": _frames(trace.frames),
    }


def _frames(stack: Stack) -> list[str]:
    return [frame.text for frame in stack]
