# SPDX-License-Identifier: Apache-2.0
"""All nodes together: what the files of each gave, what happened since when, what takes one node
and will take the next, and what no file tells.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from seawall.blackbox.record_times import rfc3339_of
from seawall.findings.blindness import NotSeen
from seawall.replay.boot_story import BootStory
from seawall.replay.report_limits import reported_in
from seawall.replay.report_model import HARM, GuardReport, LimitReport, NodeCoverage, Occasion
from seawall.replay.report_names import kind_of
from seawall.replay.report_occasions import occasions_of
from seawall.words import count, first

BOOTS_MOST: Final = 10_000
"""Of one node: a journal is hostile input."""
_NAMES_SHOWN: Final = 4
_LATE_SECONDS: Final = 3600.0
_PROBLEMS_SHOWN: Final = 20


@dataclass(eq=False)
class ReportSource:
    """What one folder or file gave; ``node`` is its name until a box tells a better one."""

    node: str
    stories: dict[str, BootStory] = field(default_factory=dict)
    has_journal: bool = False
    has_box: bool = False
    malformed: int = 0
    torn: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)
    host: str = ""
    first_unix_seconds: float = float("inf")
    last_unix_seconds: float = float("-inf")

    def story(self, boot_id: str) -> BootStory:
        """Of that boot; ValueError: no node boots so often."""
        if boot_id not in self.stories:
            if len(self.stories) >= BOOTS_MOST:
                raise ValueError(f"more than {BOOTS_MOST:,} boots of one node")
            self.stories[boot_id] = BootStory(boot_id)
        return self.stories[boot_id]

    def spans(self, unix_seconds: float) -> None:
        """Something is known of that moment."""
        self.first_unix_seconds = min(self.first_unix_seconds, unix_seconds)
        self.last_unix_seconds = max(self.last_unix_seconds, unix_seconds)


class RepeatVictim(NamedTuple):
    """A workload that was chosen, on all nodes together."""

    name: str
    """``namespace/pod-*/container`` where Kubernetes made up the end of the pod's name."""
    occasions: int
    nodes: tuple[str, ...]
    harmed: int
    """Times that the kernel killed or the node died after it."""
    others: int
    """Workloads that the kernel ended and the guard had not chosen."""


def report_of(sources: Sequence[ReportSource], since: float, until: float) -> GuardReport:
    """Oldest first; times in Unix seconds."""
    occasions: list[Occasion] = []
    reported: list[LimitReport] = []
    for source in sources:
        for story in source.stories.values():
            occasions += occasions_of(source.node, story, since)
            reported += reported_in(source.node, story, since)
    occasions.sort(key=lambda one: one.unix_seconds)
    nodes = [_seen(source) for source in sources]
    return GuardReport(since, until, nodes, occasions, reported, list(_unseen(sources, since)))


def _seen(source: ReportSource) -> NodeCoverage:
    is_known = source.last_unix_seconds >= source.first_unix_seconds
    return NodeCoverage(
        source.node, source.has_box, source.has_journal,
        source.first_unix_seconds if is_known else None,
        source.last_unix_seconds if is_known else None, len(source.stories),
    )  # fmt: skip


# --- by node ------------------------------------------------------------------------------------


def join_sources(sources: list[ReportSource]) -> list[ReportSource]:
    """Sources that share a boot are of one node: its journal here, its box there."""
    owner: dict[str, ReportSource] = {}
    merged: set[ReportSource] = set()
    for source in sources:
        known = dict.fromkeys(owner[boot] for boot in source.stories if boot in owner)
        into, *more = [*known, source]
        for other in more:
            _merge(into, other)
        merged.update(more)
        owner.update(dict.fromkeys(into.stories, into))
    nodes = [source for source in sources if source not in merged]
    for node in nodes:
        node.node = node.host or node.node
        _finish(node)
    return nodes


