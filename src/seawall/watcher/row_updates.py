# SPDX-License-Identifier: Apache-2.0
"""Updates of rows for the guard: which are new, changed or removed since it was told.

A message that went out may still be lost: the guard has room for some rows of folders that it has
not found yet.  So everybody is told again, some of them each minute.
"""

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from seawall.watcher.guard_endpoint import Row

AGAIN_SECONDS: Final = 60.0
AGAIN_ROWS: Final = 64
"""30 KB; a thousand groups are told again within a quarter of an hour."""


class RowUpdates:
    """What is known, against what was told."""

    def __init__(self) -> None:
        self._told: dict[str, Row | None] = {}
        """By cgroup, those first that were told longest ago; None: to be told again."""
        self._again_at = time.monotonic() + AGAIN_SECONDS

    def of(self, known: Mapping[str, Row]) -> tuple[list[Row], list[str]]:
        """Rows to be told, and the cgroups that are gone."""
        now = time.monotonic()
        if now >= self._again_at:
            self._again_at = now + AGAIN_SECONDS
            self._told.update(dict.fromkeys(list(islice(self._told, AGAIN_ROWS))))
        rows = [row for path, row in known.items() if self._told.get(path) != row]
        return rows, [path for path in self._told if path not in known]

    def told(self, rows: Iterable[Row], gone: Iterable[str]) -> None:
        """Note that the guard has these rows, and knows who is ``gone``."""
        for row in rows:
            self._told.pop(row["cgroup"], None)
            self._told[row["cgroup"]] = row
        for path in gone:
            self._told.pop(path, None)
