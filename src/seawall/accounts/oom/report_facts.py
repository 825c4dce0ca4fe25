# SPDX-License-Identifier: Apache-2.0
"""One report with everything that follows from it by arithmetic; no words yet."""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seawall.accounts.oom.badness import Formula, formula_named, formula_of
from seawall.accounts.oom.domain import Domain, domain_of
from seawall.accounts.oom.group_use import GroupUse, group_use
from seawall.accounts.oom.log_residual import Residual, residual_of
from seawall.accounts.oom.page_size import page_size_of
from seawall.accounts.oom.request import Request, request_of
from seawall.accounts.oom.scores import Score, Scores, score
from seawall.accounts.oom.stand_in import StandIn, stand_in
from seawall.accounts.oom.zones import ZoneState, zone_states
from seawall.cgroup_paths import CgroupPlace, place_of
from seawall.problems import UsageProblem
from seawall.readings.oom_log.oom_report import Kill, OomReport
from seawall.words import size

if TYPE_CHECKING:
    from seawall.readings.container_files import ContainerFiles

_EPOCH_LEAST: Final = 1e9
"""No machine has run for 31 years: such a number counts from 1970."""
_place_of: Final = lru_cache(maxsize=256)(place_of)
"""Thousands of kills are of a few cgroups."""


class Hints(NamedTuple):
    """What the caller knows beyond the log."""

    kernel: str | None = None
    """A release: overrides what the log says or does not say."""
    page_bytes: int | None = None
    """Overrides what the log shows."""
    host_page_bytes: int | None = None
    """Of the machine whose log it is: used where the log shows none."""
    host_kernel: str | None = None
    """The same for the release."""
    files: "ContainerFiles | None" = None
    """Names of the machine's containers."""
    booted_unix_seconds: float | None = None
    """When the clock of the machine's log began."""
    host_swap_bytes: int | None = None
    """SwapTotal of the machine: used where the log does not print it."""


class Owner(NamedTuple):
    """Whose memory it was: what the cgroup's path tells, and names if the machine has them."""

    path: str
    place: CgroupPlace
    namespace: str | None
    pod: str | None
    container: str | None

    @property
    def name(self) -> str:
        """In the form of a WORKLOAD where names are known; else what the path tells."""
        place = self.place
        if self.namespace and self.pod:
            return "/".join(filter(None, (self.namespace, self.pod, self.container)))
        if place.container_id:
            return f"container:{place.container_id[:12]}"
        if place.machine:
            return f"{place.runtime}:{place.machine}"
        if place.pod_uid:
            return f"pod {place.pod_uid}"
        return f"unit:{place.unit}" if place.unit else place.cgroup


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """A report and what follows from it."""

    report: OomReport
    kernel: str | None
    page_bytes: int | None
    page_source: str
    """Where the page size was seen; empty when it is not known."""
    formula: Formula | None
    domain: Domain
    scores: Scores
    request: Request | None
    use: GroupUse | None
    zones: tuple[ZoneState, ...]
    residual: Residual | None
    limit_owner: Owner | None
    """Of the cgroup whose limit was hit."""
    task_owner: Owner | None
    """Of the chosen process."""
    asker_owner: Owner | None
    """Of the process that asked, by its cpuset; runtimes give every container one."""

    at_unix_seconds: float | None
    """When; None where the log's own time does not tell it without a time zone."""
    free_before_bytes: int | None = None
    """Free in the whole machine by the report just before, for one that does not say it."""

    @property
    def is_domain_known(self) -> bool:
        """Whether the log tells if the machine ran out or a limit was hit: a lone first line
        does not, nor does ``Killed process`` of kernels up to 5.0, which say it of both.
        """
        report, request = self.report, self.request
        if report.kind != "global":
            return True
        told = (report.mem_info, report.constraint, report.choice)
        if any(part is not None for part in told) or report.no_killable:
            return True
        if report.says_out_of_memory or report.trace_domain is not None:
            return True
        if any(kill.oom_score_adj is not None for kill in report.kills):
            return True  # 5.4+: a cgroup's kill says so before it
        if report.panic and all(kill.pid != 1 for kill in report.kills):
            return True
        return request is not None and not request.may_be_charge

    @property
    def stand_in(self) -> StandIn | None:
        """Who was killed where another pid was chosen."""
        return stand_in(self.report)

    @property
    def chosen_pid(self) -> int | None:
        """Whom the kernel picked; a child or a whole cgroup may have died for it."""
        report = self.report
        if report.choice is not None:
            return report.choice.pid
        return report.kills[0].pid if report.kills else None

    @property
    def chosen(self) -> Score | None:
        """Its row of the table; of the killed process where the pid is a thread of it."""
        other = self.stand_in
        if other is not None and other.kin == "thread":
            return self.scores.of(other.kill.pid)
        return self.scores.of(self.chosen_pid)

    @property
    def chosen_comm(self) -> str:
        """Its name; empty when nobody was chosen."""
        report = self.report
        if report.choice is not None:
            return report.choice.comm
        return report.kills[0].comm if report.kills else ""

    @property
    def limit_bytes(self) -> int | None:
        """Of the memory, or of memory and swap where that is the only one."""
        report = self.report
        counters = (report.memory, report.memory_swap)
        limits = [c.limit_bytes for c in counters if c is not None]
        return next((limit for limit in limits if limit is not None), None)

    @property
    def returned_bytes(self) -> int | None:
        """What the kills gave back, in RAM and in swap, as far as the log tells: less what
        the reaper left, and no more of a cgroup's RAM than was charged to it.
        """
        known = [(kill, self.freed_bytes(kill)) for kill in self.report.kills]
        parts = [(kill, part) for kill, part in known if part is not None]
        if not parts:
            return None
        ram, charged = sum(part for _, part in parts), self.charged_bytes
        return min(ram, charged or ram) + sum(self.swapped_bytes(kill) for kill, _ in parts)

    @property
    def charged_bytes(self) -> int | None:
        """RAM that counted against the limit; None where no limit was hit, or it is not told."""
        report = self.report
        return report.memory.usage_bytes if report.kind == "memcg" and report.memory else None

    @property
    def unreaped_pids(self) -> frozenset[int]:
        """Whom the OOM reaper gave up on: when their memory came back is not told."""
        return frozenset(self.report.unable_to_reap)

    def left_bytes(self, kill: Kill) -> int:
        """Private memory that the reaper left behind, by its last line about the process."""
        found = [reaped for reaped in self.report.reaped if reaped.pid == kill.pid]
        return (found[-1].anon_rss_bytes or 0) if found else 0

    def freed_bytes(self, kill: Kill) -> int | None:
        """What a kill gave back of RAM; None: no sizes, or the reaper could not reap it."""
        held = freed_bytes(kill)
        if held is None or kill.pid in self.unreaped_pids:
            return None
        return max(0, held - self.left_bytes(kill))

    def swapped_bytes(self, kill: Kill) -> int:
        """What a killed process had in swap, by its row of the table."""
        row = self.scores.of(kill.pid)
        return (row.task.swapents_pages or 0) * (self.page_bytes or 0) if row else 0

    def bytes_of(self, pages: int) -> int | None:
        """Pages of the kernel that wrote it, in bytes."""
        return None if self.page_bytes is None else pages * self.page_bytes

    def holds(self, row: Score) -> str:
        """What a process held, in RAM and in swap; its page tables are little beside it."""
        swap = row.task.swapents_pages
        more = f" and {self.size_of(swap)} in swap" if swap else ""
        return self.size_of(row.task.rss_pages) + more

    def size_of(self, pages: int) -> str:
        """The same in words; in pages where the page size is not known."""
        if self.page_bytes is None:
            return f"{pages:,} pages"
        return size(pages * self.page_bytes)


