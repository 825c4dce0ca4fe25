# SPDX-License-Identifier: Apache-2.0
"""All nodes of the cluster as slim rows, as they change (``list_watch.py``)."""

from collections.abc import Callable

from seawall.cluster.kube.kube_client import KubeClient
from seawall.cluster.kube.list_watch import (
    RELIST_JITTER_SECONDS,
    ListWatch,
    ObjectEvent,
    WatchIdentity,
)
from seawall.cluster.kube.node_row import NodeRow, NodeRowDecoder, RowFields

NODES_PATH = "/api/v1/nodes"


class NodeWatch(ListWatch[NodeRow]):
    """Tells ``sink`` of every node.  Other ``fields`` need another watch: a row has no others."""

    def __init__(self, client: KubeClient, fields: RowFields,
                 sink: Callable[[ObjectEvent[NodeRow]], None], *,
                 relist_jitter_seconds: float = RELIST_JITTER_SECONDS,
                 has_watch_list: bool = True) -> None:  # fmt: skip
        super().__init__(
            client, NODES_PATH, NodeRowDecoder(fields).decode, _identity, sink,
            relist_jitter_seconds=relist_jitter_seconds, has_watch_list=has_watch_list,
        )  # fmt: skip


def _identity(row: NodeRow) -> WatchIdentity:
    return WatchIdentity(row.name, row.uid, row.resource_version)
