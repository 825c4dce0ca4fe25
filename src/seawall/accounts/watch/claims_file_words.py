# SPDX-License-Identifier: Apache-2.0
"""A kept claim as a claim, and in words."""

from typing import Final, cast, get_args

from seawall.accounts.claim import Claim, ClaimClass
from seawall.accounts.tracing.traced_words import bounded, give_back
from seawall.readings.saved_claims import SavedClaim, SavedClaims
from seawall.words import duration

_KINDS: Final = frozenset(get_args(ClaimClass))


def claim_of(kept: SavedClaim, now_unix_seconds: float | None) -> Claim:
    """``now``: None where the clock was not captured."""
    kind = cast("ClaimClass", kept.kind) if kept.kind in _KINDS else "unknown"
    gone = "; its cgroup is gone, and the memory stayed" if kept.is_gone else ""
    is_named_gone = kept.is_gone and not kept.holder.endswith(" (gone)")
    return bounded(
        Claim(
            holder=f"{kept.holder} (gone)" if is_named_gone else kept.holder,
            workload=kept.workload,
            cgroup=kept.cgroup,
            driver=kept.driver,
            bytes=kept.bytes,
            least_bytes=kept.least_bytes,
            most_bytes=kept.most_bytes,
            kind=kind,
            within=kept.within,
            is_counted=False,
            source=f"{kept.source}; kept by a watcher, looked at {_ago(kept, now_unix_seconds)}",
            confidence="traced",
            missing=f"what it took while nobody traced{gone}",
            give_back=give_back(kind, kept.what, is_gone=kept.is_gone),
        )
    )


def unseen(kept: SavedClaims) -> tuple[str, ...]:
    """Why the watcher cannot learn more."""
    return (f"the watcher cannot trace: {kept.blind}",) if kept.blind else ()


def _ago(kept: SavedClaim, now_unix_seconds: float | None) -> str:
    if now_unix_seconds is None or now_unix_seconds < kept.learned_at_unix_seconds:
        return "at an unknown time"
    return f"{duration(now_unix_seconds - kept.learned_at_unix_seconds)} ago"
