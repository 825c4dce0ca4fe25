# SPDX-License-Identifier: Apache-2.0
"""Claims: who holds what no line of the ledger explains, with the evidence for it.

A claim is what is still held, never what was once allocated.  So far the only evidence is a
driver's own slab cache, which gives an upper bound and names a driver, not a workload.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from seawall.accounts.driver_caches import DriverPages, driver_pages
from seawall.accounts.ledger import Ledger
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.slabinfo import PATH, Slabinfo

Confidence: TypeAlias = Literal["exact", "traced", "bound", "estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``least_bytes`` to ``most_bytes`` of the residual are ``holder``'s."""

    holder: str
    workload: str | None
    """Its address; None when a driver is all that is known."""
    least_bytes: int
    most_bytes: int
    source: str
    confidence: Confidence
    missing: str
    """What the evidence does not tell."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Largest first."""

    claims: tuple[Claim, ...]


def account(ledger: Ledger, kernel: Kernel, slabinfo: Slabinfo | Unread) -> Claims:
    """What the slab caches of drivers say; none of it may exceed the residual."""
    if isinstance(slabinfo, Unread):
        return Claims(())
    most = max(0, ledger.residual_bytes + ledger.residual_error_bytes)
    return Claims(tuple(_claim(pages, most) for pages in driver_pages(slabinfo, kernel.page_size)))


def _claim(pages: DriverPages, most: int) -> Claim:
    return Claim(
        holder=pages.known.driver,
        workload=None,
        least_bytes=0,
        most_bytes=min(pages.bytes, most),
        source=f"{PATH} {pages.cache}: {pages.objects:,} objects, {pages.known.what}",
        confidence="bound",
        missing=pages.known.missing,
    )
