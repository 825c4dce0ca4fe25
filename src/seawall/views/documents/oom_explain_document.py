# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain --json``.

Written report by report, each on a line of its own: a log of a thousand is never held whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.accounts.oom.explanation import Explanation
from seawall.accounts.oom.guard_rows import is_of_guard
from seawall.accounts.oom.limit_role import RoleKind, role_of
from seawall.accounts.oom.oom_episode import Episodes, OomEpisode
from seawall.accounts.oom.report_facts import Owner, ReportFacts
from seawall.accounts.oom.request import Request
from seawall.accounts.oom.scores import Score
from seawall.findings.blindness import NotSeen
from seawall.readings.oom_log.oom_report import Kill, Kind, OomReport
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.views.document import render
from seawall.views.documents.claims_shapes import CLAIM_SHAPES, CLAIMED
from seawall.views.documents.document_fields import (
    RECENT_EVENT,
    Document,
    known,
    object_of,
    shown,
    spread,
    unread,
)
from seawall.views.uncounted_moment import UncountedMoment

# --- one report ----------------------------------------------------------------------------


class RefusedRequest(NamedTuple):
    """The allocation that nobody could serve."""

    report: OomReport
    known: Request | None


class TaskRow(NamedTuple):
    """A row of the log's table."""

    score: Score
    facts: ReportFacts


def is_cut(facts: ReportFacts) -> bool:
    """A part that every kernel of this age prints is missing."""
    return facts.report.is_cut or facts.report.is_headless


def kind(facts: ReportFacts) -> Kind | None:
    """Absent: the log does not tell whether the machine ran out or a limit was hit."""
    return facts.report.kind if facts.is_domain_known else None


def memcg(facts: ReportFacts) -> str | Unlimited | None:
    """The cgroup whose limit was hit; null: no limit is involved."""
    if facts.report.kind == "memcg":
        return facts.report.oom_memcg
    return UNLIMITED if facts.is_domain_known else None


def workload(facts: ReportFacts) -> str | None:
    """Whose limit it was, else whose task was chosen."""
    owner = facts.limit_owner or facts.task_owner
    if owner is None:
        return None
    role = role_of(owner)  # a cgroup inside a container is not the container
    return role.subject if role.kind == "inside" else owner.name


def limit_bytes(facts: ReportFacts) -> int | Unlimited | None:
    """Null: no limit is involved, or there is none."""
    report = facts.report
    if not facts.is_domain_known:
        return None
    if report.kind == "memcg" and report.memory is None and report.memory_swap is None:
        return None
    limit = facts.limit_bytes if report.kind == "memcg" else None
    return UNLIMITED if limit is None else limit


def request(facts: ReportFacts) -> RefusedRequest:
    """What could not be had."""
    return RefusedRequest(facts.report, facts.request)


def role(owner: Owner) -> RoleKind:
    """What its limit means: container, pod, inside (a cgroup that a container made), allocatable
    (all pods of the node), qos, reserved, system, users, machines, machine, job, unit or cgroup.
    """
    return role_of(owner).kind


def meaning(owner: Owner) -> str | None:
    """That in a sentence, where the path alone misleads."""
    return role_of(owner).meaning or None


def container_id(owner: Owner) -> str | None:
    """Or a machine's name."""
    return owner.place.container_id or owner.place.machine


def tasks(facts: ReportFacts) -> list[TaskRow]:
    """The log's table, in its order."""
    return [TaskRow(row, facts) for row in facts.scores.rows]


def of_guard(row: TaskRow) -> bool | None:
    """Seawall's own, by its name and its oom_score_adj of -999; absent: it is not."""
    return is_of_guard(row.score.task) or None


def points(row: TaskRow) -> int | Unlimited | None:
    """By the formula named, in its unit; null: the kernel does not look at it (oom_score_adj
    -1000); absent: not recomputed.
    """
    if not row.score.is_killable:
        return UNLIMITED
    return row.score.points if row.facts.scores.is_computed else None


def held_bytes(row: TaskRow) -> int | None:
    """Resident, swapped and page tables."""
    return row.facts.bytes_of(row.score.held_pages)


def returns_bytes(row: TaskRow) -> int | None:
    """What its end gives back to RAM at most."""
    return row.facts.bytes_of(row.score.returns_pages)


def sentences(explanation: Explanation) -> list[str]:
    """Section by section."""
    return [f"{section.title}: {' '.join(section.sentences)}" for section in explanation.sections]


# --- the log -------------------------------------------------------------------------------


class LogEnd(NamedTuple):
    """What is known only when the log has been read to its end."""

    log: str
    """Where it was read: a file's name, stdin, /dev/kmsg, the journal."""
    lines_read: int
    reports_found: int
    """In the log; more than are in reports with --last or --report."""
    episodes_found: int
    """In the log; more than are in episodes where there are more than 100."""
    episodes: Sequence[OomEpisode]
    """Kills that belong together: of one limit, or of the machine, each at most 60 s after the one
    before it; the last 100 of the whole log, by their last report."""
    could_not_see: Sequence[NotSeen]
    uncounted_then: UncountedMoment | None
    """Who held uncounted memory when the last report was written, or at --at; only with --from
    BLACKBOX beside a FILE, and where the black box tells it."""
    other_events: Sequence[RecentEvent] | None
    """What a FILE tells beside OOM reports, newest first, of its last 8 MiB; absent where the log
    is no file."""


