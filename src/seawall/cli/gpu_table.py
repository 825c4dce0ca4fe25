# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu [WORKLOAD]``: what each container was promised, through five layers."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from dataclasses import replace

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.device_changes import Differs, differing
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.node_faults.faults import DeviceFaults, with_faults
from seawall.accounts.workloads import Workload
from seawall.cli import gpu_watch
from seawall.cli.gpu import QUESTIONS
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import SourceVerb
from seawall.findings.blindness import NotSeen, asked_by_root, unread_rows
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.char_devices import CharDevices
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.sources.source import Source
from seawall.views.gpu_page import GpuPage
from seawall.views.gpu_unseen import unseen_rows


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the table."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="namespace/pod[/container], a container id, pid:N, unit:NAME or a cgroup path; "
        "without one, the host and every container that was promised a device",
    )  # fmt: skip
    parser.add_argument(
        "--open", action="store_true",
        help="open the devices too, as the container: wakes sleeping ones (default: ask the "
        "kernel whether it would let them be opened, which no driver notices)",
    )  # fmt: skip
    parser.add_argument(
        "--whole", action="store_true", help="every container and every device, in full"
    )
    gpu_watch.add_arguments(parser)


def complete(arguments: Namespace) -> None:
    """Check the options that go with ``--watch``; UsageProblem.  With it --timeout bounds each
    table.
    """
    gpu_watch.complete(arguments)


def run(arguments: Namespace) -> int:
    """Print the table; the exit status."""
    if arguments.workload in QUESTIONS:
        word = arguments.workload
        raise UsageProblem(f"{word!r} is a question: it comes first: seawall gpu {word} ...")
    if arguments.watch:
        return gpu_watch.run(arguments)
    return GpuVerb.run(arguments)


class GpuVerb(SourceVerb[GpuPage]):
    """What each container was promised."""

    name = "gpu"
    text_view = "seawall.views.gpu_text:lines"
    text_options = ("whole",)
    document_table = "seawall.views.documents.gpu_documents:GPU"

    def page(self) -> GpuPage:
        """UsageProblem where nothing can be opened."""
        if self.arguments.open and self.source.live is None:
            raise UsageProblem("--open: a bundle or a tree of files opens no devices; leave it out")
        return _page(self.source, self.arguments)


def _page(source: Source, arguments: Namespace) -> GpuPage:
    wanted = _wanted(source, arguments.workload)
    if arguments.open:
        from seawall.accounts.devices.device_table import tabulate  # noqa: PLC0415 - only when asked

        table: DeviceTable | Unread = tabulate(source.first, opens=True)
    else:
        table = source.first.get(DeviceTable)
    if not isinstance(table, Unread):
        table = with_faults(table, source.first.get(DeviceFaults))
    kernel = source.first.get(Kernel)
    may = kernel.reader_capabilities or () if isinstance(kernel, Kernel) else ()
    is_root = source.live is None or "SYS_ADMIN" in may  # who reads a bundle cannot see more
    page = GpuPage(
        table=table, wanted=wanted, drivers=_drivers(source), opens=arguments.open,
        is_root=is_root, unseen=(), bundle_notes=source.notes,
        taken_at=kernel.taken_at_unix_seconds if isinstance(kernel, Kernel) else None,
    )  # fmt: skip
    rows = unseen_rows(table, page.containers, is_root=asked_by_root([source.first]))
    rows += _not_told(unread_rows([source.first]), rows)
    at_last = tuple(one for one in _at_last(source, table) if page.is_wanted(one.workload))
    return replace(page, unseen=tuple(rows), moments=len(source.rounds), at_last=at_last)


def _not_told(found: Iterable[NotSeen], told: Iterable[NotSeen]) -> list[NotSeen]:
    """What the table says of a path need not be said again of the topic."""
    words = "; ".join(row.what for row in told)
    return [row for row in found if f", {row.what}" not in words]


def _at_last(source: Source, first: DeviceTable | Unread) -> Iterator[Differs]:
    """Of a bundle of several moments: who stands otherwise at the last."""
    if len(source.rounds) < 2 or isinstance(first, Unread):
        return
    last = Snapshot(source.rounds[-1]).get(DeviceTable)
    if not isinstance(last, Unread):
        yield from differing(first, last)


def _wanted(source: Source, name: str | None) -> Workload | None:
    if name is None:
        return None
    from seawall.cli.named_workload import named_workload  # noqa: PLC0415 - only when named

    return named_workload(source, name)


def _drivers(source: Source) -> tuple[str, ...] | None:
    """Loaded ones that a control node belongs to, as /proc/devices calls them."""
    known = source.first.get(CharDevices)
    if isinstance(known, Unread):
        return None
    names = dict.fromkeys(
        name for one in CLASSES for control in one.controls for name in control.drivers
    )
    return tuple(name for name in names if known.majors_of(name))
