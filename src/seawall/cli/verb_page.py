# SPDX-License-Identifier: Apache-2.0
"""What the text of every verb but ``why`` looks like: heading, body, what could not be seen."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seawall.findings.blindness import NotSeen
from seawall.views.terminal import Paper


def print_page(
    paper: Paper,
    top: dict[str, Any] | None,
    notes: tuple[str, ...],
    body: Iterable[str],
    unseen: Sequence[NotSeen],
) -> None:
    """``top``: the document's head, which names the host; None where there is none."""
    for line in page_lines(paper, top, notes, body, unseen):
        print(line)


def page_lines(
    paper: Paper,
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
