# SPDX-License-Identifier: Apache-2.0
"""Words of the cluster's pages: moments, odds, scores, evidence, who watches."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.judge.node_death import EvidenceKind
from seawall.cluster.objects.node_death_object import (
    CauseClass,
    CauseConfidence,
    NodeDeathObject,
)
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.pages.cluster_reading import ClusterReading, verdict_of
from seawall.views.document import taken_at
from seawall.views.terminal import Console
from seawall.words import count, counted, duration, size

_KEYS: Final = {
    1: "its owner's uid", 2: "its owner's name without generated parts",
    3: "its pod template, whatever it is called", 4: "its images",
}  # fmt: skip
_RECORDS: Final = {
    EvidenceKind.PROVED: "guard proved", EvidenceKind.POSSIBLE: "guard: maybe",
    EvidenceKind.OOM_LINE: "OOM line", EvidenceKind.OTHER_CAUSE: "other cause",
    EvidenceKind.MEMORY_AMPLE: "memory ample",
}  # fmt: skip
_STRONGEST: Final = tuple(_RECORDS)
_LABEL: Final = 9
NOBODY_WATCHES: Final = "NOBODY WATCHES"


def label(word: str) -> str:
    """What a part of a story begins with."""
    return f"{word:{_LABEL}} "


def labelled(paper: Console, word: str, texts: Iterable[str]) -> Iterator[str]:
    """Its lines; the word stands before the first."""
    for number, text in enumerate(texts):
        yield from paper.wrap(text, " " * (_LABEL + 1), label(word if not number else ""))


def clock(unix_seconds: float | None, now: float) -> str:
    """``10:08:02Z`` of the same day, else with the day."""
    whole = taken_at(unix_seconds)
    if whole is None:
        return "unknown"
    today = taken_at(now) or ""
    if whole[:10] == today[:10]:
        return whole[11:]
    return f"{whole[5:10] if whole[:4] == today[:4] else whole[:10]} {whole[11:16]}Z"


def ago(unix_seconds: float | None, now: float) -> str:
    """``12 min ago``, ``in 40 s``."""
    if unix_seconds is None:
        return "unknown"
    back = now - unix_seconds
    return f"{duration(back)} ago" if back >= 0 else f"in {duration(-back)}"


def both(unix_seconds: float | None, now: float) -> str:
    """``10:08:02Z (12 min ago)``."""
    if unix_seconds is None:
        return "at an unknown time"
    return f"{clock(unix_seconds, now)} ({ago(unix_seconds, now)})"


def key_words(level: int | None) -> str:
    """By what a workload is known again when it comes under another name."""
    return _KEYS.get(level or 0, "a key of another version")


def score_words(one: WorkloadQuarantineObject) -> str:
    """The score against the mark, as powers of ten: they are odds against chance."""
    if one.status is None or one.status.score_log10 is None:
        return "no score"
    return f"{one.status.score_log10:.1f} of {one.status.threshold_log10:.1f}"


def state_word(one: WorkloadQuarantineObject) -> str:
    """What is said of it, or, in capitals, what became of it where that is more."""
    is_said = one.state in (QuarantineState.SUSPECTED, QuarantineState.PROPOSED)
    verdict = verdict_of(one)
    return (
        verdict.value if is_said and verdict is not SuspicionState.NONE else one.state.value.upper()
    )


def odds(probability: float | None) -> str:
    """``1 in 1,313,400``."""
    if probability is None:
        return "not computed"
    if probability <= 0.0:
        return "less than 1 in 10^300"
    times = 1.0 / probability
    if times >= 1e12:
        return f"1 in 10^{len(str(int(times))) - 1}"
    return f"1 in {count(round(times))}" if times >= 10 else f"1 in {times:.1f}"


def chance_words(one: WorkloadQuarantineObject) -> str:
    """The number that people can check by hand."""
    chance = one.status.chance if one.status else None
    if chance is None:
        return "not counted"
    everyone = chance.deaths == chance.deaths_with_workload
    hits = "all" if everyone and chance.deaths > 1 else count(chance.deaths_with_workload)
    return (
        f"of {counted(chance.nodes, 'node')} {count(chance.with_workload)} ran it; "
        f"{count(chance.deaths)} died, {hits} with it: by chance {odds(chance.probability)}"
    )


def cause_words(death: NodeDeathObject) -> str:
    """``memory, proved``; ``unknown``."""
    if death.cause is CauseClass.UNKNOWN or death.confidence is CauseConfidence.UNKNOWN:
        return death.cause.value
    return f"{death.cause.value}, {death.confidence.value}"


def strongest(record: Sequence[RecordLine]) -> RecordLine | None:
    """The statement that says most."""
    return min(record, key=lambda line: _STRONGEST.index(line.kind), default=None)


def evidence_words(death: NodeDeathObject) -> str:
    """In a few words, for a column."""
    if death.record is None:
        return "no record" if death.awaited_until_seconds is None else "record awaited"
    line = strongest(death.record)
    return "says nothing" if line is None else _RECORDS[line.kind]


def held_words(death: NodeDeathObject) -> str:
    """``41.2 GiB``, ``3.0 to 41.2 GiB``: what the culprit of a record held; empty: not said."""
    if death.culprit is None:
        return ""
    least, most = death.culprit.certain_bytes, death.culprit.most_bytes
    if least is None or most is None or least == most:
        amount = most if least is None else least
        return "" if amount is None else size(amount)
    return f"{size(least)} to {size(most)}"


def watch_words(reading: ClusterReading) -> str:
    """One sentence on who watches, for the top of each page."""
    watch, now = reading.watch, reading.as_of_unix_seconds
    status = reading.policy.status
    if watch.state == "watching":
        since = status.watched_since_seconds
        nodes = f"{counted(status.nodes, 'node')} " if status.nodes else ""
        words = f"{nodes}watched since {clock(since, now)}" if since else f"{nodes}watched"
        if reading.is_file:
            words += f", at least until {clock(watch.renewed_seconds, now)}"
        return f"{words}; {status.message}" if status.message else words
    if watch.state == "nobody":
        renewed = watch.renewed_seconds
        gone = f" since {both(renewed, now)}" if renewed else ""
        return f"{NOBODY_WATCHES}{gone}: {watch.words}; who died since is not in here"
    return f"not seen: {watch.words}"


def heading(reading: ClusterReading) -> str:
    """Where it was read, and of which moment it is."""
    of = "the newest time in it" if reading.is_file else "the API server's clock"
    return f"cluster: {reading.source}, as of {taken_at(reading.as_of_unix_seconds)} ({of})"
