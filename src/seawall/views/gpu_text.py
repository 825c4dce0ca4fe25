# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu`` as text: the worst first, then each broken container with its five layers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seawall.accounts.devices.layers import (
    LAYERS,
    ContainerDevices,
    DeviceRow,
    Diagnosis,
    HostNode,
    Layer,
    Plugin,
    UpcomingLoss,
)
from seawall.findings.device_words import repair_line
from seawall.host.host import Unread
from seawall.views.gpu_page import GpuPage, by_state, errno_name, missing_nodes, number_of
from seawall.views.gpu_words import is_promised, node_words, since_words, summary
from seawall.views.terminal import Console
from seawall.words import first

BROKEN_SHOWN: Final = 8
"""Diagnoses with their tables; what is broken in the same way is one of them."""
LINES_SHOWN: Final = 15
ROWS_SHOWN: Final = 10
_SEEN_SHOWN: Final = 3
_INDENT: Final = "          "
_HEAD: Final = ("device", "number", *LAYERS)
_SAYS: Final = {"yes": "yes", "no": "no", "none": "-", "unread": "?"}
_LEGEND: Final = "NO: the first layer that disagrees. -: has no say here. ?: could not be seen."


def lines(page: GpuPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    yield from paper.wrap(summary(page))
    yield from _moments(page, paper, whole=whole)
    if isinstance(page.table, Unread):
        return
    found = by_state(page.containers)
    yield from _all_broken(page, paper, whole=whole)
    if page.wanted is None:
        for diagnosis in page.table.host_diagnosis:
            yield from _diagnosed("the host", diagnosis, paper)
        yield from _nodes(page.table.host_nodes, paper)
    for plugin in page.table.plugins:
        if page.is_wanted(plugin.workload):
            yield from _plugin(plugin, paper)
    yield from _soon(page.soon, paper, whole=whole)
    is_whole = whole or page.wanted is not None
    yield from _others("Not tried", found["untried"], paper, whole=is_whole)
    yield from _others("Work", found["works"], paper, whole=is_whole)


def _moments(page: GpuPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """Which moment of a bundle is told of, and who stands otherwise at its last."""
    if page.moments < 2:
        return
    yield f"Shown: the first of {page.moments} moments of this bundle."
    shown = page.at_last if whole else page.at_last[:LINES_SHOWN]
    for one in shown:
        words = f"At the last moment of this bundle {one.workload.name} {one.words}."
        for line in paper.wrap(words):
            yield paper.paint(line, "critical" if one.mode else "bold")
    if rest := len(page.at_last) - len(shown):
        yield f"and {rest} more; --whole has them"


# --- broken ----------------------------------------------------------------------------


def _all_broken(page: GpuPage, paper: Console, *, whole: bool) -> Iterator[str]:
    found = by_state(page.containers)["broken"]
    groups: dict[tuple[str, str, str], list[ContainerDevices]] = {}
    for one in found:
        if one.diagnosis is not None:
            key = (one.diagnosis.mode, one.diagnosis.cause, one.diagnosis.remedy)
            groups.setdefault(key, []).append(one)
    many = sorted(groups.values(), key=len, reverse=True)
    shown = many if whole else many[:BROKEN_SHOWN]
    for one, *others in shown:
        assert one.diagnosis is not None  # noqa: S101 - they were grouped by it
        since = since_words(one.since, page.taken_at) if one.since else ""
        yield from _diagnosed(one.workload.name, one.diagnosis, paper, since)
        yield from paper.wrap(f"in steps: {repair_line(one.workload.name)}", _INDENT, _INDENT)
        yield from _seen(one, paper)
        yield from table(one.devices, paper, whole=whole)
        names = [other.workload.name for other in others]
        if names:
            words = f"the same: {first(names, len(names) if whole else LINES_SHOWN)}"
            yield from paper.wrap(words, _INDENT, "  also    ")
    if len(many) > len(shown):
        rest = sum(map(len, many[len(shown) :]))
        yield ""
        yield f"{rest} more containers are broken in other ways; --whole has them."


def _diagnosed(name: str, diagnosis: Diagnosis, paper: Console, since: str = "") -> Iterator[str]:
    yield ""
    words = f"{name}: {diagnosis.headline}"
    for line in paper.wrap(words, _INDENT, f"{diagnosis.mode:<9} "):
        yield paper.paint(line, "critical")
    if since:
        yield from paper.wrap(since, _INDENT, "  since   ")
    yield from paper.wrap(diagnosis.cause, _INDENT, "  cause   ")
    yield from paper.wrap(diagnosis.remedy, _INDENT, "  do      ")


def _seen(container: ContainerDevices, paper: Console) -> Iterator[str]:
    """What the layer said at which each device breaks, and what the try said."""
    label = "  seen    "
    broken = [row for row in sorted(container.devices, key=_rank) if row.broken_at is not None]
    for row in broken[:_SEEN_SHOWN]:
        layers: list[Layer] = [row.broken_at] if row.broken_at else []
        if "access" not in layers and row.layers["access"].says == "no":
            layers.append("access")
        told = "; ".join(f"{layer}: {row.layers[layer].why}" for layer in layers)
        yield from paper.wrap(f"{row.path}: {told}", _INDENT + "  ", label)
        label = _INDENT
    verb = "promised" if is_promised([container]) else "named"
    yield from paper.wrap(f"{verb} by {container.promised_by}", _INDENT, label)


def table(rows: Sequence[DeviceRow], paper: Console, *, whole: bool) -> Iterator[str]:
    """One row a device, one column a layer; what is broken comes first."""
    ordered = sorted(rows, key=_rank)
    shown = ordered if whole else ordered[:ROWS_SHOWN]
    inner = Console(width=paper.width - 2, colour=False)
    for number, line in enumerate(inner.table(_HEAD, map(_cells, shown), left=len(_HEAD))):
        yield "  " + (paper.paint(line, "dim") if not number else line)
    if len(ordered) > len(shown):
        rest = ordered[len(shown) :]
        words = "all answered" if all(_answered(row) for row in rest) else "--whole has them"
        yield f"  and {len(rest)} more devices, {words}"
    if any(row.broken_at for row in shown):
        yield from (paper.paint(line, "dim") for line in paper.wrap(_LEGEND, "  ", "  "))


def _rank(row: DeviceRow) -> tuple[bool, bool, str]:
    return row.broken_at is None, not row.is_needed, row.path


def _answered(row: DeviceRow) -> bool:
    return row.layers["access"].says == "yes"


def _cells(row: DeviceRow) -> tuple[str, ...]:
    """Of one row; the try shows its errno."""
    cells = []
    for layer in LAYERS:
        word = _SAYS[row.layers[layer].says]
        if layer == "access" and row.errno:
            word = errno_name(row.errno)
        cells.append(word.upper() if layer == row.broken_at else word)
    return (row.path, number_of(row), *cells)


# --- host, plugins, what comes -------------------------------------------------------------


def _nodes(nodes: Sequence[HostNode], paper: Console) -> Iterator[str]:
    missing = missing_nodes(nodes)
    if not missing:
        return
    yield ""
    yield paper.paint("Control nodes of the host", "bold")
    for node in missing:
        yield from paper.wrap(node_words(node), "    ", "  ")
    yield from paper.wrap("make them: seawall gpu wait --create (root)", "    ", "  ")


def _plugin(plugin: Plugin, paper: Console) -> Iterator[str]:
    if not plugin.lacks:
        return
    yield ""
    served = "every pod that it serves from now on will lack it too"
    if plugin.names_nodes != "yes":
        served = (
            f"if it names nodes in its answers (PASS_DEVICE_SPECS), {served}; whether it does "
            "was not seen"
        )
    words = (
        f"Device plugin {plugin.workload.name}: its own /dev lacks "
        f"{first(plugin.lacks, ROWS_SHOWN)}, which the host has: {served}. Restart the "
        "plugin's pod, then recreate the pods that it served. In steps: seawall gpu repair "
        "--plugin"
    )
    for line in paper.wrap(words, "  "):
        yield paper.paint(line, "warning")


def _soon(found: Iterable[UpcomingLoss], paper: Console, *, whole: bool) -> Iterator[str]:
    rows = list(found)
    if not rows:
        return
    yield ""
    yield paper.paint("About to break", "bold")
    shown = rows if whole else rows[:LINES_SHOWN]
    for one in shown:
        who = "the host" if one.workload is None else one.workload.name
        yield from paper.wrap(f"{who}: {one.device}: {one.why}", "    ", "  ")
        yield from paper.wrap(f"when: {one.when}", "      ", "    ")
        yield from paper.wrap(f"do: {one.remedy}", "      ", "    ")
    if len(rows) > len(shown):
        yield f"  and {len(rows) - len(shown)} more; --whole has them"


def _others(
    title: str, found: list[ContainerDevices], paper: Console, *, whole: bool
) -> Iterator[str]:
    """A line each; with ``whole`` its table."""
    if not found:
        return
    yield ""
    yield paper.paint(title, "bold")
    shown = found if whole else found[:LINES_SHOWN]
    for one in shown:
        yield from paper.wrap(f"{one.workload.name}: {_count_words(one)}", "    ", "  ")
        if whole:
            yield from table(one.devices, paper, whole=whole)
    if len(found) > len(shown):
        yield f"  and {len(found) - len(shown)} more; --whole has them"


def _count_words(container: ContainerDevices) -> str:
    """``4 devices, all answered``."""
    rows = container.devices
    count = "1 device" if len(rows) == 1 else f"{len(rows)} devices"
    answered = sum(map(_answered, rows))
    if rows and answered == len(rows):
        return f"{count}, all answered"
    refused = [row.path for row in rows if row.errno]
    if not rows:
        return f"promised by {container.promised_by}; which devices could not be told"
    words = f"{count}, {answered} answered"
    if refused:
        words += f"; not needed and refused: {first(refused, _SEEN_SHOWN)}"
    if any(row.errno is None for row in rows):
        words += "; the rest was not tried"
    return words
