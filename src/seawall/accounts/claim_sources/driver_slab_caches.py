# SPDX-License-Identifier: Apache-2.0
"""A driver's own slab cache: an object for each page that the driver took, an upper bound."""

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.drivers.driver_caches import DriverCachePages, driver_pages
from seawall.readings.kernel import Kernel
from seawall.readings.slabinfo import PATH, Slabinfo


def claims(kernel: Kernel, slabinfo: Slabinfo) -> SourceClaims:
    """One claim for each known cache; it names a driver, not a workload."""
    return SourceClaims(tuple(_claim(pages) for pages in driver_pages(slabinfo, kernel.page_size)))


def _claim(pages: DriverCachePages) -> Claim:
    return Claim(
        holder=pages.known.driver,
        workload=None,
        cgroup=None,
        driver=pages.known.driver,
        bytes=pages.bytes,
        least_bytes=0,
        most_bytes=pages.bytes,
        kind="surface",
        within=RESIDUAL,
        is_counted=False,
        source=f"{PATH} {pages.cache}: {pages.objects:,} objects, {pages.known.what}",
        confidence="bound",
        missing=pages.known.missing,
        give_back="end the process that has the driver's files open: its pages come back then",
    )
