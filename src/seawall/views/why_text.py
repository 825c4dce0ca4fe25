# SPDX-License-Identifier: Apache-2.0
"""``seawall why --whole`` and ``why SW103``: every number with its source, all that fires, in the
order of the screen (``why_screen.py``).
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from seawall.host.host import Unread
from seawall.views.terminal import Console, plain
from seawall.words import count, counted, duration, percent, size

if TYPE_CHECKING:
    from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
    from seawall.findings.blindness import NotSeen
    from seawall.findings.causes import Cause
    from seawall.findings.finding import Evidence, Judged
    from seawall.findings.rule import Rule

_INDENT: Final = "          "
_VALUE_WIDTH: Final = 12
_FOLDER_LONG: Final = 24
_PATH_LONG: Final = 60
_LONG_PATH: Final = re.compile(rf"(?<![^\s=])/[\w.:@/-]{{{_PATH_LONG - 1},}}(?<!/)")


def heading(head: dict[str, Any], paper: Console, notes: Sequence[str] = ()) -> Iterator[str]:
    """Which machine, which kernel, when."""
    host = head["host"]
    words = [host.get("node") or "unknown node", f"Linux {host.get('kernel') or 'unknown'}"]
    if "taken_at" in head:
        words.append(head["taken_at"])
    yield paper.paint(shortened(" - ".join(map(plain, words)), paper), "bold")
    yield from note_lines(notes, paper)


def note_lines(notes: Sequence[str], paper: Console) -> Iterator[str]:
    """What whoever made a bundle wrote down with it, and where it breaks off."""
    if notes:
        yield "Noted with the record:"
        for note in notes:
            yield from paper.wrap(note, "  ", "  ")


def shortened(text: str, paper: Console) -> str:
    """One line, cut at the paper's edge."""
    return text if len(text) <= paper.width else text[: paper.width - 2] + ".."


def cause_lines(cause: "Cause", paper: Console) -> Iterator[str]:
    """A cause, then what follows from it."""
    yield from finding_lines(cause.item, paper)
    for item in cause.effects:
        yield from finding_lines(item, paper, below=cause.item.id)


def finding_lines(item: "Judged", paper: Console, *, below: str = "") -> Iterator[str]:
    """One finding that fires: headline, what comes next, evidence, confirm, remedy.

    ``below``: the id of its cause.
    """
    finding = item.finding
    mark = finding.severity.upper()
    yield ""
    headline = f"{finding.headline} [{item.id}]"
    for line in paper.wrap(headline, _INDENT, f"{mark:<9} "):
        yield paper.paint(line, finding.severity)
    if finding.workload:
        yield from paper.wrap(f"in {finding.workload}", _INDENT, _INDENT)
    if below:
        yield f"{_INDENT}follows from {below}"
    if finding.outlook:
        yield from paper.wrap(finding.outlook, _INDENT, "  next    ")
    yield from _evidence_lines(finding.evidence, paper)
    yield from _listed("  confirm ", pastable(item.confirm))
    for number, step in enumerate(item.remedy):
        label = _INDENT if number else "  do      "
        yield from paper.wrap(step, _INDENT + "  ", label + "- ")


def rule_lines(rule: "Rule", judged: "Sequence[Judged]", paper: Console) -> Iterator[str]:
    """All that one rule said; of one that did not fire, what it looked at and by hand how."""
    for item in judged:
        finding = item.finding
        if item.muted is not None:
            yield from paper.wrap(f"muted: {item.muted}", _INDENT, f"{item.id:<9} ")
        elif finding.verdict == "fires":
            yield from finding_lines(item, paper)
        elif finding.verdict == "quiet":
            yield ""
            yield from paper.wrap(f"quiet: {finding.headline}", _INDENT, f"{item.id:<9} ")
            yield from _evidence_lines(finding.evidence, paper)
            yield from _listed("  confirm ", pastable(item.confirm))
        else:
            yield ""
            yield from paper.wrap(f"blind: {finding.headline}", _INDENT, f"{item.id:<9} ")
    yield ""
    yield from paper.wrap(f"{rule.id}: {rule.title}. More: seawall rules show {rule.id}")


