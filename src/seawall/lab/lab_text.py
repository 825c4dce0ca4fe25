# SPDX-License-Identifier: Apache-2.0
"""A run in words: what it will do, how it goes, what happened."""

import shlex
from collections.abc import Iterator, Sequence

from seawall.findings.words import count, duration, size
from seawall.lab.disk import Held
from seawall.lab.home import Home
from seawall.lab.leftovers import Left
from seawall.lab.plan import Plan
from seawall.lab.report import Moment, Report
from seawall.views.terminal import Paper, plain


def deed(plan: Plan) -> str:
    """What the processes do, in half a sentence."""
    each = size(plan.each_bytes)
    if plan.kind == "hog":
        steps = f", {size(plan.step_bytes)} each second" if plan.step_bytes else ""
        return f"one process takes {each} of anonymous memory{steps}"
    if plan.kind == "swarm":
        return (
            f"{count(plan.processes)} processes take {each} of anonymous memory each, "
            f"{size(plan.wanted_bytes)} together"
        )
    if plan.kind == "fill":
        return f"one process writes a file of {each} into {plan.folder} and keeps it open"
    speed = f"held to {count(plan.iops)} reads a second" if plan.iops else "at its own speed"
    return (
        f"{count(plan.processes)} programs with {each} of code each ({size(plan.wanted_bytes)} on "
        f"the disk of {plan.folder}, {speed}) run in turn"
    )


def introduction(plan: Plan, path: str, paper: Paper) -> Iterator[str]:
    """Before it starts."""
    text = (
        f"{deed(plan)}, in a cgroup of its own with a limit of {size(plan.limit_bytes)}, for "
        f"{duration(plan.seconds)} at most. Then all of it is removed; ctrl-C ends it sooner."
    )
    yield from paper.wrap(text, indent="  ", first=f"lab {plan.kind}: ")
    yield from paper.wrap(f"seawall why ; seawall pods {shlex.quote(path)}", "  ", "watch it: ")


def plan_lines(plan: Plan, home: Home, path: str, paper: Paper) -> Iterator[str]:
    """``--dry-run``."""
    yield f"lab {plan.kind} would do this, and has done nothing:"
    for number, step in enumerate(steps(plan, home, path), start=1):
        yield from paper.wrap(step, "     ", f"{number:3}. ")


def steps(plan: Plan, home: Home, path: str) -> Iterator[str]:
    """One sentence for each step, in order."""
    yield "remove what runs that were killed have left (as seawall lab clean does)"
    limit = "memory.limit_in_bytes" if home.version == 1 else "memory.max"
    yield f"make the cgroup {path} (version {home.version}) in {', '.join(_parents(home))}"
    swap = ", swap as the cgroup above allows" if plan.swap else ", no swap"
    yield f"set {limit} to {plan.limit_bytes} ({size(plan.limit_bytes)}){swap}; read it back"
    if plan.killer_off:
        yield "set memory.oom_control to 1: nobody is killed, what cannot be had is waited for"
    if "pids" in home.parents:
        yield f"set pids.max to {plan.pids_limit}"
    for name, why in home.unusable.items():
        if name == "pids" or plan.iops:
            yield f"go on without the {name} controller: {why}"
    if plan.iops:
        yield f"hold its reads from the disk below {plan.folder} to {count(plan.iops)} a second"
    who = "" if plan.uid is None else f" as user {plan.uid}"
    if plan.file_bytes:
        yield f"open a file without a name in {plan.folder}, {size(plan.file_bytes)} at most"
    yield f"start {count(plan.processes)} processes{who}; each enters the cgroup and checks that"
    yield f"{deed(plan)}{', the killed are replaced' if plan.respawn else ''}"
    if plan.beside_bytes > 1 << 20:
        yield (
            f"beside the limit the kernel counts up to {size(plan.beside_bytes)} of page tables "
            "and stacks where this was started"
        )
    yield f"end after {duration(plan.seconds)}: kill them, remove the cgroup, look that it is gone"


def _parents(home: Home) -> Sequence[str]:
    return tuple(dict.fromkeys(home.parents.values()))


def table_head(plan: Plan) -> str:
    """Above the rows."""
    head = "  time      usage       anon      cache   limit hits  OOM kills   alive"
    return head + "   a turn" if plan.kind == "thrash" else head


