# SPDX-License-Identifier: Apache-2.0
"""A run in words: what it will do, how it goes, what happened."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.lab.cgroup_parent import CgroupParent
from seawall.lab.delegation import OUTSIDE
from seawall.lab.leftovers import ONLY_LOOKED, Leftover
from seawall.lab.notes import state_folder
from seawall.lab.plan import UNCOUNTED, Kind, Plan
from seawall.lab.run_report import LabMoment, LabReport
from seawall.lab.worker import NICE
from seawall.views.terminal import Console, plain
from seawall.words import count, duration, size


def deed(plan: Plan) -> str:
    """What the processes do, in half a sentence."""
    each = size(plan.each_bytes)
    if plan.kind in UNCOUNTED:
        return uncounted_deed(plan)
    if plan.kind == "hog":
        steps = f", {size(plan.step_bytes)} each second" if plan.step_bytes else ""
        return f"one process takes {each} of anonymous memory{steps}"
    if plan.kind == "swarm":
        return (
            f"{processes(plan.processes)} {'takes' if plan.processes == 1 else 'take'} {each} of "
            f"anonymous memory{'' if plan.processes == 1 else ' each'}, "
            f"{size(plan.wanted_bytes)} together"
        )
    if plan.kind == "fill":
        return f"one process writes a file of {each} into {plan.folder} and keeps it open"
    speed = f"held to {count(plan.iops)} reads a second" if plan.iops else "at its own speed"
    return (
        f"{count(plan.processes)} programs with {each} of code each ({size(plan.wanted_bytes)} on "
        f"the disk of {plan.folder}, {speed}) run in turn"
    )


def introduction(plan: Plan, path: str, paper: Console) -> Iterator[str]:
    """Lines before a run starts: what it does, its limit, how long, and how to watch it."""
    text = (
        f"{deed(plan)}, in a cgroup of its own with a limit of {size(plan.limit_bytes)}, for "
        f"{duration(plan.seconds)} at most. Then all of it is removed; ctrl-C ends it sooner."
    )
    yield from paper.wrap(text, indent="  ", first=f"lab {plan.kind}: ")
    if plan.kind in UNCOUNTED:
        yield from uncounted_beside(plan, path, paper)
        return
    yield from paper.wrap(f"seawall why ; seawall pods {shlex.quote(path)}", "  ", "watch it: ")


def plan_lines(plan: Plan, home: CgroupParent, path: str, paper: Console) -> Iterator[str]:
    """Lines of ``--dry-run``: the steps that the run would take, numbered."""
    yield f"lab {plan.kind} would do this, and has done nothing:"
    for number, step in enumerate(steps(plan, home, path), start=1):
        yield from paper.wrap(step, "     ", f"{number:3}. ")


def steps(plan: Plan, home: CgroupParent, path: str) -> Iterator[str]:
    """One sentence for each step, in order."""
    yield (
        f"remove what runs that were killed have left in {', '.join(_parents(home))}, and their "
        "notes; no process is ever killed for that"
    )
    if folder := state_folder():
        yield f"write a note of this run into {folder}, locked as long as it goes on"
    yield from _cgroup_steps(plan, home, path)
    for name, why in home.unusable.items():
        if name == "pids" or plan.iops:
            yield f"go on without the {name} controller: {why}"
    if plan.file_bytes:
        yield f"open a file without a name in {plan.folder}, {size(plan.file_bytes)} at most"
    if plan.iops:
        yield f"hold its reads from the disk below {plan.folder} to {count(plan.iops)} a second"
    yield from _process_steps(plan)
    if plan.kind == "rings":
        yield "it does that in a network namespace of its own, as a pod does, if it may make one"
    if plan.uncounted_bytes:
        yield (
            "no limit holds that memory: it stops when MemAvailable would fall below half of what "
            "it was, and the end of the process gives all of it back"
        )
    if plan.beside_bytes > 1 << 20:
        yield (
            f"beside the limit the kernel counts up to {size(plan.beside_bytes)} of page tables "
            "and stacks where this was started"
        )
    yield (
        f"end after {duration(plan.seconds)}: kill them, remove the cgroup and the note, look that "
        "they are gone; a process that is still there a second later ends itself"
    )


def _cgroup_steps(plan: Plan, home: CgroupParent, path: str) -> Iterator[str]:
    if home.delegated:
        yield (
            f"make a second cgroup beside it, {path}{OUTSIDE}-..., move this program into it, and "
            f"write to {home.memory}/cgroup.subtree_control what of {', '.join(home.parents)} is "
            "not there; at the end that is taken back"
        )
    yield f"make the cgroup {path} (version {home.version}) in {', '.join(_parents(home))}"
    limit = "memory.limit_in_bytes" if home.version == 1 else "memory.max"
    yield f"set {limit} to {plan.limit_bytes} ({size(plan.limit_bytes)}); read it back"
    yield _swap_step(plan, home)
    if plan.killer_off:
        yield "set memory.oom_control to 1: nobody is killed, what cannot be had is waited for"
    if "pids" in home.parents:
        yield f"set pids.max to {plan.pids_limit}"


def _swap_step(plan: Plan, home: CgroupParent) -> str:
    name = "memory.memsw.limit_in_bytes" if home.version == 1 else "memory.swap.max"
    if not plan.swap:
        return f"let nothing of it be swapped ({name})"
    if not plan.swap_bytes:
        return f"let nothing of it be swapped ({name}): this machine has no free swap"
    return f"let at most {size(plan.swap_bytes)} be swapped ({name})"


def _process_steps(plan: Plan) -> Iterator[str]:
    who = "" if plan.uid is None else f", becomes user {plan.uid}"
    subject = "it" if plan.processes == 1 else "each"
    yield (
        f"start {processes(plan.processes)}; {subject} gets nice {NICE}, enters the cgroup and "
        f"checks that, sets a negative oom_score_adj that it inherited to 0{who}"
    )
    yield f"{deed(plan)}{', the killed are replaced' if plan.respawn else ''}"


def processes(number: int) -> str:
    """A number of processes in words: ``1 process``, ``1,280 processes``."""
    return f"{count(number)} {'process' if number == 1 else 'processes'}"


def _parents(home: CgroupParent) -> Sequence[str]:
    return tuple(dict.fromkeys(home.parents.values()))


def table_head(plan: Plan) -> str:
    """The heading of the table whose rows ``row`` makes."""
    head = "  time      usage       anon      cache   limit hits  OOM kills   alive"
    if plan.kind in UNCOUNTED:
        return head.replace("  limit hits", "") + "      taken"
    return head + "   a turn" if plan.kind == "thrash" else head


def row(plan: Plan, now: LabMoment) -> str:
    """One moment in one line."""
    measured = now.measured
    cells = (
        f"{now.seconds:4.0f} s", f"{_size(measured.usage):>9}", f"{_size(measured.anon):>9}",
        f"{_size(measured.file):>9}",
        *(() if plan.kind in UNCOUNTED else (f"{_count(measured.limit_hits):>11}",)),
        f"{_count(measured.oom_kills):>9}", f"{now.alive:6}",
    )  # fmt: skip
    line = "  ".join(cells)
    if plan.kind == "thrash":
        turn = now.last_turn_seconds
        line += "        -" if turn is None else f"  {turn:5.2f} s"
    elif plan.kind in UNCOUNTED:
        line += f"  {size(now.done_bytes):>9}"
    return line


def _size(number: int | None) -> str:
    return "?" if number is None else size(number)


def _count(number: int | None) -> str:
    return "?" if number is None else count(number)


def report_lines(report: LabReport, paper: Console) -> Iterator[str]:
    """Lines when a run has ended: what happened, what to ask Seawall, what was removed."""
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


def _got_all(report: LabReport) -> bool:
    return report.last.done_bytes >= report.plan.wanted_bytes


def happened(report: LabReport) -> Iterator[str]:
    """What happened in a run, a sentence each; the numbers first."""
    plan, last = report.plan, report.last.measured
    about = "at least " if report.peak_is_sampled else ""
    limit = size(plan.limit_bytes)
    yield (
        f"{_size(report.peak_bytes)} of {limit} was the peak ({about}by the kernel's count); the "
        f"limit was reached {_count(last.limit_hits)} times"
    )
    kills = "not told by this kernel" if last.oom_kills is None else count(last.oom_kills)
    yield (
        f"OOM kills in the cgroup: {kills}; of {processes(report.started)} "
        f"{count(report.killed)} {'was' if report.killed == 1 else 'were'} killed, "
        f"{count(report.survived)} lived to the end"
        + (f", {count(report.failed)} failed" if report.failed else "")
        + (f", {count(report.replaced)} were replacements" if report.replaced else "")
    )
    if report.hung_seconds:
        yield (
            f"it hung: for {duration(report.hung_seconds)} the cgroup was full, somebody waited "
            "for memory, and nothing was taken and nobody killed"
        )
    if plan.kind in UNCOUNTED:
        yield from uncounted_happened(report)
    if plan.kind == "fill":
        yield from _filled(report)
    if plan.kind == "thrash":
        yield from _thrash(report)


def _filled(report: LabReport) -> Iterator[str]:
    measured = report.last.measured
    yield f"{size(report.done_bytes)} were written"
    if measured.droppable and report.done_bytes and not report.killed:
        more = f"; {size(measured.dirty)} more is on its way to the disk" if measured.dirty else ""
        yield (
            f"{size(measured.droppable)} of what the cgroup is charged with is clean cache of "
            f"files: that can be dropped, and is no leak{more}"
        )


def _thrash(report: LabReport) -> Iterator[str]:
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


def tries(report: LabReport) -> Iterator[str]:
    """Commands that tell about it afterwards."""
    yield "seawall why"
    if report.plan.kind in UNCOUNTED:
        yield "seawall memory"
    if report.killed:
        yield "seawall oom explain --live"


def clean_lines(found: Sequence[Leftover], paper: Console, *, dry: bool = False) -> Iterator[str]:
    """``seawall lab clean``; ``dry``: what would be removed."""
    if not found:
        yield "nothing of a dead run is here"
    for left in found:
        words = "removed"
        if dry:
            words = "would be removed" if left.why == ONLY_LOOKED else f"would stay: {left.why}"
        elif not left.is_removed:
            words = f"NOT removed: {left.why}"
        yield from paper.wrap(f"{words}: {plain(left.path)}", "  ")


# The words of ``rings``, ``egl``, ``cuda-host`` and ``cuda-managed``: what no limit counts.

_WHAT: Final[dict[Kind, str]] = {
    "rings": "of packet rings: uncounted memory",
    "egl": "of framebuffers and never frees one",
    "cuda-host": "of host memory pinned by the CUDA driver",
    "cuda-managed": "of managed memory of the CUDA driver, written on the host",
}
_SEEN: Final[dict[Kind, str]] = {
    "rings": "packet_set_ring in its stack, and a claim of class ring",
    "egl": "the driver's functions in its stack, and a claim of class surface",
    "cuda-host": "the driver's functions in its stack, and a claim of class pinned",
    "cuda-managed": "the driver's functions in its stack, and a claim of class managed",
}
SOFTWARE: Final = "this driver is software: its surfaces are counted"


def uncounted_deed(plan: Plan) -> str:
    """What the process does, in half a sentence."""
    speed = f", {size(plan.step_bytes)} each second" if plan.step_bytes else ", at once"
    return f"one process takes {size(plan.each_bytes)} {_WHAT[plan.kind]}{speed}"


def uncounted_beside(plan: Plan, path: str, paper: Console) -> Iterator[str]:
    """Before it starts: what to run beside it, and what to look for."""
    own = shlex.quote(path)
    if plan.driver:
        words = plain(plan.driver.name) + (f"; {SOFTWARE}" if plan.driver.is_software else "")
        yield from paper.wrap(words, "  ", "driver: ")
    yield from paper.wrap(
        f"sudo seawall memory --who --for 10 ; sudo seawall memory ; sudo seawall pods {own}",
        "  ", "beside it: ",
    )  # fmt: skip
    if plan.uncounted_bytes:
        yield from paper.wrap(
            f"`memory --who` names {plain(path)} while it takes, with {_SEEN[plan.kind]}; in "
            f"`pods` the cgroup counts far less than {size(plan.wanted_bytes)} and holds the rest "
            "as uncounted memory",
            "  ", "look for: ",
        )  # fmt: skip
    else:
        yield from paper.wrap(
            "`pods` counts all of it in the cgroup, and `memory --who` names nobody for it",
            "  ", "look for: ",
        )  # fmt: skip


def uncounted_happened(report: LabReport) -> Iterator[str]:
    """What was taken, who counts it, and whether it came back."""
    taken, counted = report.done_bytes, report.peak_bytes  # at the end it may be dead
    driver = report.plan.driver
    if driver and driver.is_software:
        yield f"{plain(driver.name)}: {SOFTWARE}"
    if counted is None:
        yield f"{size(taken)} were taken"
    elif taken and counted < taken / 2:
        yield (
            f"{size(taken)} were taken, and the cgroup counted {size(counted)} at most: no limit "
            "held this memory"
        )
    elif taken:
        yield (
            f"{size(taken)} were taken, and the cgroup counted {size(counted)} at most: this kind "
            "of memory is counted here"
        )
    else:
        yield "nothing was taken"
    available = report.available
    if available and available.before and available.least and available.after:
        still = max(0, available.before - available.after)
        yield (
            f"MemAvailable fell by {size(max(0, available.before - available.least))} at most, and "
            f"was {size(still)} below its beginning when all was removed (others move it too)"
        )
