# SPDX-License-Identifier: Apache-2.0
"""What counters gained over a window.  A counter that fell was reset: unknown, not negative."""

from collections.abc import Mapping

from seawall.accounts.scene import TopicWindow
from seawall.readings.vmstat import Vmstat


def gained(earlier: int | None, later: int | None) -> int | None:
    """How much a counter rose; None when it is missing or was reset.

    >>> gained(5, 7), gained(7, 5), gained(None, 5)
    (2, None, None)
    """
    if earlier is None or later is None or later < earlier:
        return None
    return later - earlier


def family_gained(
    earlier: Mapping[str, int], later: Mapping[str, int], *prefixes: str
) -> int | None:
    """The gain of all counters whose names begin so, together: ``allocstall_`` has one for
    each zone.  None when this kernel has none of them or one was reset.
    """
    gains = [
        gained(earlier.get(name), value)
        for name, value in later.items()
        if name.startswith(prefixes)
    ]
    known = [gain for gain in gains if gain is not None]
    return sum(known) if known and len(known) == len(gains) else None


def per_second(window: TopicWindow[Vmstat], *names: str) -> float | None:
    """Events a second of the first of these names that the kernel has: names change, and
    ``workingset_refault`` became ``workingset_refault_file`` and ``_anon`` in 5.9.
    """
    earlier, later = window.earlier.counters, window.later.counters
    for name in names:
        if name in later:
            gain = gained(earlier.get(name), later[name])
            return None if gain is None else gain / window.seconds
    return None


def stalls_per_second(window: TopicWindow[Vmstat]) -> float | None:
    """How often an allocation had to reclaim on its own because the node was short.

    Counted before any cgroup's limit is looked at: a container at its limit adds nothing
    (mm/vmscan.c, count_vm_event_zone in do_try_to_free_pages under global_reclaim).
    ``allocstall`` became one counter for each zone in 4.8.
    """
    gain = family_gained(window.earlier.counters, window.later.counters, "allocstall")
    return None if gain is None else gain / window.seconds
