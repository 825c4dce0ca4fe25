# SPDX-License-Identifier: Apache-2.0
"""All nodes together: what happened since when, and what the files do not tell."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.blackbox.times import written
from seawall.findings.blindness import NotSeen
from seawall.replay.report import occasions_of
from seawall.replay.report_files import Source
from seawall.replay.report_found import NodeSeen, Occasion, Report
from seawall.words import count, first

_NAMES_SHOWN: Final = 4
_LATE_SECONDS: Final = 3600.0
_PROBLEMS_SHOWN: Final = 20


def report_of(sources: Sequence[Source], since: float, until: float) -> Report:
    """Oldest first; times in Unix seconds."""
    occasions: list[Occasion] = []
    reports = 0
    for source in sources:
        for story in source.stories.values():
            found, only_told = occasions_of(source.node, story, since)
            occasions += found
            reports += only_told
    occasions.sort(key=lambda one: one.unix_seconds)
    nodes = [_seen(source) for source in sources]
    return Report(since, until, nodes, occasions, reports, list(_unseen(sources, since)))


def _seen(source: Source) -> NodeSeen:
    is_known = source.last_unix_seconds >= source.first_unix_seconds
    return NodeSeen(
        source.node, source.has_box, source.has_journal,
        source.first_unix_seconds if is_known else None,
        source.last_unix_seconds if is_known else None, len(source.stories),
    )  # fmt: skip


def _unseen(sources: Sequence[Source], since: float) -> Iterator[NotSeen]:
    late = [s for s in sources if s.first_unix_seconds > since + _LATE_SECONDS and s.stories]
    if late:
        begins = min(source.first_unix_seconds for source in late)
        why = f"the first line or frame is of {written(begins)}" + (" or later" * (len(late) > 1))
        yield NotSeen(
            f"the time since {written(since)} on {_names(late)}", why,
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


def _damage(sources: Sequence[Source]) -> Iterator[NotSeen]:
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


def _names(sources: Sequence[Source]) -> str:
    names = first([source.node for source in sources], _NAMES_SHOWN)
    return names if len(sources) < 2 else f"{count(len(sources))} nodes ({names})"
