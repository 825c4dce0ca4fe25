# SPDX-License-Identifier: Apache-2.0
"""Nodes that are back, whose agent ran when they died and has said nothing of it since.  Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from seawall.cluster.kube.node_row import NodeRow
from seawall.cluster.objects.node_death_object import NodeDeathObject

TELLS_WITHIN_SECONDS: Final = 900.0
"""After a node's return its agent has read the black box."""
REMEMBERED_SECONDS: Final = 86400.0
"""What nobody has looked into for a day is no news."""


class MissingRecords:
    """How long each of them has been back, as far as this process saw it."""

    def __init__(self) -> None:
        self._back_since: dict[str, float] = {}

    def by_pool(
        self, deaths: Iterable[NodeDeathObject], rows: Mapping[str, NodeRow],
        pools: Collection[str], now_seconds: float,
    ) -> dict[str, int]:  # fmt: skip
        """How many deaths of the last day have no record, a quarter of an hour after the return.

        rows:   nodes that exist, by name
        pools:  that are named even if they have none
        """
        back: dict[str, float] = {}
        missing = Counter(dict.fromkeys(pools, 0))
        for one in deaths:
            is_news = now_seconds - one.observed_seconds <= REMEMBERED_SECONDS
            row = rows.get(one.node)
            if not (one.has_agent and one.counts and one.record is None and is_news and row):
                continue
            if row.ready != "True" or row.boot_id == one.boot_id:
                continue
            since = back[one.name] = self._back_since.get(one.name, now_seconds)
            missing[one.stratum.pool] += now_seconds - since >= TELLS_WITHIN_SECONDS
        self._back_since = back
        return dict(missing)
