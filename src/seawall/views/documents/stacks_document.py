# SPDX-License-Identifier: Apache-2.0
"""The fields of ``seawall stacks --json``, and where their values come from."""

from typing import Final, NamedTuple

from seawall.accounts.stacks.stack_kinds import TITLES, Kind
from seawall.accounts.stacks.stack_tally import GroupTask, StackGroup
from seawall.readings.sysrq_backtraces import Backtrace
from seawall.readings.task_stacks import Stack
from seawall.views.documents.document_fields import (
    Document,
    columns,
    one_of,
    shown,
)
from seawall.views.stacks_page import StacksPage, place_of_backtrace

TASKS_MOST: Final = 500


class SysrqRow(NamedTuple):
    """What the kernel printed of one CPU or one blocked task."""

    question: int
    trace: Backtrace

    @property
    def kind(self) -> Kind | None:
        """None: idle or own."""
        place = place_of_backtrace(self.trace)
        return place and place.kind

    @property
    def name(self) -> str | None:
        place = place_of_backtrace(self.trace)
        return place and place.name


def sysrq(page: StacksPage) -> list[SysrqRow]:
    """What the kernel printed; only with --sysrq."""
    return [
        SysrqRow(number, trace)
        for number, found in enumerate(page.cpus, start=1)
        for trace in found.traces
    ]


def title(group: StackGroup) -> str:
    """The kind of place where the group's threads wait, in words."""
    return TITLES[group.place.kind]


def blocked_share(group: StackGroup) -> float:
    """Of its observations: in state D."""
    return round(group.blocked / group.observations, 6)


def first_tasks(tasks: tuple[GroupTask, ...]) -> tuple[GroupTask, ...]:
    """As many as a program can want."""
    return tasks[:TASKS_MOST]


def tasks_left_out(group: StackGroup) -> int:
    """How many tasks of the group are not shown, behind the first 500."""
    return max(0, len(group.tasks) - TASKS_MOST)


def functions(stack: Stack) -> list[str]:
    """Functions of the kernel, innermost first; a driver's module in brackets behind its name."""
    return [frame.text for frame in stack]


STACKS: Final = Document(
    name="stacks",
    verb="seawall stacks --json",
    about="What tasks in state R and D do, by their kernel stacks, sampled. An observation is one "
    "thread in one sample; a share is of all observations. Additive within a major number: there "
    "may be more kinds.",
    window="from the first sample to the last; null with less than two",
    pages=(StacksPage,),
    shapes={
        StacksPage: (
            *shown("samples every_seconds workload=wanted threads"),
            *shown("observations=found.observations groups=found.groups", sysrq),
            *shown("could_not_see=unseen bundle_notes"),
        ),
        StackGroup: (
            *shown("kind=place.kind", title, "name=place.name share:6 observations samples"),
            *shown("tasks_average:3", blocked_share),
            *shown("frames", turn=functions),
            *shown("frames_observations"),
            *shown("drivers", turn=columns("name observations")),
            *shown("tasks", turn=first_tasks),
            *shown(tasks_left_out),
            *shown("holders", turn=first_tasks),
        ),
        GroupTask: (
            *shown("pid=task.pid tid=task.tid comm=task.comm"),
            *shown("state=task.state", turn=one_of("R D")),
            *shown("is_kernel_thread=task.is_kernel_thread"),
            *shown("workload=workload.name cgroup=workload.cgroup observations still_seconds:3"),
        ),
        SysrqRow: (
            *shown("question cpu=trace.cpu pid=trace.pid comm=trace.comm state=trace.state"),
            *shown("kind name"),
            *shown("frames=trace.frames", turn=functions),
        ),
    },
)