def _merge(into: ReportSource, more: ReportSource) -> None:
    for boot_id, story in more.stories.items():
        into.stories.setdefault(boot_id, BootStory(boot_id)).join(story)
    into.has_journal = into.has_journal or more.has_journal
    into.has_box = into.has_box or more.has_box
    into.host = into.host or more.host
    into.problems += more.problems
    for name in ("malformed", "torn", "lost"):
        setattr(into, name, getattr(into, name) + getattr(more, name))
    into.first_unix_seconds = min(into.first_unix_seconds, more.first_unix_seconds)
    into.last_unix_seconds = max(into.last_unix_seconds, more.last_unix_seconds)


def _finish(node: ReportSource) -> None:
    """All of it is there.  A boot is followed when another one began after it."""
    latest = max((story.began or 0.0 for story in node.stories.values()), default=0.0)
    for story in node.stories.values():
        story.is_followed = (story.began or 0.0) < latest
        story.close()


# --- the same workload on many nodes ------------------------------------------------------------


def poison_in(occasions: Iterable[Occasion]) -> list[RepeatVictim]:
    """On most nodes first; each occasion counts once a workload."""
    found: dict[str, list[Occasion]] = {}
    for occasion in occasions:
        for name in dict.fromkeys(kind_of(target.name) for target in occasion.targets):
            found.setdefault(name, []).append(occasion)
    rows = [_poison(name, some) for name, some in found.items()]
    return sorted(rows, key=lambda row: (-len(row.nodes), -row.occasions, row.name))


def _poison(name: str, some: list[Occasion]) -> RepeatVictim:
    others = sum(not kill.is_target for one in some for kill in one.truth.kills)
    nodes = tuple(dict.fromkeys(one.node for one in some))
    return RepeatVictim(name, len(some), nodes, sum(one.ending in HARM for one in some), others)


# --- what the files do not tell -----------------------------------------------------------------


def _unseen(sources: Sequence[ReportSource], since: float) -> Iterator[NotSeen]:
    late = [s for s in sources if s.first_unix_seconds > since + _LATE_SECONDS and s.stories]
    if late:
        begins = min(source.first_unix_seconds for source in late)
        why = f"the first line or frame is of {rfc3339_of(begins)}" + (
            " or later" * (len(late) > 1)
        )
        yield NotSeen(
            f"the time since {rfc3339_of(since)} on {_names(late)}", why,
            "files kept longer: /run/seawall is empty after a boot, a black box is not",
        )  # fmt: skip
    blind = [source for source in sources if not source.has_box]
    if blind:
        why = "no black box: whom the kernel killed, and whether the node died, is not told"
        yield NotSeen(_names(blind), why, "the node's /var/lib/seawall/blackbox as a further FILE")
    mute = [s for s in sources if any(t.is_mute for t in s.stories.values())]
    if mute:
        why = "no line tells of kills of the kernel: that there were none is not evidence"
        yield NotSeen(_names(mute), why, "journals of a guard of this version, or a black box")
    yield from _damage(sources)


def _damage(sources: Sequence[ReportSource]) -> Iterator[NotSeen]:
    for name, what in (
        ("malformed", "lines of journals that are none of seawall's"),
        ("torn", "frames whose checksum is wrong"),
        ("lost", "frames or ticks that are missing or cannot be read"),
    ):
        hurt = [source for source in sources if getattr(source, name)]
        if hurt:
            total = sum(getattr(source, name) for source in hurt)
            yield NotSeen(what, f"{count(total)} on {_names(hurt)}", "")
    problems = [problem for source in sources for problem in source.problems]
    for problem in problems[:_PROBLEMS_SHOWN]:
        yield NotSeen("a file", problem, "")
    if len(problems) > _PROBLEMS_SHOWN:
        yield NotSeen(f"{count(len(problems) - _PROBLEMS_SHOWN)} more files", "cannot be read", "")


def _names(sources: Sequence[ReportSource]) -> str:
    names = first([source.node for source in sources], _NAMES_SHOWN)
    return names if len(sources) < 2 else f"{count(len(sources))} nodes ({names})"
