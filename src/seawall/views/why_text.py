# SPDX-License-Identifier: Apache-2.0
"""``seawall why`` as text: 80 columns, worst first, every number with its source."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from seawall.findings.blindness import NotSeen
from seawall.findings.finding import Evidence, Judged
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.readings.pressure import HostPressure
from seawall.views.terminal import Paper, plain
from seawall.words import count, percent, size

EVIDENCE_SHOWN: Final = 18
EVIDENCE_HURRIED: Final = 2
_INDENT: Final = "          "
_VALUE_WIDTH: Final = 12
_FOLDER_LONG: Final = 24


def heading(head: dict[str, Any], paper: Paper, notes: Sequence[str] = ()) -> Iterator[str]:
    """Which machine, which kernel, when."""
    host = head["host"]
    words = [host.get("node") or "unknown node", f"Linux {host.get('kernel') or 'unknown'}"]
    if "taken_at" in head:
        words.append(head["taken_at"])
    yield paper.paint(shortened(" - ".join(map(plain, words)), paper), "bold")
    if notes:
        yield "Noted with the record:"
        for note in notes:
            yield from paper.wrap(note, "  ", "  ")


def shortened(text: str, paper: Paper) -> str:
    """One line, cut at the paper's edge."""
    return text if len(text) <= paper.width else text[: paper.width - 2] + ".."


def vitals(meminfo: Meminfo | Unread, pressure: HostPressure | Unread) -> str:
    """The one line that a tired person looks for first; ``host/vitals.py`` says it live."""
    if isinstance(meminfo, Unread):
        return f"memory: {meminfo.path}: {meminfo.detail or meminfo.why}"
    left, what = meminfo.mem_available, "available"
    if left is None:
        left, what = meminfo.mem_free, "free"
    line = f"memory: {size(left)} of {size(meminfo.mem_total)} {what}"
    stalls = [
        f"{name} {part.some.avg10 * 100:.0f} %"
        for name in ("memory", "io", "cpu")
        if not isinstance(pressure, Unread)
        and not isinstance(part := getattr(pressure, name), Unread)
    ]
    return line + (f"; stalls: {', '.join(stalls)}" if stalls else "")


def finding_lines(
    item: Judged, paper: Paper, *, whole: bool = False, hurried: bool = False
) -> Iterator[str]:
    """One finding that fires: headline, what comes next, evidence, confirm, remedy.

    Over a slow line an ``info`` is its headline alone, unless ``whole`` asks for the rest.
    ``hurried`` keeps what is needed to act: on a thrashing node each line takes its time.
    """
    finding = item.finding
    mark = finding.severity.upper()
    brief = finding.severity == "info" and not whole
    yield ""
    headline = f"{finding.headline} [{item.id}]"
    for line in paper.wrap(headline, _INDENT, f"{mark:<9} "):
        yield paper.paint(line, finding.severity)
    if finding.workload:
        yield from paper.wrap(f"in {finding.workload}", _INDENT, _INDENT)
    if brief:
        return
    if finding.outlook:
        yield from paper.wrap(finding.outlook, _INDENT, "  next    ")
    if hurried:
        yield from _evidence_lines(finding.evidence[:EVIDENCE_HURRIED], paper, whole=True)
        yield f"{_INDENT}slow here: evidence with --whole, how to confirm: rules show {item.id}"
    else:
        yield from _evidence_lines(finding.evidence, paper, whole=whole)
        yield from _listed("  confirm ", item.confirm)
    for number, step in enumerate(item.remedy):
        label = _INDENT if number else "  do      "
        yield from paper.wrap(step, _INDENT + "  ", label + "- ")


def _listed(label: str, commands: Sequence[str]) -> Iterator[str]:
    """Commands are never wrapped: they are there to be copied."""
    for number, command in enumerate(commands):
        yield (label if not number else _INDENT) + plain(command)


def _evidence_lines(evidence: Sequence[Evidence], paper: Paper, *, whole: bool) -> Iterator[str]:
    shown = evidence if whole else evidence[:EVIDENCE_SHOWN]
    folder = _long_folder([item.source for item in shown])
    for number, item in enumerate(shown):
        label = "  seen    " if not number else _INDENT
        source = plain(item.source.replace(folder, ".../") if folder else item.source)
        yield from _evidence_row(label, item, source, paper)
    if folder:
        for line in paper.wrap(f".../ is {folder}", _INDENT + "  ", _INDENT):
            yield paper.paint(line, "dim")
    if len(evidence) > len(shown):
        yield f"{_INDENT}and {len(evidence) - len(shown)} more with --whole"


def _evidence_row(label: str, item: Evidence, source: str, paper: Paper) -> Iterator[str]:
    """Value, name and source on one line if they fit, else the source below."""
    value = shown_value(item)
    if len(value) > _VALUE_WIDTH:
        indent = _INDENT + "  "
        lines = list(paper.wrap(f"{item.name}: {value}", indent, label))
    else:
        indent = _INDENT + " " * 14
        lines = list(paper.wrap(item.name, indent, f"{label}{value:>12}  "))
    yield from lines[:-1]
    if len(lines[-1]) + 2 + len(source) <= paper.width:
        yield f"{lines[-1]}  {paper.paint(source, 'dim')}"
        return
    yield lines[-1]
    for line in paper.wrap(source, indent + "  ", indent + "  "):
        yield paper.paint(line, "dim")


def _long_folder(sources: Sequence[str]) -> str:
    """A folder with a long name that two sources or more share: written out once."""
    folders = [
        word.rpartition("/")[0] + "/"
        for source in sources
        for word in source.split(" ")
        if word.startswith("/")
    ]
    folder = max(set(folders), key=lambda name: folders.count(name) * len(name), default="")
    return folder if folders.count(folder) > 1 and len(folder) > _FOLDER_LONG else ""


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
    tally = {
        verdict: len({item.id for item in live if item.finding.verdict == verdict})
        for verdict in ("fires", "quiet", "blind")
    }
    rules = len({item.id for item in judged})
    if not firing:
        yield ""
        blind = f" Of {rules} rules {tally['blind']} could not see." if tally["blind"] else ""
        yield f"Nothing fires.{blind}"
    yield from could_not_see(unseen, paper)
    yield ""
    muted = len({item.id for item in judged if item.muted is not None})
    window = (
        "no window, so no rates" if window_seconds is None else f"{window_seconds:.1f} s window"
    )
    if firing:
        yield "More: seawall why --whole (all evidence), seawall rules show ID"
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
