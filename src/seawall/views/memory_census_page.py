# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall memory --census`` are made from."""

from dataclasses import dataclass

from seawall.accounts.census.census_agreement import CensusAgreement
from seawall.accounts.census.cgroups import CgroupPages
from seawall.accounts.census.frame_census import Census
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusPage:
    """One answer.  Without a census only ``unseen`` says anything."""

    census: Census | Unread
    agreements: tuple[CensusAgreement, ...]
    """Empty when there is no ledger."""
    cgroups: tuple[CgroupPages, ...] | None
    """None: this kernel does not tell who pays."""
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
