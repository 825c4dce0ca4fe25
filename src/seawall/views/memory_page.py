# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall memory`` are made from."""

from dataclasses import dataclass

from seawall.accounts.claims import Claim
from seawall.accounts.ledger import Ledger
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.base import Base


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """One answer of the verb."""

    ledger: Ledger | Unread
    base: Base | Unread
    base_is_new: bool
    """It was learned by this very run."""
    claims: tuple[Claim, ...]
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
