# SPDX-License-Identifier: Apache-2.0
"""What the text of every verb but ``why`` looks like: heading, body, what could not be seen."""

from collections.abc import Iterable, Sequence
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
    from seawall.views.why_text import could_not_see, heading  # noqa: PLC0415 - text alone

    if top is not None:
        for line in heading(top, paper, notes):
            print(line)
    for line in body:
        print(line)
    for line in could_not_see(unseen, paper):
        print(line)
