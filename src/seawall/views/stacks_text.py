# SPDX-License-Identifier: Apache-2.0
"""``seawall stacks`` as text: groups by their share, what stands still, where the CPUs are."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from seawall.accounts.stacks.stack_groups import StackPlace
from seawall.accounts.stacks.stack_tally import GroupTask, StackGroup
from seawall.readings.sysrq_backtraces import Backtrace
from seawall.readings.task_stacks import Stack
from seawall.views.stacks_page import (
    NEXT,
    StacksPage,
    by_process,
    place_of_backtrace,
    standing_still,
    title_of,
)
from seawall.views.terminal import Console, shorten
from seawall.words import count, duration, percent

GROUPS_SHOWN: Final = 12
_PROCESSES_SHOWN: Final = 3
_FRAMES_SHOWN: Final = 7
_STILL_SHOWN: Final = 8
_OWNER_WIDTH: Final = 40
_INDENT: Final = " " * 9
_ENTRIES: Final = frozenset(
    ("do_syscall_64", "el0_svc", "ret_from_fork", "kthread", "ret_from_fork_asm")
)


def lines(page: StacksPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    yield from paper.wrap(_summary(page))
    groups = page.found.groups
    for group in groups[:GROUPS_SHOWN]:
        yield ""
        yield from _group(group, page, paper)
    if len(groups) > GROUPS_SHOWN:
        rest = sum(group.share for group in groups[GROUPS_SHOWN:])
        yield ""
        more = len(groups) - GROUPS_SHOWN
        yield f"{percent(rest):>6}   in {more} smaller groups; --json has them"
    yield from _still(page, paper)
    yield from _cpus(page, paper)


def _summary(page: StacksPage) -> str:
    whose = "" if page.wanted is None else f" of {page.wanted}"
    if not page.samples:
        return "No sample was taken."
    seconds = page.tally.window_seconds
    taken = f"{count(page.samples)} samples in {seconds:.1f} s" if seconds else "1 sample"
    if not page.found.observations:
        return f"{taken}: no task{whose} was on a CPU, ready for one, or blocked (states R, D)."
    average = page.found.observations / page.samples
    least = "at least " if page.tally.left_out.total() else ""
    return (
        f"{taken}: {least}{average:.1f} tasks{whose} at a time were busy or blocked (states R, "
        "D), of "
        f"{count(page.tally.threads)} threads. They were:"
    )


def _group(group: StackGroup, page: StacksPage, paper: Console) -> Iterator[str]:
    first = f"{percent(group.share):>6}   "
    for line in paper.wrap(title_of(group.place), _INDENT, first):
        yield paper.paint(line, "bold")
    average = group.tasks_average
    words = f"{average:.1f} tasks at a time, in {group.samples} of {page.samples} samples"
    if group.blocked:
        words += f"; {percent(group.blocked / group.observations)} of it blocked (D)"
    yield from paper.wrap(words, _INDENT, _INDENT)
    yield from paper.wrap(_processes(group), _INDENT + "  ", _INDENT)
    for driver, times in group.drivers:
        if driver != group.place.name:
            share = percent(times / group.observations)
            yield from paper.wrap(f"called by driver {driver}: {share}", _INDENT, _INDENT)
    if group.holders:
        words = f"has it, by its own stack: {_names(group.holders)}"
        yield from paper.wrap(words, _INDENT + "  ", _INDENT)
    if group.frames:
        of_it = (
            ""
            if len(group.tasks) == 1
            else f"{percent(group.frames_observations / group.observations)}: "
        )
        for line in paper.wrap(of_it + frames_line(group.frames), _INDENT + "  ", _INDENT):
            yield paper.paint(line, "dim")
    if group.place.kind in NEXT:
        yield from paper.wrap(f"next: {NEXT[group.place.kind]}", _INDENT + "  ", _INDENT)


def _processes(group: StackGroup) -> str:
    """``kubelet 812 (unit:kubelet.service) 54 %, ... and 14 others``: shares of the group."""
    found = by_process(group)
    parts = []
    for one, threads, observations in found[:_PROCESSES_SHOWN]:
        words = _name(one) + (f", {threads} threads" if threads > 1 else "")
        parts.append(f"{words}: {percent(observations / group.observations)}")
    more = len(found) - _PROCESSES_SHOWN
    others = "1 other process" if more == 1 else f"{count(more)} other processes"
    return "; ".join(parts) + (f"; and {others}" if more > 0 else "")


def _name(one: GroupTask) -> str:
    owner = ""
    if one.workload is not None and one.workload.cgroup != "/":
        owner = f" ({shorten(one.workload.name, _OWNER_WIDTH)})"
    return f"{one.task.comm} {one.task.pid}{owner}"


def _names(tasks: Iterable[GroupTask]) -> str:
    names = [f"{_name(one)} thread {one.task.tid}" for one in tasks]
    more = f" and {len(names) - _PROCESSES_SHOWN} more" if len(names) > _PROCESSES_SHOWN else ""
    return ", ".join(names[:_PROCESSES_SHOWN]) + more


def frames_line(frames: Stack) -> str:
    """``a < b < c``, innermost first, without how the kernel was entered."""
    names = [frame.text for frame in frames]
    while len(names) > 1 and (names[-1] in _ENTRIES or names[-1].startswith(("entry_", "asm_"))):
        names.pop()
    more = " < ..." if len(names) > _FRAMES_SHOWN else ""
    return " < ".join(names[:_FRAMES_SHOWN]) + more


def _still(page: StacksPage, paper: Console) -> Iterator[str]:
    found = standing_still(page.found.groups)
    if not found:
        return
    yield ""
    words = "Stand still: had no CPU at all for so long, to the end"
    yield paper.paint(words, "bold")
    for group, one, threads in found[:_STILL_SHOWN]:
        seconds = duration(one.still_seconds or 0.0)
        thread = "" if one.task.tid == one.task.pid else f" thread {one.task.tid}"
        which = f", {count(threads)} threads" if threads > 1 else thread
        text = f"{_name(one)}{which}: {title_of(group.place)}"
        yield from paper.wrap(text, _INDENT + "  ", f"{seconds:>7}  ")
    if len(found) > _STILL_SHOWN:
        yield f"{_INDENT}and {count(len(found) - _STILL_SHOWN)} more"


def _cpus(page: StacksPage, paper: Console) -> Iterator[str]:
    traces = [trace for found in page.cpus for trace in found.traces]
    if not traces:
        return
    yield ""
    idle = sum(trace.state == "idle" for trace in traces)
    asked = "once" if len(page.cpus) == 1 else f"{len(page.cpus)} times"
    words = f"Where the CPUs are (sysrq, asked {asked}): {len(traces)} backtraces, {idle} idle"
    yield paper.paint(words, "bold")
    groups: dict[StackPlace, list[Backtrace]] = {}
    for trace in traces:
        place = place_of_backtrace(trace)
        if place is not None:
            groups.setdefault(place, []).append(trace)
    for place, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield from paper.wrap(title_of(place), _INDENT, f"{len(found):>6}   ")
        names = Counter(f"{trace.comm} {trace.pid or ''}".strip() for trace in found)
        shown = [f"{name} ({times})" for name, times in names.most_common(_PROCESSES_SHOWN)]
        more = "" if len(names) <= len(shown) else f" and {len(names) - len(shown)} others"
        yield from paper.wrap(", ".join(shown) + more, _INDENT + "  ", _INDENT)
        frames = Counter(trace.frames for trace in found if trace.frames).most_common(1)
        for stack, _ in frames:
            for line in paper.wrap(frames_line(stack), _INDENT + "  ", _INDENT):
                yield paper.paint(line, "dim")
