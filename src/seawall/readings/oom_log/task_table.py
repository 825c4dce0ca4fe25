# SPDX-License-Identifier: Apache-2.0
"""The table of tasks in an OOM report; its columns are known by the names above them.

Kernel source: mm/oom_kill.c dump_tasks (vm.oom_dump_tasks, on by default).  The columns changed
in 2.6.36, 3.7, 3.8, 4.4, 4.15 and 6.8; distributions mix them.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from seawall.readings.oom_log.oom_report import Task

ROWS_MOST: Final = 200_000
"""Rows kept of one report; further ones are only counted."""

FIELDS: Final = {
    "pid": "pid", "uid": "uid", "tgid": "tgid", "total_vm": "total_vm_pages", "rss": "rss_pages",
    "rss_anon": "rss_anon_pages", "rss_file": "rss_file_pages", "rss_shmem": "rss_shmem_pages",
    "nr_ptes": "nr_ptes", "nr_pmds": "nr_pmds", "pgtables_bytes": "pgtables_bytes",
    "swapents": "swapents_pages", "cpu": "cpu", "oom_adj": "oom_adj",
    "oom_score_adj": "oom_score_adj",
}  # fmt: skip
_HEAD: Final = ("uid", "tgid", "total_vm", "rss")
_OLDEST: Final = (*_HEAD, "cpu", "oom_adj")
_CPU: Final = (*_OLDEST, "oom_score_adj")
_PTES: Final = (*_HEAD, "nr_ptes", "swapents", "oom_score_adj")
_PMDS: Final = (*_HEAD, "nr_ptes", "nr_pmds", "swapents", "oom_score_adj")
_PGTABLES: Final = (*_HEAD, "pgtables_bytes", "swapents", "oom_score_adj")
_SPLIT: Final = (
    *_HEAD, "rss_anon", "rss_file", "rss_shmem", "pgtables_bytes", "swapents", "oom_score_adj"
)  # fmt: skip
LAYOUTS: Final = (_OLDEST, _CPU, _PTES, _PMDS, _PGTABLES, _SPLIT)
"""2.6.31 to 2.6.35; to 3.6; 3.8 to 4.3; to 4.14; 4.15 to 6.7; since 6.8."""
_BY_COUNT: Final = {6: _OLDEST, 8: _PMDS, 10: _SPLIT}
_ANY: Final = re.compile(r"\[\s*\d{1,10}\]((?:\s+-?\d{1,20}){6,12}) +\S", re.ASCII)
# What stands where the name should, in a row that was cut within its numbers.
_CUT_NUMBER: Final = re.compile(r"\s*-?\d{0,20}(?:>|\.\.\.|\u2026)\s*\Z", re.ASCII)
_OLD: Final = re.compile(r"(?:2\.6|3\.[0-6])\b")
_PAGE_LEAST: Final = 4096
_COLUMNS_MOST: Final = 16


def read_columns(text: str) -> tuple[str, ...] | None:
    """The names of the numbers after ``[ pid ]``; None when they are not known well enough.

    Distributions add columns, which are left out; names of a known layout may be damaged.
    """
    names = tuple(text[text.find("]") + 1 :].split())
    if len(names) > _COLUMNS_MOST or names[-1:] != ("name",):
        return None
    names = names[:-1]
    if names in LAYOUTS:
        return names
    near = [layout for layout in LAYOUTS if _agree(layout, names)]
    if near:
        return near[0] if len(near) == 1 else None
    return names if names[:4] == _HEAD and len(set(names)) == len(names) else None


def is_known(text: str) -> bool:
    """Whether the header row is undamaged and one that kernels are known to print."""
    return tuple(text[text.find("]") + 1 :].split()[:-1]) in LAYOUTS


def _agree(layout: Sequence[str], names: Sequence[str]) -> bool:
    """The same but for names that nobody knows: damaged ones."""
    return len(layout) == len(names) and all(
        known == name or name not in FIELDS for known, name in zip(layout, names, strict=True)
    )


def guess_columns(text: str, kernel: str | None) -> tuple[str, ...] | None:
    """The columns of a row whose header row is missing: by their number and their values."""
    found = _ANY.match(text)
    if not found:
        return None
    values = [int(value) for value in found[1].split()]
    if len(values) != len(_PGTABLES):
        return _BY_COUNT.get(len(values))
    if values[4] >= _PAGE_LEAST and values[4] % _PAGE_LEAST == 0:
        return _PGTABLES
    return _CPU if kernel and _OLD.match(kernel) else _PTES


@lru_cache(maxsize=64)
def _row_of(count: int) -> re.Pattern[str]:
    return re.compile(
        r"\[\s*(\d{1,10})\]" + r"\s+(-?\d{1,20})" * count + r"(?: (.{0,64}))\Z", re.ASCII
    )


@lru_cache(maxsize=64)
def _places_of(columns: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Which field takes which number; columns that we do not know are left out."""
    return tuple(
        (FIELDS[name], place) for place, name in enumerate(columns, start=2) if name in FIELDS
    )


def is_row(text: str, columns: Sequence[str]) -> bool:
    """Whether the text has every column and a name."""
    found = _row_of(len(columns)).match(text)
    return found is not None and bool(found[len(columns) + 2].strip())


def read_row(text: str, columns: tuple[str, ...], line: int) -> Task | None:
    """One task; None when a column is missing, e.g. because the line was cut.

    A task may have an empty name: then the row ends with the blank before it.
    """
    found = _row_of(len(columns)).match(text)
    if not found:
        return None
    if _CUT_NUMBER.match(found[len(columns) + 2]):
        return None
    fields = {field: int(found[place]) for field, place in _places_of(columns)}
    return Task(pid=int(found[1]), comm=found[len(columns) + 2].strip(), line=line, **fields)
