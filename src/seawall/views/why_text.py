# SPDX-License-Identifier: Apache-2.0
"""``seawall why`` as text: 80 columns, worst first, every number with its source."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from seawall.findings.blindness import NotSeen
from seawall.findings.finding import Evidence, Judged
from seawall.findings.words import count, percent, size
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.readings.pressure import HostPressure
from seawall.views.terminal import Paper, plain

EVIDENCE_SHOWN: Final = 12
_INDENT: Final = "          "
_VALUE_WIDTH: Final = 12


def heading(head: dict[str, Any], paper: Paper, notes: Sequence[str] = ()) -> Iterator[str]:
    """Which machine, which kernel, when."""
    host = head["host"]
    words = [host["node"] or "unknown node", f"Linux {host['kernel'] or 'unknown'}"]
    if head["taken_at"]:
        words.append(head["taken_at"])
    yield paper.paint(shortened(" - ".join(map(plain, words)), paper), "bold")
    if notes:
        yield "Noted with the bundle:"
        for note in notes:
            yield from paper.wrap(note, "  ", "  ")


def shortened(text: str, paper: Paper) -> str:
    """One line, cut at the paper's edge."""
    return text if len(text) <= paper.width else text[: paper.width - 2] + ".."


def vitals(meminfo: Meminfo | Unread, pressure: HostPressure | Unread) -> str:
    """The one line that a tired person looks for first; from two or four small files."""
    if isinstance(meminfo, Unread):
        words = [f"memory: {meminfo.path} {meminfo.detail or meminfo.why}"]
    elif meminfo.mem_available is None:
        words = [f"memory: {size(meminfo.mem_free)} free of {size(meminfo.mem_total)}"]
    else:
        words = [f"memory: {size(meminfo.mem_available)} available of {size(meminfo.mem_total)}"]
    if not isinstance(pressure, Unread):
        for name in ("memory", "io", "cpu"):
            part = getattr(pressure, name)
            if not isinstance(part, Unread):
                words.append(f"{name} stall {percent(part.some.avg10)}")
    return "; ".join(words)


def finding_lines(item: Judged, paper: Paper) -> Iterator[str]:
    """One finding that fires: headline, what comes next, evidence, confirm, remedy."""
    finding = item.finding
    mark = finding.severity.upper()
    yield ""
    lines = list(paper.wrap(finding.headline, _INDENT, f"{mark:<9} "))
    yield paper.paint(lines[0], finding.severity)
    yield from (paper.paint(line, finding.severity) for line in lines[1:])
    if finding.workload:
        yield f"{_INDENT}in {plain(finding.workload)}"
    if finding.outlook:
        yield from paper.wrap(finding.outlook, _INDENT, "  next    ")
    yield from _evidence_lines(finding.evidence, paper)
    yield from _listed("  confirm ", item.confirm)
    for number, step in enumerate(item.remedy):
        yield from paper.wrap(
            step, _INDENT + "  ", "  do      - " if not number else _INDENT + "- "
        )
    yield paper.paint(f"{_INDENT}[{item.id}] {item.title}; seawall rules show {item.id}", "dim")


def _listed(label: str, commands: Sequence[str]) -> Iterator[str]:
    """Commands are never wrapped: they are there to be copied."""
    for number, command in enumerate(commands):
        yield (label if not number else _INDENT) + plain(command)


def _evidence_lines(evidence: Sequence[Evidence], paper: Paper) -> Iterator[str]:
    for number, item in enumerate(evidence[:EVIDENCE_SHOWN]):
        label = "  seen    " if not number else _INDENT
        value = shown_value(item)
        if len(value) > _VALUE_WIDTH:
            yield from paper.wrap(f"{item.name}: {value}", _INDENT + "  ", label)
        else:
            yield from paper.wrap(item.name, _INDENT + " " * 14, f"{label}{value:>12}  ")
        yield from (
            paper.paint(line, "dim")
            for line in paper.wrap(item.source, _INDENT + " " * 16, _INDENT + " " * 14)
        )
    if len(evidence) > EVIDENCE_SHOWN:
        yield f"{_INDENT}and {len(evidence) - EVIDENCE_SHOWN} more in --json"


def shown_value(item: Evidence) -> str:
    """The value with its unit, as a person reads it."""
    value = item.value
    if value is None:
        return "no limit"
    if isinstance(value, str):
        return plain(value)
    match item.unit:
        case "bytes":
            return size(value)
        case "bytes/s":
            return f"{size(value)}/s"
        case "fraction":
            return percent(value)
        case "seconds":
            return f"{value:,.1f} s"
        case "per second":
            return f"{value:,.0f}/s"
    return count(value) if isinstance(value, int) else f"{value:,.2f}"


def closing(
    judged: Sequence[Judged],
    unseen: Sequence[NotSeen],
    window_seconds: float | None,
    paper: Paper,
) -> Iterator[str]:
    """What could not be seen, and how many rules looked."""
    live = [item for item in judged if item.muted is None]
    firing = sum(item.finding.verdict == "fires" for item in live)
    if not firing:
        yield ""
        yield "Nothing fires."
    yield from could_not_see(unseen, paper)
    yield ""
    tally = {
        verdict: len({item.id for item in live if item.finding.verdict == verdict})
        for verdict in ("fires", "quiet", "blind")
    }
    rules = len({item.id for item in judged})
    muted = len({item.id for item in judged if item.muted is not None})
    window = (
        "no window, so no rates" if window_seconds is None else f"{window_seconds:.1f} s window"
    )
    yield from paper.wrap(
        f"{rules} rules: {tally['fires']} fire, {tally['quiet']} quiet, {tally['blind']} blind, "
        f"{muted} muted; {window}."
    )


def could_not_see(unseen: Sequence[NotSeen], paper: Paper) -> Iterator[str]:
    """The last part of every view."""
    yield ""
    if not unseen:
        yield "Could not see: nothing that was asked for was missing."
        return
    yield paper.paint("Could not see", "bold")
    for row in unseen:
        yield from paper.wrap(f"{row.what}: {row.why}", "    ", "  ")
        if row.provide:
            yield from paper.wrap(f"needs: {row.provide}", "      ", "    ")
