# SPDX-License-Identifier: Apache-2.0
"""All objects of one of our own kinds, as plain JSON objects, as they change (``list_watch.py``).

They are few: a NodeReport for each node in trouble, at most 1,000 NodeDeaths.
"""

from collections.abc import Callable

import msgspec

from seawall.cluster.kube.kube_client import KubeClient, Object
from seawall.cluster.kube.list_watch import (
    RELIST_JITTER_SECONDS,
    ListWatch,
    ObjectEvent,
    WatchIdentity,
)
from seawall.cluster.kube.node_row import version_number


class CustomWatch(ListWatch[Object]):
    """Tells ``sink`` of every object below ``path``, the collection's."""

    def __init__(self, client: KubeClient, path: str,
                 sink: Callable[[ObjectEvent[Object]], None], *,
                 relist_jitter_seconds: float = RELIST_JITTER_SECONDS) -> None:  # fmt: skip
        super().__init__(
            client, path, _document, _identity, sink, relist_jitter_seconds=relist_jitter_seconds
        )


class _Metadata(msgspec.Struct):
    name: str
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's name


class _Object(msgspec.Struct):
    metadata: _Metadata


_HEAD = msgspec.json.Decoder(_Object)


def _document(data: msgspec.Raw) -> Object:
    """``MsgspecError`` where its metadata are none."""
    _HEAD.decode(data)
    document: Object = msgspec.json.decode(data)
    return document


def _identity(document: Object) -> WatchIdentity:
    metadata = document["metadata"]
    version = version_number(metadata.get("resourceVersion", ""))
    return WatchIdentity(metadata["name"], metadata.get("uid", ""), version)