def event_lines(recent: "RecentEvents | Unread | None", paper: Console) -> Iterator[str]:
    """All of the past that was read, newest first, with the verb that tells more."""
    if recent is None:
        return
    yield ""
    if isinstance(recent, Unread):
        yield from paper.wrap(f"not known: {recent.path}: {recent.detail or recent.why}",
                              _INDENT, f"{'lately':<10}")  # fmt: skip
        return
    yield paper.paint(f"Lately, in the last {duration(recent.since_seconds)}", "bold")
    for event in recent.events:
        age = f"  {age_words(event, recent.now_unix_seconds):<11} "
        of = f" ({event.source})" if event.source else ""
        yield from paper.wrap(f"{event.sentence}{of}", " " * 14, age)
        if event.more:
            yield " " * 14 + plain(event.more)
    if not recent.events:
        yield "  nothing known" if recent.unread else "  nothing"
    for one in recent.unread:
        yield from paper.wrap(f"not read: {one.path}: {one.detail or one.why}", "    ", "  ")


def age_words(event: "RecentEvent", now_unix_seconds: float | None) -> str:
    """``13 s ago``, or the log's own date where no age can be told."""
    last = event.last_at_unix_seconds
    if last is None or now_unix_seconds is None:
        return event.when or "earlier"
    return f"{duration(max(0.0, now_unix_seconds - last))} ago"


def pastable(commands: Sequence[str]) -> list[str]:
    """Commands as they are, but a folder of a hundred characters is said once, as ``$P``."""
    folders = {above for command in commands for match in _LONG_PATH.finditer(command)
               for above in _folders(match[0])}  # fmt: skip
    saved = {one: (sum(len(_unquoted(one).findall(c)) for c in commands) - 1) * len(one)
             for one in folders}  # fmt: skip
    most = max(folders, key=lambda one: (saved[one], len(one)), default="")
    if not most:
        return list(commands)
    return [f"P={most}", *(_unquoted(most).sub("$P", command) for command in commands)]


def _folders(path: str) -> Iterator[str]:
    """The path and the folders above it that are long enough."""
    while len(path) >= _PATH_LONG:
        yield path
        path = path.rpartition("/")[0]


def _unquoted(path: str) -> re.Pattern[str]:
    """Where the shell would put it in: not inside of quotes, and not as part of a name."""
    return re.compile(rf"(?<![^\s=]){re.escape(path)}(?![\w.:@-])")


def _listed(label: str, commands: Sequence[str]) -> Iterator[str]:
    """Commands are never wrapped: they are there to be copied."""
    for number, command in enumerate(commands):
        yield (label if not number else _INDENT) + plain(command)


def _evidence_lines(evidence: "Sequence[Evidence]", paper: Console) -> Iterator[str]:
    folder = _long_folder([item.source for item in evidence])
    for number, item in enumerate(evidence):
        label = "  seen    " if not number else _INDENT
        source = plain(item.source.replace(folder, ".../") if folder else item.source)
        yield from _evidence_row(label, item, source, paper)
    if folder:
        for line in paper.wrap(f".../ is {folder}", _INDENT + "  ", _INDENT):
            yield paper.paint(line, "dim")


def _evidence_row(label: str, item: "Evidence", source: str, paper: Console) -> Iterator[str]:
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


def shown_value(item: "Evidence") -> str:
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
    judged: "Sequence[Judged]",
    unseen: "Sequence[NotSeen]",
    window_seconds: float | None,
    paper: Console,
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
        yield from paper.wrap(nothing_fires(judged))
    yield from could_not_see(unseen, paper)
    yield ""
    muted = len({item.id for item in judged if item.muted is not None})
    window = (
        "no window, so no rates" if window_seconds is None else f"{window_seconds:.1f} s window"
    )
    yield from paper.wrap(
        f"{rules} rules: {tally['fires']} fire, {tally['quiet']} quiet, {tally['blind']} blind, "
        f"{muted} muted; {window}."
    )


def nothing_fires(judged: "Sequence[Judged]") -> str:
    """That nothing fires, said of the rules alone that could look; where most could not, that
    comes first.
    """
    looked, rules = rules_that_looked(judged)
    if not looked:
        return "Nothing is known: no rule could look."
    if looked == rules:
        return f"Nothing fires now. {counted(rules, 'rule')} looked."
    if 2 * looked < rules:
        return f"Only {looked} of {rules} rules could look; in those nothing fires now."
    return f"Nothing fires now in the {looked} of {rules} rules that could look."


def rules_that_looked(judged: "Sequence[Judged]") -> tuple[int, int]:
    """How many rules saw all that they need, and of how many; muted ones are left out."""
    live = [item for item in judged if item.muted is None]
    rules = {item.id for item in live}
    blind = {item.id for item in live if item.finding.verdict == "blind"}
    return len(rules - blind), len(rules)


def could_not_see(unseen: "Sequence[NotSeen]", paper: Console) -> Iterator[str]:
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