def row(plan: Plan, now: Moment) -> str:
    """One moment in one line."""
    measured = now.measured
    cells = (
        f"{now.seconds:4.0f} s", f"{_size(measured.usage):>9}", f"{_size(measured.anon):>9}",
        f"{_size(measured.file):>9}", f"{_count(measured.limit_hits):>11}",
        f"{_count(measured.oom_kills):>9}", f"{now.alive:6}",
    )  # fmt: skip
    line = "  ".join(cells)
    if plan.kind == "thrash":
        turn = now.last_turn_seconds
        line += "        -" if turn is None else f"  {turn:5.2f} s"
    return line


def _size(number: int | None) -> str:
    return "?" if number is None else size(number)


def _count(number: int | None) -> str:
    return "?" if number is None else count(number)


def report_lines(report: Report, paper: Paper) -> Iterator[str]:
    """At the end."""
    plan = report.plan
    how = {
        "time": "the time is over", "nobody_left": "nobody is left",
        "interrupted": "interrupted",
    }[report.ended]  # fmt: skip
    took = duration(report.seconds) if report.seconds >= 10 else f"{report.seconds:.1f} s"
    yield f"After {took}, {how}:"
    for words in happened(report):
        yield from paper.wrap(words, "    ", "  - ")
    for note in dict.fromkeys(report.notes):
        yield from paper.wrap(f"note: {note}", "    ", "  - ")
    yield from paper.wrap("; ".join(tries(report)), "    ", "ask Seawall: ")
    if report.left:
        yield from paper.wrap(
            f"{', '.join(report.left)}; try: seawall lab clean", "  ", f"{NOT_GONE} "
        )
    else:
        yield from paper.wrap(f"all removed, checked: {plain(report.path)}", "  ")
    if plan.kind == "hog" and not report.killed and report.ended == "time" and _got_all(report):
        yield "(it got all that it wanted: a larger --size or a lower --limit brings the kill)"


NOT_GONE = "NOT REMOVED:"


def _got_all(report: Report) -> bool:
    return report.last.done_bytes >= report.plan.wanted_bytes


def happened(report: Report) -> Iterator[str]:
    """Numbers first."""
    plan, last = report.plan, report.last.measured
    about = "at least " if report.peak_is_sampled else ""
    limit = size(plan.limit_bytes)
    yield (
        f"{_size(report.peak_bytes)} of {limit} was the peak ({about}by the kernel's count); the "
        f"limit was reached {_count(last.limit_hits)} times"
    )
    kills = "not told by this kernel" if last.oom_kills is None else count(last.oom_kills)
    yield (
        f"OOM kills in the cgroup: {kills}; of {count(report.started)} processes "
        f"{count(report.killed)} were killed, {count(report.survived)} lived to the end"
        + (f", {count(report.failed)} failed" if report.failed else "")
        + (f", {count(report.replaced)} were replacements" if report.replaced else "")
    )
    if report.hung_seconds:
        yield (
            f"it hung: for {duration(report.hung_seconds)} the cgroup was full, somebody waited "
            "for memory, and nothing was taken and nobody killed"
        )
    if plan.kind == "fill":
        yield (
            f"{_size(report.last.done_bytes)} were written; {_size(last.file)} of them are page "
            "cache of the cgroup: that can be dropped, and is no leak"
        )
    if plan.kind == "thrash":
        yield from _thrash(report)


def _thrash(report: Report) -> Iterator[str]:
    last, held = report.last, report.held
    if held and held.iops:
        yield f"the disk {held.device} was held to {count(held.iops)} reads a second"
    elif held:
        yield f"the disk could not be held slow here: {held.why_not}"
    if last.last_turn_seconds is None:
        yield "no program came to the end of its code"
        return
    yield (
        f"{count(last.turns)} turns; one of {size(report.plan.each_bytes)} took "
        f"{last.last_turn_seconds:.2f} s; from memory it would be milliseconds"
    )
    if last.measured.read_again is not None:
        yield f"{count(last.measured.read_again)} pages had been pushed out and were read again"


def tries(report: Report) -> Iterator[str]:
    """Commands that tell about it afterwards."""
    yield "seawall why"
    if report.killed:
        yield "seawall oom explain --live"


def clean_lines(found: Sequence[Left], paper: Paper, *, dry: bool = False) -> Iterator[str]:
    """``seawall lab clean``; ``dry``: what would be removed."""
    if not found:
        yield "nothing of a dead run is here"
    for left in found:
        words = "would be removed" if dry else "removed"
        if not (left.is_removed or dry):
            words = f"NOT removed ({left.why})"
        yield from paper.wrap(f"{words}: {left.path}", "  ")


def slow_words(held: Held) -> str:
    """Before the run: that the disk is not held."""
    return f"the disk cannot be held slow here: {held.why_not}; it runs as fast as it is"
