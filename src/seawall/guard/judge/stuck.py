# SPDX-License-Identifier: Apache-2.0
"""A container that stands still at its own limit and that nothing ends (seed 3).

Its charge is at the limit, the limit is hit again and again, its programs get nowhere, the
kernel's OOM killer does not end it, and the watcher has judged why it cannot.  One that thrashes
and still gets on with its work is left alone: slow is not stuck.
"""

from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, UserSlice
from seawall.words import duration, size

NO_PROGRESS = 0.02
"""CPU seconds in user mode per second, of all its processes together."""
STANDS_STILL = 0.9
"""Share of the time in which all of it waited."""
HITS_PER_SECOND = 0.1
TURN_SECONDS = 60.0
"""Three looks of the watcher."""


def is_candidate(group: Group, settings: Settings) -> bool:
    """It has been at its limit for half the time: worth a closer look.  No user as a whole: of
    many programs only some hang.
    """
    if isinstance(group, UserSlice):
        return False
    return settings.stuck and group.at_limit_seconds * 2 >= settings.stuck_seconds


def may_be_stuck(group: Group, settings: Settings) -> bool:
    """A candidate that hits its limit and is not known to get on: worth a look by a child."""
    if not is_candidate(group, settings) or group.events_max < HITS_PER_SECOND:
        return False
    return group.progress_per_second is None or group.progress_per_second < NO_PROGRESS


def in_turn(candidates: list[Group], now: float, most: int) -> list[Group]:
    """At most so many: the next ones each minute, so that none waits behind full page caches."""
    if len(candidates) <= most:
        return candidates
    first = int(now // TURN_SECONDS) * most % len(candidates)
    return (candidates + candidates)[first : first + most]


def is_stuck(group: Group, settings: Settings) -> bool:
    """It is stuck for good; unknown progress is progress unless it stood still by PSI.

    ``at_limit_seconds`` begins anew whenever the kernel's OOM killer ends something in it.
    """
    if not is_candidate(group, settings) or group.at_limit_seconds < settings.stuck_seconds:
        return False
    if not group.hopeless_why or group.events_max < HITS_PER_SECOND:
        return False
    progress = group.progress_per_second
    if progress is None:
        return group.stall >= STANDS_STILL
    return progress < NO_PROGRESS


def words(group: Group) -> str:
    """What is seen, the number first."""
    limit = "its limit" if group.limit_bytes is None else f"its limit of {size(group.limit_bytes)}"
    text = f"has stood at {limit} for {duration(group.at_limit_seconds)}, "
    text += f"{group.events_max:.0f} hits a second"
    if group.progress_per_second is not None:
        text += f", {group.progress_per_second:.2f} s of CPU a second"
    return text
