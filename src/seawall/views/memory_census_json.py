# SPDX-License-Identifier: Apache-2.0
"""What ``seawall memory --census --json`` adds to a ``seawall.memory/1``."""

from typing import Any

from seawall.accounts.census.census_agreement import CensusAgreement, largest_difference
from seawall.accounts.census.cgroups import CgroupPages
from seawall.accounts.census.frame_census import Census, KindSum
from seawall.host.host import Unread
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.memory_census_page import CensusPage

_OF_CENSUS = (
    "pages", "outside_pages", "of_which", "errors", "error_bytes", "frames",
    "frames_per_second", "scan_seconds",
)  # fmt: skip


def document(memory: dict[str, Any], page: CensusPage) -> dict[str, Any]:
    """``memory`` (the verb's document without a census) with the census's fields."""
    census = page.census
    cgroups = None if page.cgroups is None else [_cgroup(row) for row in page.cgroups]
    values: dict[str, Any] = {"by_cgroup": cgroups}
    if isinstance(census, Unread):
        values |= dict.fromkeys((*_OF_CENSUS, "sampled", "agreement"))
        known = with_unread(values)
    else:
        values |= _census(census) | {"agreement": _agreement(page, census)}
        # Null says that all were read, which is no absence.
        known = {**with_unread(values), "sampled": census.sampled}
    rows = not_seen_rows(page.unseen)
    unseen = [*rows, *(row for row in memory["could_not_see"] if row not in rows)]
    return {
        **memory,
        **known,
        "unread": [*memory["unread"], *known["unread"]],
        "could_not_see": unseen,
    }


def _census(census: Census) -> dict[str, Any]:
    return {
        "pages": _sums(census.kinds),
        "outside_pages": _sums(census.outside),
        "of_which": {f"{name.replace(' ', '_')}_bytes": n for name, n in census.of_which.items()},
        "errors": {part.kind: part.error_bytes for part in census.kinds},
        "error_bytes": census.error_bytes,
        "frames": census.frames,
        "frames_per_second": round(census.frames_per_second),
        "scan_seconds": round(census.seconds, 3),
    }


def _sums(parts: tuple[KindSum, ...]) -> dict[str, int]:
    return {part.kind: part.bytes for part in parts}


def _agreement(page: CensusPage, census: Census) -> dict[str, Any] | None:
    if not page.agreements:
        return None
    total = census.total_bytes
    return {
        "largest_difference_fraction": round(largest_difference(page.agreements, total), 6),
        "agrees": all(row.agrees(total) for row in page.agreements),
        "lines": [_pair(row, total) for row in page.agreements],
    }


def _pair(row: CensusAgreement, total: int) -> dict[str, Any]:
    return {
        "name": row.name,
        "ledger_lines": list(row.lines),
        "kinds": list(row.kinds),
        "ledger_bytes": row.ledger_bytes,
        "census_bytes": row.census_bytes,
        "difference_bytes": row.difference_bytes,
        "moved_bytes": row.moved_bytes,
        "error_bytes": row.error_bytes,
        "agrees": row.agrees(total),
    }


def _cgroup(row: CgroupPages) -> dict[str, Any]:
    return {
        "cgroup": row.cgroup,
        "inode": row.inode,
        "workload": row.workload,
        "state": row.state,
        "bytes": row.bytes,
        "error_bytes": row.error_bytes,
        "kinds": dict(row.kinds),
    }
