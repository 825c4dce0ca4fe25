# SPDX-License-Identifier: Apache-2.0
"""What a kill gives back: at least, likely, and at most.

Killing a process unmaps its memory; a page is free only when nobody else maps it and no file
holds it.  Anonymous memory, swap and page tables come back; file pages stay in the page cache
and could have been dropped anyway; tmpfs and System V memory stay until the file is deleted;
huge pages go back to their pool.  After fork two processes count the same anonymous page
twice: by how much at most, the sum over all processes less what the cgroup is charged tells.
"""

from collections.abc import Iterable
from typing import NamedTuple

from seawall.accounts.oom.contenders import Contender


class Returns(NamedTuple):
    """Bytes.  Nothing here is a promise: the least is what the evidence carries."""

    least: int
    """RAM for sure: anonymous memory that cannot be shared, page tables."""
    likely: int
    """Anonymous memory, swap and page tables, as if nothing were shared."""
    most: int
    """And file pages and shared memory that only this process may map."""


def returns_of(one: Contender, shared_most: int, page_bytes: int) -> Returns:
    """``shared_most``: anonymous bytes that processes of its cgroup count more than once."""
    if one.anon is None:  # before 4.5: resident memory is one number
        resident = one.candidate.rss_pages * page_bytes
        everything = resident + one.swap + one.page_tables
        return Returns(one.page_tables, everything, everything)
    least = max(one.anon - shared_most, 0) + one.page_tables
    likely = one.anon + one.swap + one.page_tables
    return Returns(least, likely, likely + (one.file or 0) + (one.shmem or 0))


def counted_twice(members: Iterable[Contender], charged: int | None) -> int:
    """Anonymous bytes of all members together less what is really there.

    Without that number (``charged`` None) everything may be shared.
    """
    total = sum(one.anon or 0 for one in members)
    return total if charged is None else max(total - charged, 0)


def together(parts: Iterable[Returns]) -> Returns:
    """Of several that die at once."""
    rows = list(parts)
    return Returns(sum(r.least for r in rows), sum(r.likely for r in rows),
                   sum(r.most for r in rows))  # fmt: skip