class ExplainedLog(NamedTuple):
    """The whole document."""

    reports: Sequence[Explanation]
    end: LogEnd


def where(episode: OomEpisode) -> str | Unlimited | None:
    """Whose limit; null: the machine or its nodes, no limit."""
    return episode.where or (UNLIMITED if episode.kind not in (None, "memcg") else None)


def killed(episode: OomEpisode) -> Mapping[str, int]:
    """How many of each name, of at most 64 names."""
    return dict(episode.names.most_common())


def residual_bytes(moment: UncountedMoment) -> int | None:
    """Uncounted memory; null: the black box lacks lines of /proc/meminfo."""
    return None if moment.ledger.missing else moment.ledger.residual_bytes


EXPLAIN: Final = Document(
    name="oom-explain",
    verb="seawall oom explain --json",
    about="The OOM reports of a kernel log, each explained. Additive within a major number; what "
    "the log does not tell is absent and named in its object's unread.",
    pages=(ExplainedLog,),
    shapes={
        ExplainedLog: (*shown("reports"), *spread("end")),
        Explanation: (
            *shown("number"),
            *spread("facts"),
            *shown("verdict why advice", {"explanation": sentences}, "anomalies"),
        ),
        ReportFacts: (
            *shown("panic first_line last_line", of="report"),
            *shown(is_cut),
            *known("cut_text=report.cut_text:filled"),
            *unread(kind, "kernel at=report.at at_time=at_unix_seconds:time", memcg),
            *unread("task_memcg=report.task_memcg", workload, "page_size=page_bytes", limit_bytes),
            *unread("total_pages=domain.total_pages chosen_pid formula=formula.name"),
            *unread("residual_bytes=residual.bytes residual_error_bytes=residual.error_bytes"),
            *unread("returned_bytes"),
            *shown("invoker=report", request, "limit_of=limit_owner task_of=task_owner"),
            *shown(tasks, "killed=report.kills"),
        ),
        OomReport: unread("comm=invoker_comm pid=invoker_pid"),
        RefusedRequest: (
            *unread("what=known.what order=report.order bytes=known.size_bytes"),
            *unread("gfp_mask=report.gfp_mask gfp_flags=report.gfp_flags:filled"),
        ),
        Owner: (
            *shown("cgroup=path name", role),
            *known(meaning),
            *shown("kind=place.kind"),
            *known("pod_uid=place.pod_uid", container_id),
            *known("runtime qos unit", of="place"),
            *known("namespace pod container"),
        ),
        TaskRow: (
            *shown("pid tgid uid comm rss_pages", of="score.task"),
            *known({"is_of_guard": of_guard}),
            *unread(points, "swap_pages=score.task.swapents_pages"),
            *unread("oom_score_adj=score.task.oom_score_adj", held_bytes, returns_bytes),
        ),
        Kill: (
            *shown("pid comm"),
            *known("is_cut:filled"),
            *unread("anon_rss_bytes file_rss_bytes shmem_rss_bytes"),
        ),
        LogEnd: (
            *shown("log lines_read reports_found episodes_found episodes could_not_see"),
            *known("uncounted_then other_events"),
        ),
        OomEpisode: (
            *unread("kind", where),
            *shown("first_report=first_number last_report=last_number"),
            *unread("first_at last_at seconds"),
            *shown("reports kills", killed),
            *unread("returned_bytes relief:filled"),
        ),
        RecentEvent: RECENT_EVENT,
        UncountedMoment: (
            *shown("at=unix_seconds:time before_seconds:3 of total_bytes=ledger.total_bytes"),
            *shown(residual_bytes, "residual_error_bytes=ledger.residual_error_bytes"),
            *CLAIMED,
        ),
        **CLAIM_SHAPES,
    },
)

# --- written piece by piece ----------------------------------------------------------------


class ReportTally:
    """Counts reports and episodes while they pass."""

    def __init__(self) -> None:
        self.reports_found = 0
        self.uncounted_then: UncountedMoment | None = None
        """Where a black box was named."""
        self.fields: dict[str, Any] = {}
        """The last ones of the document, when it is closed."""
        self._episodes = Episodes()

    def counting(self, explanations: Iterable[Explanation]) -> Iterator[Explanation]:
        """The same explanations, each counted among the reports and in its episode as it passes."""
        for explanation in explanations:
            self.reports_found += 1
            self._episodes.add(explanation.facts, explanation.number)
            yield explanation

    def close(
        self, name: str, lines_read: int, unseen: Sequence[NotSeen],
        events: Sequence[RecentEvent] | None = None,
    ) -> None:  # fmt: skip
        """The log was read; ``events``: what it tells beside the reports, where it was a file."""
        end = LogEnd(
            name, lines_read, self.reports_found, self._episodes.count, self._episodes.last(),
            unseen, self.uncounted_then, events,
        )  # fmt: skip
        self.fields = object_of(end, EXPLAIN.shapes)


def stream(
    head: Mapping[str, Any], reports: Iterable[Explanation], tail: ReportTally
) -> Iterator[str]:
    """The document in pieces; ``tail`` is read when the last report has been written."""
    yield render(head)[:-2] + ',\n  "reports": ['
    comma = "\n"
    for explanation in reports:
        yield f"{comma}    {render(object_of(explanation, EXPLAIN.shapes), indent=None)}"
        comma = ",\n"
    yield ("\n  " if comma != "\n" else "") + "],\n" + render(tail.fields)[2:]
