# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall memory`` are made from."""

from dataclasses import dataclass

from seawall.accounts.claim import Claim, Suspect
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import ShadowCharges
from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.base import Base
from seawall.readings.snapshot import Snapshot


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

    @classmethod
    def of(
        cls, moment: Snapshot, bundle_notes: tuple[str, ...] = (), learned: Base | None = None
    ) -> "MemoryPage":
        """Everything that the verb shows; ``learned``: a base that was learned just now."""
        claims, full = moment.get(Claims), moment.get(FullLedger)
        return cls(
            ledger=full if isinstance(full, Unread) else full.ledger,
            headroom=moment.get(Headroom),
            base=moment.get(Base) if learned is None else learned,
            base_is_new=learned is not None,
            claimed=claims,
            shadow=moment.get(ShadowCharges),
            # The topics' own, then what no reading of this kernel tells.
            unseen=(*unread_rows([moment]), *claims_unseen(claims)),
            bundle_notes=bundle_notes,
        )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All of them; none where they could not be had."""
        return () if isinstance(self.claimed, Unread) else self.claimed.claims

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Who could hold uncounted memory; nothing is proved."""
        return () if isinstance(self.claimed, Unread) else self.claimed.suspects


def claims_unseen(claims: Claims | Unread) -> list[NotSeen]:
    """What the sources could not see, in their words; then that nobody was named, if so."""
    if isinstance(claims, Unread):
        return []  # the topic's own row says why
    rows = [NotSeen("holders", words, "") for words in claims.unseen]
    if not claims.of_residual():
        row = NotSeen(
            "who holds the uncounted memory", "no source names a holder",
            "seawall memory --who, which watches who takes such memory while it is taken",
        )  # fmt: skip
        rows.append(row)
    return rows
