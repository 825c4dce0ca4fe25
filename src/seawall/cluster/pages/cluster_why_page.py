# SPDX-License-Identifier: Apache-2.0
"""The story of ``seawall cluster why``: which workload, which nodes, what evidence, what next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, Literal

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.objects.node_death_object import (
    CauseConfidence,
    DeathPhase,
    DeathWorkload,
    NodeDeathObject,
)
from seawall.cluster.objects.node_report_object import NodeReportObject
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.pages.cluster_reading import (
    ClusterReading,
    ObserverWatch,
    culprit_name,
    is_death,
    is_killer,
    moved_seconds,
    names_of,
    verdict_of,
    who,
    workload_name,
)
from seawall.cluster.pages.cluster_words import NOBODY_WATCHES, ago, both, clock
from seawall.cluster.pages.quarantine_words import (
    done_words,
    held_pods,
    is_stopped,
    next_words,
    quarantine_commands,
)
from seawall.findings.blindness import NotSeen
from seawall.findings.shell import quote
from seawall.words import counted, duration, first

RECENT_SECONDS: Final = 86400.0
_SCALED: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_SUSPENDED: Final = ("Job", "CronJob", "JobSet")
Answer = Literal["killer", "suspect", "deaths", "none", "node", "innocent", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWhyPage:
    """The answer to one question."""

    reading: ClusterReading
    subject: str
    """The node or workload that was asked about; empty: the cluster."""
    answer: Answer
    """killer: a convicted workload; suspect: one that is not; deaths: nodes died and nobody is
    suspected; none: no node died; node: of one node; innocent: a workload that is not suspected;
    unknown: nothing is known of that name."""
    headline: str
    suspect: WorkloadQuarantineObject | None
    others: tuple[WorkloadQuarantineObject, ...]
    """Further suspects, worst first."""
    deaths: tuple[NodeDeathObject, ...]
    """What the story is about, by time."""
    report: NodeReportObject | None
    done: str
    """What was done about it."""
    outlook: tuple[str, ...]
    """What will happen next."""
    commands: tuple[str, ...]
    """What ends it."""
    unseen: tuple[NotSeen, ...]

    @property
    def as_of_unix_seconds(self) -> float:
        """Unix seconds. The API server's clock, or the newest time in the file."""
        return self.reading.as_of_unix_seconds

    @property
    def source(self) -> str:
        """A context of a kubeconfig, or a file."""
        return self.reading.source

    @property
    def watch(self) -> ObserverWatch:
        """Whether anybody watches."""
        return self.reading.watch


def cluster_why(reading: ClusterReading, subject: str) -> ClusterWhyPage:
    """Of the whole cluster (an empty subject), of a node or of a workload."""
    open_ones = tuple(one for one in reading.suspects if one.state is not QuarantineState.RELEASED)
    if not subject:
        if open_ones:
            return _of_suspect(reading, "", open_ones[0], open_ones[1:])
        return _of_nobody(reading)
    nodes = tuple(one for one in reading.deaths if subject in (one.node, one.name))
    reports = [one for one in reading.reports if one.node == subject]
    if nodes or reports:
        return _of_node(reading, subject, nodes, reports)
    for one in reading.suspects:
        if subject in names_of(one):
            return _of_suspect(reading, subject, one, ())
    return _of_other(reading, subject)


def _page(
    reading: ClusterReading, subject: str, answer: Answer, headline: str,
    deaths: Sequence[NodeDeathObject], *, suspect: WorkloadQuarantineObject | None = None,
    others: Sequence[WorkloadQuarantineObject] = (), report: NodeReportObject | None = None,
) -> ClusterWhyPage:  # fmt: skip
    return ClusterWhyPage(
        reading=reading, subject=subject, answer=answer, headline=headline, suspect=suspect,
        others=tuple(others), deaths=tuple(deaths), report=report,
        done=done_words(suspect) if suspect else "",
        outlook=tuple(_outlook(reading, suspect, deaths)),
        commands=_ending(reading, suspect) if suspect else (),
        unseen=_unseen(reading, deaths),
    )  # fmt: skip


