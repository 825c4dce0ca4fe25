# SPDX-License-Identifier: Apache-2.0
"""OOM kills of each workload: in its cgroup and in those below it.

v2 counts a kill in every cgroup above the victim (memory.events, since 5.2; memory.events.local
beside it tells that it does).  v1 (memory.oom_control, since 4.13) and older v2 count it in the
victim's own cgroup alone and forget it with that: there the living ones below are added up, and
those that are gone have theirs in the kernel's log: so many at least, for that is overwritten, and
names the cgroup in ten reports in 5 s at most (oom_kill_process, oom_rs).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from seawall.accounts.cgroup_memory.memory_groups import ancestors, parent
from seawall.accounts.pods.pod_table import PodKills, PodRow, PodTable
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_log import KernelLog
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.reading import Unlimited

_CLOCKS_DIFFER_SECONDS: Final = 1.0
"""The log's clock and the monotonic one run apart by some milliseconds an hour."""


@dataclass(frozen=True, slots=True)
class KillMoment:
    """What tells kills, read at one moment."""

    memcgs: Memcgs | Unread
    log: KernelLog | Unread
    kernel: Kernel | Unread

    @property
    def seconds(self) -> float | None:
        """Of the monotonic clock."""
        return None if isinstance(self.kernel, Unread) else self.kernel.monotonic_seconds


def with_kills(table: PodTable, now: KillMoment, earlier: KillMoment | None = None) -> PodTable:
    """The same rows with their kills; ``earlier`` begins the window."""
    if isinstance(now.memcgs, Unread):
        return table
    alive = now.memcgs.by_path
    counted = _totals(alive)
    logged = list(_logged(now.log))
    below = _below(alive, logged, now)
    lately = {} if earlier is None else _lately(earlier, now)
    rows = tuple(_with(row, counted, below, lately, now, earlier) for row in table.rows)
    return replace(table, rows=rows, elsewhere=_elsewhere(table, logged, now))


def _elsewhere(
    table: PodTable, logged: Iterable[tuple[str, int, float | None]], now: KillMoment
) -> PodKills | None:
    """Kills below no leaf and no pod."""
    if isinstance(now.log, Unread):
        return None
    places = {r.workload.cgroup for r in table.rows if r.is_leaf or r.workload.kind == "pod"}
    kills, last = 0, None
    for path, count, at in logged:
        if places.isdisjoint((path, *ancestors(path))):
            kills += count
            last = at if at is not None else last
    ago = _ago(last, now.seconds)
    return PodKills(gone=kills, counts_gone=True, last_seconds_ago=ago)


@dataclass(slots=True)
class _Below:
    """Of one cgroup and what is in it, by the log."""

    gone: int = 0
    last_seconds: float | None = None


def _with(
    row: PodRow, counted: Mapping[str, int | None], below: Mapping[str, _Below],
    lately: Mapping[str, int], now: KillMoment, earlier: KillMoment | None,
) -> PodRow:  # fmt: skip
    path = row.workload.cgroup
    told = below.get(path, _Below())
    is_whole = bool(row.memcg.events_local)
    kills = PodKills(
        counted=counted.get(path),
        gone=None if isinstance(now.log, Unread) or is_whole else told.gone,
        counts_gone=is_whole or not isinstance(now.log, Unread),
        in_window=None if earlier is None else lately.get(path, 0),
        window_seconds=_between(earlier, now),
        last_seconds_ago=_ago(told.last_seconds, now.seconds),
    )
    return replace(row, kills=kills)


def _between(earlier: KillMoment | None, now: KillMoment) -> float | None:
    if earlier is None or earlier.seconds is None or now.seconds is None:
        return None
    return max(0.0, now.seconds - earlier.seconds)


def _ago(at: float | None, now: float | None) -> float | None:
    if at is None or now is None or at > now + _CLOCKS_DIFFER_SECONDS:
        return None
    return max(0.0, now - at)