def freed_bytes(kill: Kill) -> int | None:
    """Private memory and page tables of one kill; its file pages are cache all the same."""
    if kill.anon_rss_bytes is None:
        return None
    return kill.anon_rss_bytes + (kill.pgtables_bytes or 0)


def facts_of(
    report: OomReport, hints: Hints | None = None, free_before_bytes: int | None = None
) -> ReportFacts:
    """All that can be computed; UsageProblem for a ``--kernel`` that is none."""
    hints = hints or Hints()
    page, source = _page(report, hints)
    formula = _formula(report, hints)
    domain = domain_of(report, page, hints.host_swap_bytes)
    request = request_of(report, page)
    return ReportFacts(
        report=report,
        kernel=hints.kernel or report.kernel or hints.host_kernel,
        page_bytes=page,
        page_source=source,
        formula=formula,
        domain=domain,
        scores=score(report, formula, domain, page),
        request=request,
        use=group_use(report),
        zones=tuple(zone_states(report, request, page)),
        residual=residual_of(report, page),
        limit_owner=_owner(report.oom_memcg or _stats_path(report), hints.files),
        task_owner=_owner(report.task_memcg, hints.files),
        at_unix_seconds=_moment(report.at, hints.booted_unix_seconds),
        asker_owner=_owner(_from_cpuset(report.cpuset), hints.files),
        free_before_bytes=free_before_bytes,
    )


def _formula(report: OomReport, hints: Hints) -> Formula | None:
    if hints.kernel is not None:
        return formula_named(hints.kernel)
    found = formula_of(report)
    if found is None and report.kernel is None and hints.host_kernel is not None:
        with suppress(UsageProblem):  # a release that is none
            return formula_named(hints.host_kernel)
    return found


def _page(report: OomReport, hints: Hints) -> tuple[int | None, str]:
    if hints.page_bytes is not None:
        return hints.page_bytes, "--page-size"
    found = page_size_of(report)
    if found is not None:
        return found
    if hints.host_page_bytes is not None:
        return hints.host_page_bytes, "this machine"
    return None, ""


def _moment(at: str | None, booted: float | None) -> float | None:
    """Of seconds since the start, or of seconds since 1970 as journalctl can write them."""
    if at is None or re.fullmatch(r"\s*\d{1,11}(?:\.\d{1,9})?\s*", at) is None:
        return None
    seconds = float(at)
    if seconds >= _EPOCH_LEAST:
        return seconds
    return None if booted is None else booted + seconds


def _stats_path(report: OomReport) -> str | None:
    """The first cgroup that statistics were printed for, where the limit's own is not told."""
    if report.kind != "memcg" or not report.memcg_stats:
        return None
    return report.memcg_stats[0].path


def _from_cpuset(cpuset: str | None) -> str | None:
    """The last part of a path, or ``/``; a path where it is a container's."""
    if not cpuset or cpuset == "/":
        return None
    path = "/" + cpuset.strip("/")
    return path if _place_of(path).kind == "container" else None


def _owner(path: str | None, files: "ContainerFiles | None") -> Owner | None:
    if path is None or not path.startswith("/"):
        return None
    place = _place_of(path)
    if files is None or place.is_delegated:
        return Owner(path, place, None, None, None)
    file = files.by_id.get(place.container_id or "")
    uid = place.pod_uid or (file.pod_uid if file else None)
    namespace, pod = files.pods.get(uid or "", (None, None))
    if file is not None and pod is None:
        namespace, pod = file.namespace, file.pod
    return Owner(path, place, namespace, pod, file.container if file else None)
