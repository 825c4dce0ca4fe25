# SPDX-License-Identifier: Apache-2.0
"""Who held uncounted memory at a recorded moment, beside an OOM report."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from seawall.accounts.claim import RESIDUAL, Claim, Suspect
from seawall.accounts.claims.claims import Claims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.host import Unread
from seawall.views.claims_text import listed
from seawall.views.document import taken_at
from seawall.views.terminal import Console
from seawall.words import duration, size

SHOWN: Final = 4


class UncountedMoment(NamedTuple):
    """One moment of a black box."""

    unix_seconds: float
    before_seconds: float
    """The moment that was asked for is so much later."""
    of: str
    """Whose moment: ``report 3``, ``--at``."""
    ledger: Ledger
    claimed: Claims | Unread

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Empty where it is not known, too: see ``claimed``."""
        return () if isinstance(self.claimed, Unread) else self.claimed.claims

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Who may hold what no claim explains; empty where that is not known."""
        return () if isinstance(self.claimed, Unread) else self.claimed.suspects


def lines(moment: UncountedMoment, paper: Console) -> Iterator[str]:
    """A block of some lines."""
    ledger, claims = moment.ledger, moment.claimed
    early = f", {duration(moment.before_seconds)} before" if moment.before_seconds >= 1 else ""
    yield ""
    head = f"Uncounted memory at {moment.of}, from the black box ({_clock(moment)}{early})"
    for line in paper.wrap(head):
        yield paper.paint(line, "bold")
    if ledger.missing:
        yield from paper.wrap(
            f"cannot be said: the black box lacks {', '.join(ledger.missing)}", "    ", "  "
        )
        return
    total, error = size(ledger.total_bytes), size(ledger.residual_error_bytes)
    words = f"{size(ledger.residual_bytes)} of {total} (+- {error}) was in no counter"
    yield from paper.wrap(words, "    ", "  ")
    if isinstance(claims, Unread):
        why = claims.detail or claims.why
        yield from paper.wrap(f"who held it is not known: {why}", "    ", "  ")
        return
    outside = [claim for claim in claims.claims if claim.within == RESIDUAL]
    yield from listed(outside, SHOWN, 0, paper)
    if ledger.residual_bytes > ledger.residual_error_bytes:
        least, most = size(claims.unexplained_least_bytes), size(claims.unexplained_most_bytes)
        left = size(claims.unexplained_bytes)
        yield from paper.wrap(f"held by nobody known: {left} ({least} to {most})", "    ", "  ")


def _clock(moment: UncountedMoment) -> str:
    return taken_at(moment.unix_seconds) or "of no known time"
