# SPDX-License-Identifier: Apache-2.0
"""Processes that may use the very same memory (vfork, clone): the kernel kills them together.

Nothing in /proc says it.  Parent and child with every size equal is what it looks like; so does
a copy that fork made a moment ago.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from seawall.accounts.oom.contenders import Contender

SHARERS_MOST: Final = 20
"""Listed; a server that has just forked hundreds of equal workers looks like one family."""
_Sizes: TypeAlias = tuple[int | None, ...]


class Family:
    """By their sizes, and within them by the eldest from whom they descend."""

    def __init__(self, everybody: Iterable[Contender]) -> None:
        self._parents = {
            (one.pid, _sizes(one)): one.ppid
            for one in everybody
            if one.candidate.rss_pages and one.anon is not None
        }
        self._members: dict[tuple[int, _Sizes], list[int]] = {}
        for pid, sizes in self._parents:
            self._members.setdefault((self._eldest(pid, sizes), sizes), []).append(pid)

    def _eldest(self, pid: int, sizes: _Sizes) -> int:
        """Up the line as long as the parent has the same sizes; a pid may come again."""
        seen = {pid}
        while (parent := self._parents[pid, sizes]) not in seen and (
            parent,
            sizes,
        ) in self._parents:
            seen.add(parent)
            pid = parent
        return pid

    def sharers(self, one: Contender) -> tuple[int, ...]:
        """Pids of its line with exactly its sizes, lowest first; SHARERS_MOST of them."""
        sizes = _sizes(one)
        if (one.pid, sizes) not in self._parents:
            return ()
        line = self._members[self._eldest(one.pid, sizes), sizes]
        kept = line[: SHARERS_MOST + 1]
        return tuple(sorted(pid for pid in kept if pid != one.pid)[:SHARERS_MOST])


def _sizes(one: Contender) -> _Sizes:
    return (one.vsize, one.anon, one.file, one.shmem, one.swap, one.page_tables)
