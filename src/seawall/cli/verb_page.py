# SPDX-License-Identifier: Apache-2.0
"""What the text of every verb but ``why`` looks like: heading, body, what could not be seen."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from seawall.findings.blindness import NotSeen
from seawall.views.terminal import Console

_UNSEEN_CHARACTERS: Final = 100
_CAPABILITY: Final = re.compile(r"CAP_[A-Z_]+")


def print_page(
    paper: Console,
    top: dict[str, Any] | None,
    notes: tuple[str, ...],
    body: Iterable[str],
    unseen: Sequence[NotSeen],
) -> None:
    """``top``: the document's head, which names the host; None where there is none."""
    for line in page_lines(paper, top, notes, body, unseen):
        print(line)


def page_lines(
    paper: Console,
    top: dict[str, Any] | None,
    notes: tuple[str, ...],
    body: Iterable[str],
    unseen: Sequence[NotSeen],
) -> Iterator[str]:
    """What ``print_page`` prints, for those who must know how long it gets."""
    from seawall.views.why_text import could_not_see, heading  # noqa: PLC0415 - text alone

    if top is not None:
        yield from heading(top, paper, notes)
    yield from body
    yield from could_not_see(unseen, paper)


def folded(rows: Sequence[NotSeen], whole: str) -> list[NotSeen]:
    """What could not be seen, where it would not fit: a bug of ours in full, all others as one row
    with the capabilities that would let them be seen.  ``whole``: how to get all of it.
    """
    bugs = [row for row in rows if row.kind == "bug"]
    others = [row for row in rows if row.kind != "bug"]
    if not others:
        return bugs
    what = others[0].what[:_UNSEEN_CHARACTERS]
    if len(others) > 1:
        what += f" and {len(others) - 1} more"
    lacking = sorted({name for row in others for name in _CAPABILITY.findall(row.provide)})
    needs = f"root, or {', '.join(lacking)}" if lacking else ""
    return [*bugs, NotSeen(what, whole, needs)]
