# SPDX-License-Identifier: Apache-2.0
"""The columns of ``seawall pods``, declared once for text, JSON and ``--sort``."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from seawall.accounts.pods.pod_danger import attention_of
from seawall.accounts.pods.pod_table import PodHolding, PodRow, Room
from seawall.accounts.workloads import Workload
from seawall.problems import UsageProblem
from seawall.readings.reading import Unlimited

Value: TypeAlias = int | float | Unlimited | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One number of a row."""

    key: str
    """For ``--sort``."""
    title: str
    json_name: str
    unit: Literal["bytes", "fraction", "count"]
    of: Callable[[PodRow, PodHolding], Value]
    rank: int
    """The highest ranks leave first when the paper is too narrow."""
    is_quiet: bool = False
    """Left out where it is zero or unknown in every row."""
    news: str = ""
    """The key of the column that decides this for it, where that is not itself."""
    is_always_wide: bool = False
    """Shown with --wide even so."""
    is_summed: bool = True
    smallest_first: bool = False


def _distance(row: PodRow, _: PodHolding) -> Value:
    return row.room.distance if isinstance(row.room, Room) else row.room


def _bytes(
    key: str, title: str, rank: int, field: str = "", *, is_quiet: bool = False, news: str = "",
    is_always_wide: bool = False,
) -> Column:  # fmt: skip
    """A field of :class:`PodHolding`, called as the key where no other name is given."""
    name = field or key
    return Column(
        key=key, title=title, json_name=f"{name}_bytes", unit="bytes", rank=rank,
        of=lambda _, holding: getattr(holding, name), is_quiet=is_quiet, news=news,
        is_always_wide=is_always_wide,
    )  # fmt: skip


COLUMNS: Final = (
    _bytes("charge", "CHARGE", 0),
    Column(
        key="limit", title="LIMIT", json_name="limit_bytes", unit="bytes", rank=0,
        of=lambda row, _: row.limit, is_summed=False,
    ),
    Column(
        key="distance", title="LEFT", json_name="distance_bytes", unit="bytes", rank=0,
        of=_distance, is_summed=False, smallest_first=True,
    ),
    _bytes("uncounted", "UNCOUNTED", 0, is_quiet=True, is_always_wide=True),
    _bytes("really", "REALLY", 0, "shadow_charge", is_quiet=True, news="uncounted",
           is_always_wide=True),
    _bytes("working_set", "WSET", 4),
    _bytes("anon", "ANON", 1),
    _bytes("cache", "CACHE", 2),
    _bytes("reclaimable", "CLEAN", 7),
    _bytes("dirty", "DIRTY", 8, is_quiet=True),
    _bytes("shmem", "SHMEM", 3, is_quiet=True),
    _bytes("kernel", "KERN", 5),
    _bytes("swap", "SWAP", 4, is_quiet=True),
    Column(
        key="pressure", title="STALL", json_name="pressure_some_avg10", unit="fraction", rank=3,
        of=lambda row, _: row.pressure, is_quiet=True, is_summed=False,
    ),
    Column(
        key="oom_kills", title="KILLS", json_name="oom_kills", unit="count", rank=2,
        of=lambda row, _: row.oom_kills, is_quiet=True, is_summed=False,
    ),
    Column(
        key="limit_hits", title="HITS", json_name="limit_hits", unit="count", rank=9,
        of=lambda row, _: row.limit_hits, is_quiet=True, is_summed=False,
    ),
)  # fmt: skip
ATTENTION: Final = "attention"
KEYS: Final = (ATTENTION, *(column.key for column in COLUMNS), "name")
"""The first is the default: what needs a look, then pods, then units, then other cgroups."""
_OLD_KEYS: Final = {"outside": "uncounted"}


def column(key: str) -> Column:
    """The column of that key; UsageProblem for any other word."""
    wanted = key.replace("-", "_")
    found = next((c for c in COLUMNS if c.key == _OLD_KEYS.get(wanted, wanted)), None)
    if found is None:
        raise UsageProblem(f"--sort {key}: no such column; there are {', '.join(KEYS)}")
    return found


def ordered(rows: Sequence[PodRow], key: str, *, whole: bool) -> list[PodRow]:
    """Largest first (nearest to its limit first for ``distance``); unknown ones last."""
    by_name = sorted(rows, key=lambda row: (row.workload.name, row.workload.cgroup))
    if key == "name":
        return by_name
    if key == ATTENTION:
        return sorted(by_name, key=lambda row: _attention(row, whole=whole))
    chosen = column(key)

    def rank(row: PodRow) -> tuple[int, float]:
        value = chosen.of(row, holding_of(row, whole=whole))
        if value is None:
            return 2, 0
        if isinstance(value, Unlimited):
            return (1 if chosen.smallest_first else 0), float("-inf")
        return (0 if chosen.smallest_first else 1), value if chosen.smallest_first else -value

    return sorted(by_name, key=rank)


def is_pods(row: PodRow) -> bool:
    """Whether it is a pod, a container or a batch job, and not a part of the host itself."""
    return row.workload.kind in ("container", "pod") or row.workload.slurm is not None


HEX_ID: Final = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{16,}(?![0-9A-Za-z])")


def has_no_name(workload: Workload) -> bool:
    """Whether people would not know what it is: an id stands for it."""
    return workload.name.startswith("container:") or bool(HEX_ID.search(workload.name))


def _attention(row: PodRow, *, whole: bool) -> tuple[int, int]:
    """Units and slices of the host stand below pods, however large they are."""
    danger = attention_of(row)
    if danger is not None:
        tier = 0 if danger.level == "critical" else 1
    elif is_pods(row):
        tier = 2
    else:
        tier = 3 if row.workload.kind == "unit" else 4
    holding = holding_of(row, whole=whole)
    really = holding.charge if holding.shadow_charge is None else holding.shadow_charge
    return tier, -(really or 0)


def holding_of(row: PodRow, *, whole: bool) -> PodHolding:
    """What a row is shown with: parents with everything in them, leaves with their own."""
    return row.whole if whole or not row.is_leaf else row.own
