# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall memory`` are made from."""

from dataclasses import dataclass

from seawall.accounts.claim import Claim
from seawall.accounts.claims import Claims
from seawall.accounts.headroom import Headroom
from seawall.accounts.ledger import Ledger
from seawall.accounts.shadow_charge import ShadowCharges
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.base import Base


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """One answer of the verb."""

    ledger: Ledger | Unread
    headroom: Headroom | Unread
    base: Base | Unread
    base_is_new: bool
    """It was learned by this very run."""
    claimed: Claims | Unread
    shadow: ShadowCharges | Unread
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All of them; none where they could not be had."""
        return () if isinstance(self.claimed, Unread) else self.claimed.claims