def _of_suspect(
    reading: ClusterReading, subject: str, one: WorkloadQuarantineObject,
    others: Sequence[WorkloadQuarantineObject],
) -> ClusterWhyPage:  # fmt: skip
    deaths = reading.deaths_of(one)
    return _page(
        reading, subject, "killer" if is_killer(one) else "suspect",
        _headline(reading, one, deaths), deaths, suspect=one, others=others,
    )  # fmt: skip


def _headline(
    reading: ClusterReading, one: WorkloadQuarantineObject, deaths: Sequence[NodeDeathObject]
) -> str:
    name, verdict = str(one.workload), verdict_of(one)
    dead = {death.node for death in deaths} or set(one.status.nodes if one.status else ())
    nodes = counted(len(dead), "node")
    when = ""
    if deaths:
        when = f", the last {ago(deaths[-1].heartbeat_seconds, reading.as_of_unix_seconds)}"
    if verdict is SuspicionState.INSEPARABLE:
        rows = one.status.companions if one.status else ()
        with_ = first([f"{row.namespace}/{row.name}" for row in rows], 2) or "another workload"
        return f"{name} or {with_} kills nodes: {nodes} died with both{when}"
    if verdict is SuspicionState.CONVICTED:
        return f"{name} kills nodes: {nodes} dead{when}"
    if verdict is SuspicionState.CANNOT_TELL:
        return f"whether {name} kills nodes cannot be told: {nodes} died with it{when}"
    if verdict is SuspicionState.NONE:
        died = f"{nodes} died with it{when}" if dead else "no node is known to have died with it"
        return f"{name}: a person's own word ({one.reason}); {died}"
    return f"{name} is suspected: {nodes} died with it{when}"


def _of_nobody(reading: ClusterReading) -> ClusterWhyPage:
    now = reading.as_of_unix_seconds
    counting = [one for one in reading.deaths if is_death(one)]
    recent = [one for one in counting if now - one.heartbeat_seconds <= RECENT_SECONDS]
    watch = reading.watch.state
    if not counting:
        whole = counted(len(reading.deaths), "death") if reading.deaths else ""
        rest = f" ({whole}, all planned or taken back)" if whole else ""
        if watch == "nobody":
            headline = f"{NOBODY_WATCHES}, so whether nodes died is not known"
        else:
            headline = f"no node died{rest}, and no workload is suspected"
        return _page(reading, "", "none", headline, ())
    shown = recent or counting
    when = "in 24 h" if recent else f"in all, the last {ago(shown[-1].heartbeat_seconds, now)}"
    nodes = counted(len({one.node for one in shown}), "node")
    nobody = "and no workload is suspected"
    if watch == "nobody":
        nobody = f"and {NOBODY_WATCHES.lower()} any more"
    return _page(reading, "", "deaths", f"{nodes} died {when}, {nobody}", shown)


def _of_node(
    reading: ClusterReading, node: str, deaths: Sequence[NodeDeathObject],
    reports: Sequence[NodeReportObject],
) -> ClusterWhyPage:  # fmt: skip
    now = reading.as_of_unix_seconds
    report = reports[0] if reports else None
    suspects = [one for death in reversed(deaths) for one in reading.suspects_of(death)]
    suspects = list(
        {one.name: one for one in suspects if one.state is not QuarantineState.RELEASED}.values()
    )
    suspects.sort(key=reading.suspects.index)
    if not deaths:
        headline = f"node {node} has not died"
        if report is not None and report.distress is not None:
            headline += f"; memory ran short {ago(report.distress.at_seconds, now)}"
        return _page(reading, node, "node", headline, (), report=report)
    last = deaths[-1]
    name = last.node
    if last.phase is DeathPhase.PLANNED:
        headline = f"node {name} went away as planned"
    elif last.phase is DeathPhase.RETRACTED:
        headline = f"node {name} was only out of reach, and did not die"
    else:
        verb = "was reset" if last.kind is DeathKind.RESET else "died"
        headline = f"node {name} {verb} {ago(last.heartbeat_seconds, now)}"
        if last.culprit and last.confidence is CauseConfidence.PROVED:
            headline += f": its own record proves {culprit_name(last)}"
        elif suspects and is_killer(suspects[0]):
            headline += f", with {who(suspects[0])} on it, which kills nodes"
        else:
            headline += ", and nobody is convicted of it"
    if last.reason:
        headline += f" ({last.reason})"
    return _page(
        reading, node, "node", headline, deaths, suspect=suspects[0] if suspects else None,
        others=suspects[1:], report=report,
    )  # fmt: skip


