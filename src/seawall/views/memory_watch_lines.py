# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --watch``: a line for each change, as text or JSON (``seawall.watch/1``)."""

from collections.abc import Iterable
from typing import Any, Final

from seawall.readings.saved_claims import SavedClaim, SavedClaims
from seawall.version import VERSION
from seawall.views.document import render, taken_at, with_unread
from seawall.views.terminal import plain
from seawall.words import size

SCHEMA: Final = "seawall.watch/1"


def text_line(event: str, unix_seconds: float | None, words: str) -> str:
    """``2026-11-20T10:00:00Z  claim     shop/cart/worker holds 1.0 GiB (packet ring)``."""
    moment = taken_at(unix_seconds) or "at an unknown time"
    return f"{moment}  {event:<9} {plain(words)}"


def json_line(event: str, unix_seconds: float | None, words: str, kept: SavedClaims | None) -> str:
    """The same with everything that is claimed then, on one line."""
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "tool_version": VERSION,
        "event": event,
        "words": words,
        "claims": [] if kept is None else [_claim(claim) for claim in kept.claims],
        "blind": "" if kept is None else kept.blind,
        **with_unread(
            {
                "at": taken_at(unix_seconds),
                "residual_bytes": None if kept is None else kept.residual_bytes,
                "base_residual_bytes": None if kept is None else kept.base_residual_bytes,
            }
        ),
    }
    return render(values, indent=None)


def claim_words(claim: SavedClaim) -> str:
    """What one holder holds, number after the name."""
    sure = "" if claim.least_bytes >= claim.bytes else f", at least {size(claim.least_bytes)}"
    gone = " (gone)" if claim.is_gone and not claim.holder.endswith("(gone)") else ""
    return f"{claim.holder}{gone} holds {size(claim.bytes)}: {claim.what}{sure}"


def all_words(claims: Iterable[SavedClaim]) -> str:
    """A few of them in one line."""
    words = [f"{claim.holder} {size(claim.bytes)} ({claim.what})" for claim in claims]
    return "; ".join(words[:3]) + (f"; and {len(words) - 3} more" if len(words) > 3 else "")


def _claim(claim: SavedClaim) -> dict[str, Any]:
    return {
        "holder": claim.holder,
        "workload": claim.workload,
        "cgroup": claim.cgroup,
        "driver": claim.driver,
        "class": claim.kind,
        "what": claim.what,
        "bytes": claim.bytes,
        "least_bytes": claim.least_bytes,
        "most_bytes": claim.most_bytes,
        "frames": list(claim.stack),
    }
