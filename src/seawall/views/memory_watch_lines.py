# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --watch``: a line for each change."""

from collections.abc import Iterable

from seawall.accounts.tracing.traced_words import is_handed_on
from seawall.readings.saved_claims import SavedClaim
from seawall.views.document import taken_at
from seawall.views.terminal import plain
from seawall.words import size


def text_line(event: str, unix_seconds: float | None, words: str) -> str:
    """``2026-11-20T10:00:00Z  claim     shop/cart/worker holds 1.0 GiB (packet ring)``."""
    moment = taken_at(unix_seconds) or "at an unknown time"
    return f"{moment}  {event:<9} {plain(words)}"


def claim_words(claim: SavedClaim) -> str:
    """What one holder holds, number after the name."""
    sure = "" if claim.least_bytes >= claim.bytes else f", at least {size(claim.least_bytes)}"
    if is_handed_on(claim.kind):
        words = f"{claim.holder} sent {size(claim.bytes)}, and who does not read it holds it"
        return f"{words}: {claim.what}"
    gone = " (gone)" if claim.is_gone and not claim.holder.endswith("(gone)") else ""
    return f"{claim.holder}{gone} holds {size(claim.bytes)}: {claim.what}{sure}"


def all_words(claims: Iterable[SavedClaim]) -> str:
    """A few of them in one line."""
    words = [
        f"{claim.holder} {size(claim.bytes)} ({claim.what}{', sent' * is_handed_on(claim.kind)})"
        for claim in claims
    ]
    return "; ".join(words[:3]) + (f"; and {len(words) - 3} more" if len(words) > 3 else "")
