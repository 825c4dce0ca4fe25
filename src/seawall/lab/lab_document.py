# SPDX-License-Identifier: Apache-2.0
"""``seawall lab --json``: a run, the plan of one, or what was cleaned."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.lab import lab_text
from seawall.lab.cgroup_parent import CgroupParent
from seawall.lab.leftovers import Leftover
from seawall.lab.plan import Plan
from seawall.lab.run_report import Available, LabMoment, LabReport
from seawall.views.documents.document_fields import Document, shown, unread

What: TypeAlias = Literal["run", "plan", "clean"]


class LabRun(NamedTuple):
    """A run that has ended."""

    report: LabReport
    leftovers: Sequence[Leftover]
    """Clean: what dead runs had left, everywhere; run: the same below its own parent, before it
    began."""


class PlannedRun(NamedTuple):
    """The steps of a run, of which nothing was done."""

    plan: Plan
    home: CgroupParent
    cgroup: str


class LabCleaning(NamedTuple):
    """What earlier runs left."""

    dry_run: bool
    """Clean: only looked at."""
    leftovers: Sequence[Leftover]


class UsagePeak(NamedTuple):
    """The cgroup's highest usage."""

    bytes: int | None
    sampled: bool
    """This kernel tells no peak (before 6.0 on v2): the highest that was seen stands here."""


def peak(run: LabRun) -> UsagePeak:
    """The cgroup's highest usage."""
    return UsagePeak(run.report.peak_bytes, run.report.peak_is_sampled)


def limit_reached(run: LabRun) -> bool:
    """Whether the kernel counted a hit of the limit."""
    report = run.report
    return (report.peak_bytes or 0) > 0 and bool(report.last.measured.limit_hits)


def commands(run: LabRun) -> Iterator[str]:
    """Commands that tell about it."""
    return lab_text.tries(run.report)


def removed(run: LabRun) -> bool:
    """Everything that was made is gone, as was looked at."""
    return not run.report.left


def steps(page: PlannedRun) -> Iterator[str]:
    """What would be done, in order."""
    return lab_text.steps(page.plan, page.home, page.cgroup)


def _run(_page: LabRun) -> What:
    return "run"


def _plan(_page: PlannedRun) -> What:
    return "plan"


def _clean(_page: LabCleaning) -> What:
    return "clean"


LAB: Final = Document(
    name="lab",
    verb="seawall lab --json",
    about="An incident on demand, inside a limit: what was done and what happened (`what` is run), "
    "what would be done (plan), or what was removed (clean). Additive within a major number; what "
    "could not be read is absent and named in its object's unread.",
    window="how long the run took; null when nothing ran",
    pages=(LabRun, PlannedRun, LabCleaning),
    shapes={
        LabRun: (
            *shown({"what": _run}),
            *shown("plan cgroup=path cgroup_version=version", of="report"),
            *shown("leftovers ended=report.ended seconds=report.seconds:3", peak, limit_reached),
            *shown("processes=report"),
            *shown("done_bytes available hung_seconds:3 disk=held last moments notes", of="report"),
            *shown({"try": commands}, removed, "left=report.left"),
        ),
        PlannedRun: (
            *shown({"what": _plan}, "plan cgroup cgroup_version=home.version", steps),
        ),
        LabCleaning: shown({"what": _clean}, "dry_run leftovers"),
        UsagePeak: (*unread("bytes"), *shown("sampled")),
        LabReport: shown("started killed failed replaced survived"),
        Leftover: shown("path removed=is_removed why"),
        Available: unread("before least after", unit="bytes"),
        LabMoment: (
            *shown("seconds:3 alive killed waiting done_bytes turns last_turn_seconds"),
            *unread("usage anon file dirty droppable", of="measured", unit="bytes"),
            *unread("limit_hits oom_kills major_faults", of="measured"),
            *unread("read_again_pages=measured.read_again"),
        ),
    },
)  # fmt: skip
