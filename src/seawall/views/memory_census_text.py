# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --census`` as text: a bar for each kind, the ledger beside it, who pays."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.census.census_agreement import (
    TOLERANCE,
    CensusAgreement,
    largest_difference,
)
from seawall.accounts.census.cgroups import LEFT_BEHIND, CgroupPages
from seawall.accounts.census.frame_census import Census, KindSum
from seawall.accounts.census.frame_kinds import HELD, Kind
from seawall.host.host import Unread
from seawall.views.memory_census_page import CensusPage
from seawall.views.terminal import Console, plain, shorten_path
from seawall.words import count, percent, size

_BAR_WIDTH: Final = 12
_CGROUPS_SHOWN: Final = 10
_KINDS_SHOWN: Final = 2
_BEFORE_MEANING: Final = 8 + 2 + 5 + 2 + _BAR_WIDTH + 2 + 20 + 1
_MEANINGS: Final[dict[Kind, str]] = {
    "free": "",
    "not yet initialised": "free, by zoneinfo",
    "per-cpu lists": "free, by zoneinfo",
    "anonymous": "heaps and stacks",
    "ksm": "identical pages, merged",
    "tmpfs and shared": "cannot be dropped",
    "page cache": "files, block devices",
    "slab": "kernel objects",
    "hugetlb": "the pool, used or not",
    "mapped kernel pages": "of rings and drivers",
    "charged kernel pages": "a cgroup pays",
    "kernel pages": "nobody pays: no flag tells",
    "offline": "balloon",
}
_LEFT_WORDS: Final = {
    "removed below": "no process of its own: left by removed cgroups, or earlier ones",
    "empty": "no process in it any more",
    "not found": "not in the tree that is seen here",
}


def lines(page: CensusPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    census = page.census
    if isinstance(census, Unread):
        yield from paper.wrap(f"No census: {census.path}: {census.detail or census.why}.")
        return
    yield from paper.wrap(_summary(census))
    yield ""
    for part in census.kinds:
        yield _row(part, census, paper)
    yield from _marks(census, paper)
    yield from _outside(census, paper)
    yield from _agreement(page.agreements, census, paper)
    yield from _payers(page.cgroups, paper)


def _summary(census: Census) -> str:
    rate = f"{count(int(census.frames_per_second) // 1000 * 1000)} a second"
    speed = f"{census.seconds:.1f} s, {rate}"
    frames = f"{count(census.frames)} page frames"
    if census.sampled is None:
        return f"All {frames} were looked at, each once ({speed})."
    return (
        f"1 in {max(1.0, 1 / census.sampled):.3g} of {frames} was looked at ({speed}): a figure "
        f"is off by {size(census.error_bytes)} at most, in 997 of 1,000 samples. "
        "--exact with a longer --timeout looks at all."
    )


def _row(part: KindSum, census: Census, paper: Console) -> str:
    share = part.bytes / census.total_bytes if census.total_bytes else 0.0
    head = f"{size(part.bytes):>8}  {percent(share):>5}  {paper.bar(share, _BAR_WIDTH)}"
    note = f"+- {size(part.error_bytes)}" if part.error_bytes else _MEANINGS.get(part.kind, "")
    room = max(0, paper.width - _BEFORE_MEANING)
    return f"{head}  {part.kind:<20} {paper.paint(note[:room], 'dim')}".rstrip()


def _marks(census: Census, paper: Console) -> Iterator[str]:
    marks = [f"{size(n)} {name}" for name, n in census.of_which.items() if n]
    if marks:
        held = size(census.of(*HELD))
        yield from paper.wrap(
            f"Of the {held} of programs and files: {', '.join(marks)}.", "  ", "  "
        )


def _outside(census: Census, paper: Console) -> Iterator[str]:
    if census.outside:
        parts = ", ".join(f"{part.kind} {size(part.bytes)}" for part in census.outside)
        yield from paper.wrap(f"RAM outside MemTotal: {parts}.", "  ", "  ")


def _agreement(rows: Sequence[CensusAgreement], census: Census, paper: Console) -> Iterator[str]:
    if not rows:
        return
    total = census.total_bytes
    yield ""
    off = [row for row in rows if not row.agrees(total)]
    largest = largest_difference(rows, total)
    words = f"Beside the ledger: the largest difference is {largest * 100:.2f} % of MemTotal"
    limit = f"{TOLERANCE * 100:g} %, besides what moved meanwhile"
    if off:
        yield from paper.wrap(f"{words}; these lines differ by more than {limit}:")
    else:
        yield from paper.wrap(f"{words}; no line differs by more than {limit}.")
    table = [
        (row.name, size(row.ledger_bytes), size(row.census_bytes), size(row.difference_bytes),
         size(row.moved_bytes))
        for row in (off or rows)
    ]  # fmt: skip
    head = ("  line", "ledger", "census", "difference", "moved")
    yield from paper.table(head, [("  " + row[0], *row[1:]) for row in table])


def _payers(rows: Sequence[CgroupPages] | None, paper: Console) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield paper.paint(
        "Who pays: each cgroup by itself, without those below it and without slab", "bold"
    )
    table = [(_name(row), size(row.bytes), _kinds(row)) for row in rows[:_CGROUPS_SHOWN]]
    for name, held, kinds in table:
        yield f"{held:>8}  {shorten_path(plain(name), paper.width - 10)}"
        yield from (paper.paint(line, "dim") for line in paper.wrap(kinds, " " * 12))
    rest = rows[_CGROUPS_SHOWN:]
    if rest:
        yield f"{size(sum(row.bytes for row in rest)):>8}  in {count(len(rest))} more cgroups"
    left = sum(row.bytes for row in rows if row.state in LEFT_BEHIND)
    if left:
        yield from paper.wrap(f"{size(left)} of it is left in cgroups without a process.")
    mapped = [(row, row.kinds.get("mapped kernel pages", 0)) for row in rows]
    for row, held_bytes in sorted(mapped, key=lambda pair: -pair[1])[:3]:
        if held_bytes:
            yield from paper.wrap(
                f"Kernel or driver pages mapped into programs: {size(held_bytes)}, paid by "
                f"{_name(row)}."
            )


def _name(row: CgroupPages) -> str:
    if row.state == "root":
        return "/ (the host itself, and what removed cgroups left)"
    return row.workload or row.cgroup or f"a cgroup with inode {row.inode}"


def _kinds(row: CgroupPages) -> str:
    largest = sorted(row.kinds.items(), key=lambda item: -item[1])[:_KINDS_SHOWN]
    words = ", ".join(f"{kind} {size(held)}" for kind, held in largest)
    left = _LEFT_WORDS.get(row.state)
    return f"{words}; {left}" if left else words
