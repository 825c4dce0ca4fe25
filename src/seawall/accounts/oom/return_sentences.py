# SPDX-License-Identifier: Apache-2.0
"""In words: what the kill gave back, and what it could never give back."""

import re
from collections.abc import Iterator
from typing import Final

from seawall.accounts.oom.report_facts import ReportFacts, freed_bytes
from seawall.readings.oom_log.oom_report import Kill, Reaped
from seawall.words import size

_KILLS_SHOWN: Final = 3
_WORTH_BYTES: Final = 1 << 20
_SIZES_SINCE: Final = 33
"""Of 2.6: mm/oom_kill.c __oom_kill_task prints vsz, anon-rss and file-rss."""


def return_sentences(facts: ReportFacts) -> Iterator[str]:
    """Kill by kill, then what stays."""
    report = facts.report
    if not report.kills:
        yield from _no_kill(facts)
        return
    shown = _KILLS_SHOWN if len(report.kills) <= _KILLS_SHOWN else 1
    for kill in report.kills[:shown]:
        yield from _kill(kill, facts)
    if len(report.kills) > shown:
        total = facts.returned_bytes
        words = "" if total is None else f", {size(total)} in all at most"
        yield f"And {len(report.kills) - shown} more were killed{words}."
    killed = {kill.pid for kill in report.kills}
    for reaped in report.reaped:
        if reaped.pid in killed:
            yield from _reaped(reaped)
    yield from _others_reaped([one for one in report.reaped if one.pid not in killed])
    yield from _stays(facts)


def _others_reaped(others: list[Reaped]) -> Iterator[str]:
    """Up to the reaper's own line nothing is known of them."""
    if others:
        names = ", ".join(f"{one.comm} (pid {one.pid})" for one in others[:_KILLS_SHOWN])
        if len(others) > _KILLS_SHOWN:
            names += f" and {len(others) - _KILLS_SHOWN} more"
        yield (
            f"The OOM reaper also took {names}: their kill lines are missing, or they were dying"
            " already."
        )


def _counted(facts: ReportFacts) -> str:
    """Of a cgroup's kill: rss may hold pages on another's account, and runs ahead of charges."""
    kills, charged = facts.report.kills, facts.charged_bytes
    held = sum(freed_bytes(kill) or 0 for kill in kills)
    if not charged or held <= charged:
        return ""
    return f", of which at most {size(charged)} counted against this limit"


def _no_kill(facts: ReportFacts) -> Iterator[str]:
    if facts.report.panic or facts.report.no_killable:
        before = facts.report.is_headless and not facts.report.tasks
        yield (
            "This report shows no kill; one may stand before it."
            if before
            else "Nothing: nobody was killed."
        )
        return
    chosen = facts.chosen
    words = "The log does not show the kill itself"
    if chosen is None:
        yield f"{words}; what it gave back is not known."
        return
    yield f"{words}; the chosen one held {facts.size_of(chosen.task.rss_pages)} of RAM."


def _kill(kill: Kill, facts: ReportFacts) -> Iterator[str]:
    who = f"{kill.comm} (pid {kill.pid})"
    if kill.anon_rss_bytes is None:
        yield f"{who} was killed; {_lost(kill) or _no_sizes(facts, kill)}."
        return
    back, left = facts.freed_bytes(kill), facts.left_bytes(kill)
    parts = [f"{size(kill.anon_rss_bytes)} anonymous"]
    if kill.pgtables_bytes:
        parts.append(f"{size(kill.pgtables_bytes)} of page tables")
    if swap := facts.swapped_bytes(kill):
        parts.append(f"{size(swap)} in swap")
    counted = _counted(facts) if len(facts.report.kills) == 1 else ""
    if back is None:
        yield (
            f"{who} held {', '.join(parts)}{counted}; the OOM reaper could not reap it: how much "
            "came back is not in the log."
        )
    elif counted or left >= _WORTH_BYTES:
        yield f"{who} held {', '.join(parts)}{counted}."
    else:
        yield f"{who} gave back {', '.join(parts)}."
    if lost := _lost(kill):
        yield f"More may have come back: {lost}."
    file = kill.file_rss_bytes
    if file:
        shared = "" if kill.shmem_rss_bytes is not None else ", or tmpfs, which stays"
        yield f"Its {size(file)} of mapped files are page cache, which may stay{shared}."


def _lost(kill: Kill) -> str:
    """What a line that is cut has no more, from its first missing number on."""
    if not kill.is_cut or kill.total_vm_bytes is None:
        return ""
    sizes = (
        ("anon-rss", kill.anon_rss_bytes), ("file-rss", kill.file_rss_bytes),
        ("shmem-rss", kill.shmem_rss_bytes), ("UID", kill.uid), ("pgtables", kill.pgtables_bytes),
    )  # fmt: skip
    first = next((name for name, value in sizes if value is None), "oom_score_adj")
    return f"its line is cut, so {first} and what follows it are not in the log"


def _no_sizes(facts: ReportFacts, kill: Kill) -> str:
    """2.6.33 and later print them: a line without was cut, unless the kernel is known older."""
    found = re.match(r"2\.6\.(\d{1,2})\b", facts.kernel or "")
    if found and int(found[1]) < _SIZES_SINCE and not kill.is_cut:
        return "this kernel prints no sizes for it"
    return "its sizes are not in the log (that line is not whole)"


def _reaped(reaped: Reaped) -> Iterator[str]:
    """What the reaper could not take: locked, or still in use by a driver."""
    left = reaped.anon_rss_bytes or 0
    if left >= _WORTH_BYTES:
        yield (
            f"The OOM reaper left {size(left)} anonymous of {reaped.comm} (pid {reaped.pid}) "
            "behind, which is not counted as given back: locked memory comes back when the "
            "process has ended, if it does."
        )


def _stays(facts: ReportFacts) -> Iterator[str]:
    report = facts.report
    shmem = sum(kill.shmem_rss_bytes or 0 for kill in report.kills)
    if shmem >= _WORTH_BYTES:
        yield (
            f"{size(shmem)} of tmpfs or shared memory that it used stays while a file or another "
            "process holds it."
        )
    info = report.mem_info
    if info is not None and info.hugepages_bytes:
        yield (
            f"{size(info.hugepages_bytes)} are huge pages: in no process's rss, and no kill "
            "returns the pool."
        )
