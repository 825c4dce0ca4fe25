# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --who`` as text: who took it and keeps it, largest first, and through what."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim
from seawall.accounts.tracing.trace_rows import TracedRow, TraceSum
from seawall.accounts.tracing.traced_words import give_back, processes_words
from seawall.host.host import Unread
from seawall.views.memory_who_page import WhoPage
from seawall.views.terminal import Console
from seawall.words import percent, size

_SHOWN_LEAST_BYTES: Final = 1 << 20
_ROWS_SHOWN: Final = 12
_OTHERS_SHOWN: Final = 8
_FRAMES_SHOWN: Final = 5
_INDENT: Final = " " * 11
_NEARLY_ALL: Final = 0.9
_MOST: Final = 0.5


def lines(page: WhoPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    traced = page.traced
    if not traced.has_trace:
        yield from paper.wrap("No trace, so who takes memory now is not known (see the end).")
    else:
        yield from paper.wrap(_summary(traced))
        yield from _rows(traced, paper)
        yield ""
        yield from _about(page, paper)
    yield from _others(page, paper)


def _summary(traced: TraceSum) -> str:
    """Number first, then who."""
    shown = [row for row in traced.rows if row.bytes >= _SHOWN_LEAST_BYTES]
    total = sum(row.bytes for row in shown)
    if not shown:
        return (
            f"In {traced.seconds:.0f} s nobody took uncounted memory and kept it "
            f"(each kept less than {size(_SHOWN_LEAST_BYTES)})."
        )
    head = (
        f"{size(total)} of uncounted memory was taken in {traced.seconds:.0f} s and is still held"
    )
    first = shown[0]
    share = first.bytes / total
    if share >= _NEARLY_ALL:
        part = "all" if len(shown) == 1 else percent(share)
        return f"{head}, {part} of it by {first.holder}: {first.what}."
    part = "most of it" if share >= _MOST else "the largest part"
    return f"{head}, {part} by {first.holder} ({percent(share)}): {first.what}."


def _rows(traced: TraceSum, paper: Console) -> Iterator[str]:
    shown = [row for row in traced.rows if row.bytes >= _SHOWN_LEAST_BYTES][:_ROWS_SHOWN]
    for row in shown:
        yield ""
        yield from _row(row, paper)
    rest = [row for row in traced.rows if row not in shown and row.bytes]
    if shown and rest:
        yield ""
        total = size(sum(row.bytes for row in rest))
        yield from paper.wrap(f"{len(rest)} more, {total} together.", _INDENT, _INDENT)


def _row(row: TracedRow, paper: Console) -> Iterator[str]:
    style = "warning" if row.workload is not None else "bold"
    text = next(iter(paper.wrap(f"{row.holder}: {row.what}", "", f"{size(row.bytes):>9}  ")))
    more = list(paper.wrap(f"{row.holder}: {row.what}", _INDENT, f"{size(row.bytes):>9}  "))[1:]
    yield paper.paint(text, style)
    yield from more
    yield from _part(_certainty(row), paper)
    who = processes_words(row)
    if who:
        yield from _part(f"taken by {who}", paper)
    if row.stack:
        yield from _part("through " + " < ".join(row.stack[:_FRAMES_SHOWN]), paper)
    yield from _part(f"to get it back: {give_back(row.kind, row.what, is_gone=row.is_gone)}", paper)


def _certainty(row: TracedRow) -> str:
    if row.least_bytes == row.bytes == row.most_bytes:
        words = "exactly: each page was looked at again"
    else:
        words = f"at least {size(row.least_bytes)}, at most {size(row.most_bytes)}"
    if row.within != RESIDUAL:
        words += f"; the ledger counts it as {row.within}"
    if row.driver:
        words += f"; driver {row.driver}"
    return words


def _part(text: str, paper: Console) -> Iterator[str]:
    yield from paper.wrap(text, _INDENT + "  ", _INDENT)


def _about(page: WhoPage, paper: Console) -> Iterator[str]:
    """The ledger's word beside it, and what was left out."""
    traced, ledger = page.traced, page.memory.ledger
    if not isinstance(ledger, Unread) and traced.growth_bytes is not None:
        more = traced.growth_bytes
        word = "more" if more >= 0 else "less"
        yield from paper.wrap(
            f"Uncounted memory: {size(ledger.residual_bytes)}, {size(abs(more))} {word} than "
            f"before the trace (+- {size(traced.error_bytes)}).", "  ",
        )  # fmt: skip
    if traced.capped:
        yield from paper.wrap(
            f"{size(traced.capped.traced_bytes)} was traced and found held, but uncounted "
            f"memory grew by {size(traced.capped.most_bytes)} at most: nobody is charged with "
            "more than that.  Whoever gave memory back meanwhile hides as much: the figures "
            'after "at most" hold what is possible, and a second trace may tell.', "  ",
        )  # fmt: skip
    if traced.given_back:
        total = size(sum(given for _, given in traced.given_back))
        names = ", ".join(f"{holder} {size(given)}" for holder, given in traced.given_back[:3])
        yield from paper.wrap(f"Taken and given back, nobody's: {total} ({names}).", "  ")
    if traced.counted:
        parts = sorted(traced.counted.items(), key=lambda item: -item[1])
        names = ", ".join(f"{line} {size(held)}" for line, held in parts[:4])
        yield from paper.wrap(f"Taken, and counted by the ledger: {names}.", "  ")
    if traced.sampled_one_in > 1:
        words = f"One page frame in {traced.sampled_one_in} was followed: sums are estimates."
        yield from paper.wrap(words, "  ")


def _others(page: WhoPage, paper: Console) -> Iterator[str]:
    """What other evidence says of those who are not told above."""
    told = {(row.holder, row.kind) for row in page.traced.rows}
    others = [
        claim for claim in page.memory.claims
        if claim.within == RESIDUAL and (claim.holder, claim.kind) not in told
    ]  # fmt: skip
    if others:
        yield ""
        yield "Seen without tracing"
        yield from _claims(others, paper)


def _claims(claims: Sequence[Claim], paper: Console) -> Iterator[str]:
    for claim in claims[:_OTHERS_SHOWN]:
        most = "at most " if claim.confidence == "bound" else ""
        shown = size(claim.most_bytes if most else claim.bytes)
        text = f"{claim.holder} ({claim.kind}, {claim.confidence})"
        yield from paper.wrap(f"{most}{text}", _INDENT, f"{shown:>9}  ")
        yield from paper.wrap(claim.source, _INDENT + "  ", _INDENT)
    if len(claims) > _OTHERS_SHOWN:
        yield f"{_INDENT}and {len(claims) - _OTHERS_SHOWN} more: seawall memory"
