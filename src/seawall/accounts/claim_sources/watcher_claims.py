# SPDX-License-Identifier: Apache-2.0
"""What ``seawall memory --watch`` learned in this boot: a restart does not forget it."""

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.saved_claims import SavedClaims


def claims(kept: SavedClaims | Unread, ledger: Ledger, kernel: Kernel) -> SourceClaims:
    """At most what uncounted memory is over what it was before; nothing without a watcher."""
    if isinstance(kept, Unread):
        return SourceClaims()  # a file that is malformed or refused is told as any other
    from seawall.accounts.watch.claims_file_words import claim_of, unseen  # noqa: PLC0415 - why loads us
    from seawall.accounts.watch.watching import fitted_to  # noqa: PLC0415 - likewise

    now = kernel.taken_at_unix_seconds
    residual, error = ledger.residual_bytes, ledger.residual_error_bytes
    held: tuple[Claim, ...] = tuple(
        claim_of(claim, now) for claim in fitted_to(kept, residual, error, now or 0.0)
    )
    return SourceClaims(held, unseen=unseen(kept))