def _totals(alive: Mapping[str, Memcg]) -> dict[str, int | None]:
    """Path -> what its counter and those below it say; None where none of them counts."""
    found: dict[str, int | None] = {}
    sums: dict[str, int] = {}
    for path in sorted(alive, key=lambda path: -path.count("/")):
        if path == "/":
            continue
        memcg, inner = alive[path], sums.get(path)
        own = memcg.oom_kill
        local = memcg.events_local.get("oom_kill")
        if own is not None and local is not None:
            # Equal to it where the tree was mounted with memory_localevents.
            own = max(own, local + (inner or 0))
        elif own is not None:
            own += inner or 0
        elif inner:
            own = inner
        found[path] = own
        if own is not None:
            sums[parent(path)] = sums.get(parent(path), 0) + own
    return found


def _logged(log: KernelLog | Unread) -> Iterator[tuple[str, int, float | None]]:
    """(cgroup of the victim, how many died, seconds of the kernel's clock), oldest first."""
    if isinstance(log, Unread):
        return
    for report in log.reports:
        if report.kills and report.task_memcg:
            at = None
            with suppress(TypeError, ValueError):
                at = float(report.at or "")
            yield report.task_memcg, len(report.kills), at


def _below(
    alive: Mapping[str, Memcg], logged: Iterable[tuple[str, int, float | None]], now: KillMoment
) -> dict[str, _Below]:
    """Kills of the log: those of cgroups that are gone, and when the last one of all was."""
    found: dict[str, _Below] = {}
    for path, kills, at in logged:
        for place in (path, *ancestors(path)):
            told = found.setdefault(place, _Below())
            told.gone += 0 if path in alive else kills
            if at is not None and _ago(at, now.seconds) is not None:
                told.last_seconds = max(at, told.last_seconds or at)
    return found


def _lately(earlier: KillMoment, now: KillMoment) -> dict[str, int]:
    """Path -> kills in the window, its own and those below it."""
    assert not isinstance(now.memcgs, Unread)  # noqa: S101 - with_kills looked
    before = {} if isinstance(earlier.memcgs, Unread) else earlier.memcgs.by_path
    alive = now.memcgs.by_path
    found: dict[str, int] = {}

    def add(path: str, kills: int) -> None:
        for place in (path, *ancestors(path)):
            found[place] = found.get(place, 0) + kills

    for path, memcg in alive.items():
        was = before.get(path)
        if path != "/" and not memcg.events_local:
            add(path, _gain(was, memcg))
    if earlier.seconds is not None:
        for path, kills, at in _logged(now.log):
            if path not in alive and at is not None and at > earlier.seconds:
                add(path, kills)
    for path, memcg in alive.items():
        if memcg.events_local:
            found[path] = _gain(before.get(path), memcg)
    return found


def _gain(was: Memcg | None, now: Memcg) -> int:
    """One that is new, or was made anew under its old name, counts from zero."""
    before = (was.oom_kill if was else 0) or 0
    after = now.oom_kill or 0
    return after - before if after >= before else after


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCoverage:
    """Of how many workloads it is known what the headline of ``seawall pods`` is about."""

    workloads: int
    limits: int
    """Of so many the way to the tightest limit is known, or that there is none."""
    kills: int
    """So many have a counter of OOM kills."""
    gone: int
    """So many also know the kills of cgroups below them that are gone."""
    stalls: int
    """Of so many the waiting for memory is measured."""


def coverage_of(rows: Iterable[PodRow]) -> PodCoverage:
    """Of how many of these rows limits, kills and stalls are known."""
    known = list(rows)
    return PodCoverage(
        workloads=len(known),
        limits=sum(isinstance(row.room, Unlimited) or row.room is not None for row in known),
        kills=sum(row.oom_kills is not None for row in known),
        gone=sum(row.kills is not None and row.kills.counts_gone for row in known),
        stalls=sum(row.pressure is not None for row in known),
    )
