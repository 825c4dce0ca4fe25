# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain --json``: schema ``seawall.oom-explain/1``.

Written report by report, each on a line of its own: a log of a thousand is never held whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from seawall.accounts.oom.explanation import Explanation
from seawall.accounts.oom.guard_rows import is_of_guard
from seawall.accounts.oom.limit_role import role_of
from seawall.accounts.oom.oom_episode import Episodes, OomEpisode
from seawall.accounts.oom.report_facts import Owner, ReportFacts
from seawall.accounts.oom.scores import Score
from seawall.findings.blindness import NotSeen
from seawall.readings.oom_log.oom_report import Kill
from seawall.readings.reading import UNLIMITED
from seawall.views.document import not_seen_rows, render, taken_at, with_unread


class Tail:
    """What is known only when the log has been read to its end."""

    def __init__(self) -> None:
        self.reports_found = 0
        self.uncounted_then: Mapping[str, Any] | None = None
        """Who held uncounted memory then, where a black box was named."""
        self._episodes = Episodes()
        self._fields: dict[str, Any] = {}

    def counting(self, explanations: Iterable[Explanation]) -> Iterator[Explanation]:
        """The same explanations, each counted among the reports and in its episode as it passes."""
        for explanation in explanations:
            self.reports_found += 1
            self._episodes.add(explanation.facts, explanation.number)
            yield explanation

    def close(
        self, name: str, lines_read: int, unseen: Sequence[NotSeen],
        events: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        """The log was read; ``events``: what it tells beside the reports, where it was a file."""
        self._fields = {
            "log": name,
            "lines_read": lines_read,
            "reports_found": self.reports_found,
            "episodes_found": self._episodes.found,
            "episodes": [_episode(episode) for episode in self._episodes.last()],
            "could_not_see": not_seen_rows(unseen),
        }
        if self.uncounted_then is not None:
            self._fields["uncounted_then"] = self.uncounted_then
        if events is not None:
            self._fields["other_events"] = list(events)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The last fields of the document."""
        return self._fields


def stream(head: Mapping[str, Any], reports: Iterable[Explanation], tail: Tail) -> Iterator[str]:
    """The document in pieces; ``tail`` is read when the last report has been written."""
    yield render(head)[:-2] + ',\n  "reports": ['
    comma = "\n"
    for explanation in reports:
        yield f"{comma}    {render(report_document(explanation), indent=None)}"
        comma = ",\n"
    yield ("\n  " if comma != "\n" else "") + "],\n" + render(tail.fields)[2:]


def report_document(explanation: Explanation) -> dict[str, Any]:
    """One report: what the log says, and what follows from it."""
    facts = explanation.facts
    return {
        "number": explanation.number,
        **_said(facts),
        "tasks": [_task(row, facts) for row in facts.scores.rows],
        "killed": [_killed(kill) for kill in facts.report.kills],
        "verdict": explanation.verdict,
        "why": explanation.why,
        "advice": explanation.advice,
        "explanation": [
            f"{section.title}: {' '.join(section.sentences)}" for section in explanation.sections
        ],
        "anomalies": [
            {"id": anomaly.id, "text": anomaly.text} for anomaly in explanation.anomalies
        ],
    }


def _episode(episode: OomEpisode) -> dict[str, Any]:
    return with_unread(
        {
            "kind": episode.kind,
            "where": episode.where or (UNLIMITED if episode.kind not in (None, "memcg") else None),
            "first_report": episode.first_number,
            "last_report": episode.last_number,
            "first_at": episode.first_at,
            "last_at": episode.last_at,
            "seconds": episode.seconds,
            "reports": episode.reports,
            "kills": episode.kills,
            "killed": dict(episode.names.most_common()),
            "returned_bytes": episode.returned_bytes,
            "relief": episode.relief or None,
        }
    )


def _said(facts: ReportFacts) -> dict[str, Any]:
    report = facts.report
    residual, formula = facts.residual, facts.formula
    owner = facts.limit_owner or facts.task_owner
    is_memcg = report.kind == "memcg"
    none = UNLIMITED if facts.is_domain_known else None
    values = {
        "kind": report.kind if facts.is_domain_known else None,
        "kernel": facts.kernel,
        "at": report.at,
        "at_time": taken_at(facts.at_unix_seconds),
        "memcg": report.oom_memcg if is_memcg else none,
        "task_memcg": report.task_memcg,
        "workload": _workload(owner),
        "page_size": facts.page_bytes,
        "limit_bytes": _limit(facts),
        "total_pages": facts.domain.total_pages,
        "chosen_pid": facts.chosen_pid,
        "formula": formula.name if formula else None,
        "residual_bytes": residual.bytes if residual else None,
        "residual_error_bytes": residual.error_bytes if residual else None,
        "returned_bytes": facts.returned_bytes,
    }
    return {
        "panic": report.panic,
        "first_line": report.first_line,
        "last_line": report.last_line,
        "is_cut": report.is_cut or report.is_headless,
        **({"cut_text": dict(report.cut_text)} if report.cut_text else {}),
        **with_unread(values),
        "invoker": with_unread({"comm": report.invoker_comm, "pid": report.invoker_pid}),
        "request": _request(facts),
        "limit_of": _owner(facts.limit_owner),
        "task_of": _owner(facts.task_owner),
    }


def _workload(owner: Owner | None) -> str | None:
    """A cgroup inside a container is not the container."""
    if owner is None:
        return None
    role = role_of(owner)
    return role.subject if role.kind == "inside" else owner.name


def _limit(facts: ReportFacts) -> Any:
    """null: no limit is involved, or there is none."""
    report = facts.report
    if not facts.is_domain_known:
        return None
    if report.kind != "memcg":
        return UNLIMITED
    if report.memory is None and report.memory_swap is None:
        return None
    return UNLIMITED if facts.limit_bytes is None else facts.limit_bytes


def _request(facts: ReportFacts) -> dict[str, Any]:
    report, request = facts.report, facts.request
    return with_unread(
        {
            "what": request.what if request else None,
            "order": report.order,
            "bytes": request.size_bytes if request else None,
            "gfp_mask": report.gfp_mask,
            "gfp_flags": list(report.gfp_flags) or None,
        }
    )


def _owner(owner: Owner | None) -> dict[str, Any] | None:
    """The cgroup's owner as a JSON object; None where the report does not tell it."""
    if owner is None:
        return None
    place = owner.place
    role = role_of(owner)
    told = {
        "cgroup": owner.path, "name": owner.name, "role": role.kind,
        "meaning": role.meaning or None, "kind": place.kind, "pod_uid": place.pod_uid,
        "container_id": place.container_id or place.machine, "runtime": place.runtime,
        "qos": place.qos, "unit": place.unit, "namespace": owner.namespace, "pod": owner.pod,
        "container": owner.container,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value is not None}


def _task(row: Score, facts: ReportFacts) -> dict[str, Any]:
    task = row.task
    # null: the kernel does not look at it; absent: not recomputed.
    points = row.points if facts.scores.is_computed and row.is_killable else None
    never = not row.is_killable
    return {
        "pid": task.pid,
        "tgid": task.tgid,
        "uid": task.uid,
        "comm": task.comm,
        "rss_pages": task.rss_pages,
        **({"is_of_guard": True} if is_of_guard(task) else {}),
        **with_unread(
            {
                "points": UNLIMITED if never else points,
                "swap_pages": task.swapents_pages,
                "oom_score_adj": task.oom_score_adj,
                "held_bytes": facts.bytes_of(row.held_pages),
                "returns_bytes": facts.bytes_of(row.returns_pages),
            }
        ),
    }


def _killed(kill: Kill) -> dict[str, Any]:
    return {
        "pid": kill.pid,
        "comm": kill.comm,
        **({"is_cut": True} if kill.is_cut else {}),
        **with_unread(
            {
                "anon_rss_bytes": kill.anon_rss_bytes,
                "file_rss_bytes": kill.file_rss_bytes,
                "shmem_rss_bytes": kill.shmem_rss_bytes,
            }
        ),
    }
