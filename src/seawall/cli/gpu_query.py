# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu query``: devices as the driver's own libraries tell of them, by ctypes.

Failing calls are explained, with what was seen that proves it.  It asks the libraries of where it
runs; for a WORKLOAD in that one's cgroup and namespaces, and with its rights: a container's own
libraries are its own code, and never loaded from outside.
"""

from argparse import ArgumentParser, Namespace

from seawall.accounts.devices.own_view import ClassPromise, nvidia_refusals, paths_to_try
from seawall.cli.console import console_for
from seawall.cli.source_options import add_source_arguments, open_source
from seawall.cli.verb_page import print_page
from seawall.findings.blindness import unread_rows
from seawall.host.host import Unread
from seawall.host.own_devices import try_each
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Tried
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.gpu_query import GpuQuery, ask
from seawall.readings.kernel import Kernel
from seawall.sources.source import Source
from seawall.views.document import head, render
from seawall.views.gpu_query_page import QueryPage


def add_arguments(parser: ArgumentParser) -> None:
    """Those of every reading verb."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="ask as one of its processes may: namespace/pod/container, a container id, pid:N, ... "
        "(root; the libraries are this host's)",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Print the devices; the exit status."""
    source = open_source(arguments)
    page = _page(source, arguments.workload)
    top = head("gpu-query", source.first.get(Kernel), None)
    if arguments.json:
        from seawall.views.documents.gpu_query_document import QUERY  # noqa: PLC0415 - only one of the two

        print(render(QUERY.of(top, page)))
        return 0
    from seawall.views.gpu_query_text import lines  # noqa: PLC0415 - only one of the two

    paper = console_for(arguments.color)
    print_page(paper, top, source.notes, lines(page, paper), page.not_seen())
    return 0


def _page(source: Source, workload: str | None) -> QueryPage:
    if workload is not None:
        from seawall.cli.gpu_query_inside import page_inside  # noqa: PLC0415 - only when named

        return page_inside(source, workload)
    query = ask(source.first.host)
    return QueryPage(
        query=query,
        refused=_refused(source, query),
        unseen=tuple(unread_rows([source.first])),
    )


def _refused(source: Source, query: GpuQuery | Unread) -> tuple[str, ...]:
    """What proves a failing call: NVIDIA's nodes as this process sees them."""
    if isinstance(query, Unread) or not query.failed or source.live is None:
        return ()

    def try_here(promise: ClassPromise) -> list[Tried]:
        nodes = source.first.get(DeviceNodes)
        paths = () if isinstance(nodes, Unread) else tuple(nodes.by_path)
        return [Tried(*row) for row in try_each(paths_to_try(promise, paths), opens=False)]

    return nvidia_refusals(source.first.get(CharDevices), try_here)
