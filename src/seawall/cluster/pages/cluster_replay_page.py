# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster replay``: recorded deaths judged again, as then and by another policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from seawall.cluster.judge.cluster_judge import (
    ClusterJudge,
    JudgePolicy,
    SuspicionState,
    WorkloadSuspicion,
)
from seawall.cluster.judge.node_death import NodeDeath, WorkloadKey
from seawall.cluster.objects.node_death_object import NodeDeathObject
from seawall.cluster.pages.cluster_reading import (
    ClusterReading,
    verdict_of,
    workload_name,
)
from seawall.cluster.pages.cluster_words import clock
from seawall.findings.blindness import NotSeen
from seawall.views.terminal import Console, plain, shorten
from seawall.words import counted, first

_SHOWN: Final = 12
_STATES: Final = (
    SuspicionState.CONVICTED, SuspicionState.INSEPARABLE, SuspicionState.SUSPECTED,
    SuspicionState.CANNOT_TELL, SuspicionState.NONE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """By what the deaths were judged."""

    name: str
    """A file, or where it stands in the recording."""
    false_per_thousand_node_years: float
    protected_namespaces: tuple[str, ...]
    threshold_log10: float
    """The mark at the end, from the deaths and this policy."""


@dataclass(frozen=True, slots=True)
class ReplayState:
    """What one policy says of a workload."""

    state: str
    """none, suspected, convicted, inseparable or cannot tell: at the end."""
    score_log10: float | None
    threshold_log10: float
    nodes_until_convicted: int | None
    """How many nodes had died with it when it was first convicted; null: never."""
    convicted_by: str | None
    """The node whose death first convicted it."""
    convicted_seconds: float | None
    """Unix seconds. The last sign of life of that node."""
    why_not: str

    @property
    def was_convicted(self) -> bool:
        """At one moment, whatever it is at the end."""
        return self.nodes_until_convicted is not None


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    """One workload, by each policy."""

    workload: str
    """Namespace and name."""
    key: WorkloadKey
    recorded: str | None
    """What the cluster's own object says; null: it has none."""
    then: ReplayState
    """By the recorded policy."""
    other: ReplayState | None
    """By the other one; null: none was given."""

    @property
    def differs(self) -> bool:
        """Whether the other policy says another thing, or sooner or later."""
        then, other = self.then, self.other
        if other is None:
            return self.recorded is not None and self.recorded != then.state
        return (then.state, then.nodes_until_convicted) != (
            other.state, other.nodes_until_convicted,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterReplayPage:
    """All of it."""

    source: str
    """The file."""
    as_of_seconds: float
    deaths_judged: int
    deaths_left_out: int
    """Planned, taken back, or not confirmed."""
    policy: ReplayPolicy
    other: ReplayPolicy | None
    verdicts: tuple[ReplayVerdict, ...]
    unseen: tuple[NotSeen, ...]


@dataclass(slots=True)
class _Run:
    """One judge, and when it first convicted whom."""

    judge: ClusterJudge
    first_convicted: dict[WorkloadKey, tuple[NodeDeath, int]]
    found: Mapping[WorkloadKey, WorkloadSuspicion]

    def state_of(self, key: WorkloadKey, names: Mapping[str, str]) -> ReplayState:
        one = self.found.get(key)
        death, nodes = self.first_convicted.get(key, (None, None))
        score = one.score_log10 if one and one.score_log10 > -300.0 else None
        return ReplayState(
            (one.state if one else SuspicionState.NONE).value, score,
            one.threshold_log10 if one else self.judge.threshold_log10(), nodes,
            None if death is None else names.get(death.name),
            None if death is None else death.heartbeat_seconds, one.why_not if one else "",
        )  # fmt: skip


def cluster_replay(
    reading: ClusterReading, other: JudgePolicy | None = None, other_name: str = ""
) -> ClusterReplayPage:
    """Each death in the order in which the observer gave them to its judge."""
    judged = [one for one in reading.deaths if one.counts]
    names = {one.name: one.node for one in judged}
    since = reading.policy.status.watched_since_seconds
    then = _run(judged, reading.policy.judge_policy(), since)
    by_other = None if other is None else _run(judged, other, since)
    recorded = {one.key: verdict_of(one).value for one in reading.suspects}
    verdicts = []
    for workload, key in _workloads(judged, [then, *([by_other] if by_other else [])], recorded):
        verdicts.append(
            ReplayVerdict(
                workload, key, recorded.get(key), then.state_of(key, names),
                None if by_other is None else by_other.state_of(key, names),
            )
        )  # fmt: skip
    verdicts.sort(key=_worst_first)
    return ClusterReplayPage(
        reading.source, reading.as_of_unix_seconds, len(judged), len(reading.deaths) - len(judged),
        _policy("as recorded", then.judge),
        None if by_other is None else _policy(other_name, by_other.judge),
        tuple(verdicts), reading.unseen,
    )  # fmt: skip


def _run(
    deaths: Sequence[NodeDeathObject], policy: JudgePolicy, since_seconds: float | None
) -> _Run:
    judge = ClusterJudge(policy)
    if since_seconds is not None:
        judge.watch_from(since_seconds)
    first_convicted: dict[WorkloadKey, tuple[NodeDeath, int]] = {}
    found: dict[WorkloadKey, WorkloadSuspicion] = {}
    last = 0.0
    for one in deaths:
        death = one.to_judge()
        last = death.heartbeat_seconds
        for suspicion in judge.judge(judge.add(death)):
            if suspicion.state is SuspicionState.CONVICTED:
                first_convicted.setdefault(suspicion.key, (death, len(suspicion.nodes)))
    for suspicion in judge.suspicions(last):
        found[suspicion.key] = suspicion
    return _Run(judge, first_convicted, found)


def _workloads(
    deaths: Sequence[NodeDeathObject], runs: Sequence[_Run], recorded: Mapping[WorkloadKey, str]
) -> Iterator[tuple[str, WorkloadKey]]:
    """Each workload that anybody says anything of, by the key that says most, then the finest."""
    keys: dict[str, set[WorkloadKey]] = {}
    for death in deaths:
        for workload in death.workloads:
            keys.setdefault(workload_name(workload), set()).update(workload.bound.keys)
    for name, own in sorted(keys.items()):
        said = [key for key in own if key in recorded or any(key in run.found for run in runs)]
        if said:
            yield name, min(said, key=lambda key: (key not in recorded, _rank(key, runs), key))


def _rank(key: WorkloadKey, runs: Sequence[_Run]) -> int:
    states = [run.found[key].state for run in runs if key in run.found]
    return min((_STATES.index(state) for state in states), default=len(_STATES))


def _worst_first(verdict: ReplayVerdict) -> tuple[bool, int, float, str]:
    both = [one for one in (verdict.then, verdict.other) if one is not None]
    rank = min(_STATES.index(SuspicionState(one.state)) for one in both)
    score = max(one.score_log10 or 0.0 for one in both)
    return (not verdict.differs, rank, -score, verdict.workload)


def _policy(name: str, judge: ClusterJudge) -> ReplayPolicy:
    policy = judge.policy
    return ReplayPolicy(
        name, policy.false_per_thousand_node_years, tuple(sorted(policy.protected_namespaces)),
        judge.threshold_log10(),
    )  # fmt: skip


def replay_lines(page: ClusterReplayPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: every workload of which a policy says anything."""
    left = page.deaths_left_out
    out = f"; {left} planned, taken back or not confirmed left out" if left else ""
    yield from paper.wrap(
        f"replay: {page.source}: {counted(page.deaths_judged, 'death')} judged{out}"
    )
    for policy in (page.policy, page.other):
        if policy is not None:
            spaces = first(policy.protected_namespaces, 3) or "none"
            yield from paper.wrap(
                f"{policy.name}: {policy.false_per_thousand_node_years:g} wrong in 1,000 "
                f"node-years, mark 10^{policy.threshold_log10:.1f}, protected: {spaces}", "    ",
                "  ",
            )  # fmt: skip
    yield ""
    if not page.verdicts:
        yield "No policy suspects anybody."
        return
    differing = [one for one in page.verdicts if one.differs]
    yield from paper.wrap(_summary(page, len(differing)))
    shown = page.verdicts if whole else page.verdicts[:_SHOWN]
    columns = 24 if page.other else 26
    width = min(max(8, *(len(plain(one.workload)) for one in shown)), paper.width - 2 * columns - 5)
    last = "OTHER" if page.other else "JUDGED AGAIN"
    before = "AS RECORDED" if page.other else "RECORDED"
    yield paper.paint(f"  {'WORKLOAD':{width}}  {before:{columns}}  {last}", "bold")
    for one in shown:
        then = _state_words(one.then)
        left_words = then if page.other else one.recorded or "-"
        right = _state_words(one.other) if one.other else then
        sign = "*" if one.differs else " "
        name = shorten(plain(one.workload), width)
        yield f"{sign} {name:{width}}  {left_words:{columns}}  {right}".rstrip()
    if more := len(page.verdicts) - len(shown):
        yield f"and {counted(more, 'workload')} more: --whole"
    for one in differing[:2]:
        yield from paper.wrap(_difference(one, page), "  ", "")


def _summary(page: ClusterReplayPage, differing: int) -> str:
    if page.other is None:
        if differing:
            return f"{counted(differing, 'verdict')} of the cluster differ from the judge's (*)."
        return "The judge says again what the cluster's objects say."
    if differing:
        return f"{counted(differing, 'workload')} judged otherwise by {page.other.name} (*)."
    return f"{page.other.name} changes no verdict."


def _state_words(one: ReplayState) -> str:
    score = "" if one.score_log10 is None else f" {one.score_log10:.1f}"
    at = f" at node {one.nodes_until_convicted}" if one.was_convicted else ""
    return "-" if one.state == "none" and not at else f"{one.state}{score}{at}"


def _difference(verdict: ReplayVerdict, page: ClusterReplayPage) -> str:
    name, then, other = verdict.workload, verdict.then, verdict.other
    if other is None:
        return f"{name}: the cluster says {verdict.recorded}, the judge {then.state}"
    if other.was_convicted and not then.was_convicted:
        when = clock(other.convicted_seconds, page.as_of_seconds)
        return f"{name}: convicted by the death of {other.convicted_by}, {when}; else never"
    if then.was_convicted and not other.was_convicted:
        return f"{name}: not convicted any more{f': {other.why_not}' if other.why_not else ''}"
    if then.was_convicted and other.was_convicted:
        sooner = (then.nodes_until_convicted or 0) - (other.nodes_until_convicted or 0)
        words = "sooner" if sooner > 0 else "later"
        return f"{name}: convicted {counted(abs(sooner), 'node')} {words}" if sooner else (
            f"{name}: {then.state}, and {other.state}")  # fmt: skip
    return f"{name}: {then.state}, and {other.state}{f': {other.why_not}' if other.why_not else ''}"
