# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu query``: devices as the driver's own libraries tell of them, by ctypes.

Failing calls are explained, with what was seen that proves it.  It asks the libraries of where it
runs; for a WORKLOAD in that one's cgroup and namespaces, and with its rights: a container's own
libraries are its own code, and never loaded from outside.
"""

from argparse import ArgumentParser
from collections.abc import Sequence

from seawall.accounts.devices.own_view import ClassPromise, nvidia_refusals, paths_to_try
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import SourceVerb
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.host.own_devices import try_each
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Tried
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.gpu_query import GpuQuery, ask
from seawall.sources.source import Source
from seawall.views.gpu_query_page import QueryPage


def add_arguments(parser: ArgumentParser) -> None:
    """Those of every reading verb."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="ask as one of its processes may: namespace/pod/container, a container id, pid:N, ... "
        "(root; the libraries are this host's)",
    )  # fmt: skip


class GpuQueryVerb(SourceVerb[QueryPage]):
    """Of this process, or of a workload."""

    name = "gpu-query"
    text_view = "seawall.views.gpu_query_text:lines"
    document_table = "seawall.views.documents.gpu_query_document:QUERY"

    def page(self) -> QueryPage:
        source = self.source
        if self.arguments.workload is not None:
            from seawall.cli.gpu_query_inside import page_inside  # noqa: PLC0415 - only when named

            return page_inside(source, self.arguments.workload)
        query = ask(source.first.host)
        return QueryPage(
            query=query,
            refused=_refused(source, query),
            unseen=tuple(unread_rows([source.first])),
        )

    def unseen(self, page: QueryPage) -> Sequence[NotSeen]:
        """What the driver did not tell, too."""
        return page.not_seen()


run = GpuQueryVerb.run


def _refused(source: Source, query: GpuQuery | Unread) -> tuple[str, ...]:
    """What proves a failing call: NVIDIA's nodes as this process sees them."""
    if isinstance(query, Unread) or not query.failed or source.live is None:
        return ()

    def try_here(promise: ClassPromise) -> list[Tried]:
        nodes = source.first.get(DeviceNodes)
        paths = () if isinstance(nodes, Unread) else tuple(nodes.by_path)
        return [Tried(*row) for row in try_each(paths_to_try(promise, paths), opens=False)]

    return nvidia_refusals(source.first.get(CharDevices), try_here)
