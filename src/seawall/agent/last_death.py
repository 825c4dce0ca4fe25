# SPDX-License-Identifier: Apache-2.0
"""What the black box tells of the boot before: how it ended, who took the memory, the last minute.

Pure.  It accuses nobody but whom the guard of then proved or could bound, in a shortage that had
not ended; it says that memory was ample only where the record runs to the end.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from seawall.agent.culprits import Accusation, Culprit, may_be_cause, workload_id
from seawall.agent.node_messages import api_time
from seawall.guard.tell.plain import plain
from seawall.words import size

LAST_SECONDS: Final = 60.0
SAMPLES_MOST: Final = 12
LINES_MOST: Final = 16
PODS_MOST: Final = 32
SAME_SHORTAGE_SECONDS: Final = 600.0
"""What was decided or killed so long before the end belongs to it, if the node was short then."""
RUNS_ON_SECONDS: Final = 300.0
"""The record runs to the end where the machine booted again so soon behind it.  A machine that
hung for longer, or was off, may have ended otherwise than its record."""
AMPLE_SHARE: Final = 0.1
"""Of all memory, in each tick of the last minute."""
_TEXT_MOST: Final = 512
_TROUBLE: Final = ("short", "holding", "near")
_NODE_KILL: Final = re.compile(r"oom-kill:constraint=CONSTRAINT_(?:NONE|MEMORY_POLICY|CPUSET)[,\s]")
_MEMCG: Final = re.compile(r"[,\s]task_memcg=(/[^,\s]{1,4096})")


class DeathTick(NamedTuple):
    """A tick of the guard; bytes, None: not known."""

    unix_seconds: float
    seconds: float
    """Monotonic."""
    state: str
    total_bytes: int
    headroom_bytes: int | None
    uncounted_bytes: int | None
    grown_bytes: int
    stall: float
    kernel_kills: int


class RecordedBoot(NamedTuple):
    """The last boot of a black box that is not the running one."""

    boot_id: str
    ticks: Sequence[DeathTick]
    """Of its last minutes, by time."""
    end_unix_seconds: float
    """Of its last frame."""
    end_seconds: float
    """The same, monotonic."""
    stopped_seconds: float | None
    """When the guard last said that it ends; None: it never did, or went on since."""
    accusations: Sequence[Accusation]
    kernel_lines: Sequence[tuple[float, str]]
    """Unix seconds and text."""
    holders: Sequence[Culprit]
    """Of the last tick: containers and what they may hold."""
    next_boot_unix_seconds: float | None
    """When the running kernel was booted; None: not known."""


def last_death(boot: RecordedBoot) -> dict[str, Any]:
    """What stands in a NodeReport as ``report.lastDeath``."""
    record = [
        *_proved(boot), *_possible(boot), *_oom_lines(boot), *_ample(boot),
    ][:LINES_MOST]  # fmt: skip
    return {
        "bootID": boot.boot_id, "bootedAt": api_time(boot.end_unix_seconds - boot.end_seconds),
        "at": api_time(boot.end_unix_seconds), "ended": ending(boot),
        "record": record, "samples": [_sample(tick) for tick in samples(boot)],
    }  # fmt: skip


def ending(boot: RecordedBoot) -> str:
    """``Clean``: the guard was stopped, and the machine booted again at once.  ``Unclean``: it told
    until the machine ended.  Else ``Unknown``: the machine may have gone on without its guard.
    """
    gap = _gap(boot)
    if boot.stopped_seconds is not None:
        return "Clean" if gap is not None and gap <= RUNS_ON_SECONDS else "Unknown"
    if was_in_trouble(boot) or (gap is not None and gap <= RUNS_ON_SECONDS):
        return "Unclean"
    return "Unknown"


def was_in_trouble(boot: RecordedBoot) -> bool:
    """The last tick is of a node that was short, or near its limit."""
    return bool(boot.ticks) and boot.ticks[-1].state in _TROUBLE


def samples(boot: RecordedBoot) -> list[DeathTick]:
    """Of the last minute, evenly, the last one among them."""
    since = boot.end_seconds - LAST_SECONDS
    last = [tick for tick in boot.ticks if tick.seconds >= since]
    if len(last) <= SAMPLES_MOST:
        return last
    step = (len(last) - 1) / (SAMPLES_MOST - 1)
    return [last[round(at * step)] for at in range(SAMPLES_MOST)]


def _sample(tick: DeathTick) -> dict[str, Any]:
    known = {"headroomBytes": tick.headroom_bytes, "uncountedBytes": tick.uncounted_bytes}
    row: dict[str, Any] = {"at": api_time(tick.unix_seconds)}
    row |= {key: value for key, value in known.items() if value is not None}
    if tick.total_bytes:
        row["memoryStallShare"] = round(tick.stall, 3)
    return row


def _gap(boot: RecordedBoot) -> float | None:
    if boot.next_boot_unix_seconds is None:
        return None
    gap = boot.next_boot_unix_seconds - boot.end_unix_seconds
    return gap if gap >= 0 else None  # a clock was set between them


def _of_the_end(boot: RecordedBoot) -> list[Accusation]:
    """Decisions of the shortage in which it ended."""
    if not was_in_trouble(boot):
        return []
    since = boot.end_seconds - SAME_SHORTAGE_SECONDS
    return [said for said in boot.accusations if since <= said.seconds <= boot.end_seconds + 1]


def _proved(boot: RecordedBoot) -> list[dict[str, Any]]:
    """The last decision that proved somebody; earlier ones were of what it saw then."""
    for said in sorted(_of_the_end(boot), key=lambda one: one.seconds, reverse=True):
        if said.proved:
            at = boot.end_unix_seconds - (boot.end_seconds - said.seconds)
            pods = list(dict.fromkeys(one.pod_uid for one in said.proved))
            words = f"{said.decision}: {said.sentence}"
            return [_line("Proved", pods, words, at)]
    return []


def _possible(boot: RecordedBoot) -> list[dict[str, Any]]:
    """Who was held still as a suspect, and who may hold half of what uncounted memory grew by."""
    if not was_in_trouble(boot):
        return []
    lines = []
    pods = list(dict.fromkeys(uid for said in _of_the_end(boot) for uid in said.suspects))
    if pods:
        lines.append(_line("Possible", pods, "held still as suspects", boot.end_unix_seconds))
    last = boot.ticks[-1]
    if last.grown_bytes < AMPLE_SHARE * last.total_bytes:
        return lines
    for one in boot.holders:
        if may_be_cause(one.most_bytes, last.grown_bytes) and one.pod_uid not in pods:
            words = (
                f"{one.name} may have held {size(one.most_bytes)} of {size(last.grown_bytes)} by "
                f"which uncounted memory grew; {size(one.certain_bytes)} is certain"
            )
            lines.append(_line("Possible", [one.pod_uid], words, last.unix_seconds))
    return lines[:4]


def _oom_lines(boot: RecordedBoot) -> list[dict[str, Any]]:
    """Whom the kernel killed for the whole node's shortage; not at a cgroup's own limit."""
    since = boot.end_unix_seconds - SAME_SHORTAGE_SECONDS
    lines, pods = [], set()
    for at, text in boot.kernel_lines:
        if at < since or not _NODE_KILL.search(text) or not (named := _MEMCG.search(text)):
            continue
        one = workload_id(named[1])
        if one and one not in pods:
            pods.add(one)
            lines.append(_line("OomLine", [one], text, at))
    return lines[-6:]


def _ample(boot: RecordedBoot) -> list[dict[str, Any]]:
    gap = _gap(boot)
    last = samples(boot)
    is_to_the_end = gap is not None and gap <= RUNS_ON_SECONDS and boot.stopped_seconds is None
    since = boot.end_seconds - LAST_SECONDS
    all_last = [tick for tick in boot.ticks if tick.seconds >= since]
    if not is_to_the_end or not last or not all(_is_ample(tick) for tick in all_last):
        return []
    least = min(tick.headroom_bytes or 0 for tick in all_last)
    words = (
        f"the record runs to the end, and {size(least)} of {size(last[-1].total_bytes)} could "
        "still be had in its last minute"
    )
    return [_line("MemoryAmple", [], words, boot.end_unix_seconds)]


def _is_ample(tick: DeathTick) -> bool:
    return (
        tick.state == "peace" and tick.headroom_bytes is not None and tick.total_bytes > 0
        and tick.headroom_bytes >= AMPLE_SHARE * tick.total_bytes and tick.kernel_kills == 0
    )  # fmt: skip


def _line(kind: str, pods: Sequence[str], words: str, unix_seconds: float) -> dict[str, Any]:
    return {
        "kind": kind, "pods": list(pods[:PODS_MOST]), "text": plain(words, _TEXT_MOST),
        "at": api_time(unix_seconds),
    }  # fmt: skip