def _of_other(reading: ClusterReading, subject: str) -> ClusterWhyPage:
    deaths = [
        death
        for death in reading.deaths
        if is_death(death) and any(_is_named(one, subject) for one in death.workloads)
    ]
    counting = counted(sum(map(is_death, reading.deaths)), "death")
    if deaths:
        nodes = counted(len({one.node for one in deaths}), "node")
        headline = f"{subject} is not suspected: it was on {nodes} that died, of {counting} in all"
        return _page(reading, subject, "innocent", headline, deaths)
    headline = (
        f"nothing is known of {subject}: no node of that name died, and of {counting} none had it"
    )
    if reading.watch.state == "nobody":
        headline += f"; {NOBODY_WATCHES.lower()}"
    return _page(reading, subject, "unknown", headline, ())


def _is_named(one: DeathWorkload, subject: str) -> bool:
    space, kind = one.bound.namespace, one.owner_kind.lower()
    names = (one.owner_name, workload_name(one), one.pod_name, f"{space}/{one.pod_name}")
    return subject in (*names, f"{kind}/{one.owner_name}", f"{space}/{kind}/{one.owner_name}")


def _outlook(
    reading: ClusterReading, one: WorkloadQuarantineObject | None,
    deaths: Sequence[NodeDeathObject],
) -> Iterator[str]:  # fmt: skip
    now = reading.as_of_unix_seconds
    is_over = one is not None and (is_stopped(one, reading) or bool(held_pods(one, now)))
    moved = moved_seconds(deaths[-1]) if deaths and not is_over else None
    if moved is not None:
        what = "its pod" if one else "each pod"
        where = f"{what} on {deaths[-1].node}"
        when = both(moved, now)
        if moved > now:
            yield f"{where} is moved to another node at {when}"
        else:
            yield f"{where} may run elsewhere since {when}"
    if one is None:
        return
    yield from next_words(one, reading)
    if one.status and one.status.chance is not None:
        nodes = counted(one.status.chance.with_workload, "node")
        yield f"{nodes} ran it when counted last: those that live may be next"
    moments = [death.heartbeat_seconds for death in deaths]
    if len(moments) > 1 and is_killer(one) and not is_over:
        apart = median(later - sooner for sooner, later in pairwise(moments))
        due = moments[-1] + apart
        when = f"dies about {clock(due, now)}" if due > now else f"is due since {clock(due, now)}"
        yield f"its nodes died {duration(apart)} apart: at that pace the next {when}"


def _ending(reading: ClusterReading, one: WorkloadQuarantineObject) -> tuple[str, ...]:
    """Where Seawall has a hand in it its own verb, else kubectl's."""
    return quarantine_commands(one, reading) or (_commands(one) if is_killer(one) else ())


def _commands(one: WorkloadQuarantineObject) -> tuple[str, ...]:
    """What ends it; none where no command of kubectl alone does."""
    kind, name = one.workload.kind, quote(one.workload.name)
    space = quote(one.workload.namespace)
    if not one.workload.name or not one.workload.namespace or "#" in name:
        return ()
    if kind in _SCALED:
        return (f"kubectl -n {space} scale {kind.lower()} {name} --replicas=0",)
    if kind in _SUSPENDED:
        suspend = """-p '{"spec":{"suspend":true}}'"""
        return (f"kubectl -n {space} patch {kind.lower()} {name} --type=merge {suspend}",)
    if kind == "Pod":
        return (f"kubectl -n {space} delete pod {name} --wait=false",)
    return ()


def _unseen(reading: ClusterReading, deaths: Sequence[NodeDeathObject]) -> tuple[NotSeen, ...]:
    rows = list(reading.unseen)
    if without := [one.node for one in deaths if one.record is None]:
        rows.append(
            NotSeen(
                f"the end of {first(without, 2)}", "no record of the node itself came",
                "the agent on each node (docs/cluster.md)",
            )
        )  # fmt: skip
    words = dict.fromkeys(text for death in deaths for text in death.unseen)
    rows += [NotSeen("at a death", text, "") for text in words]
    return tuple(rows)
