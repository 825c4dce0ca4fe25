# SPDX-License-Identifier: Apache-2.0
"""The guard's own decisions as events: what it did, or would have done, and why.

One decision is one event, however many lines tell of it and in however many logs: its cause, what
became of each order and what came back all carry its id.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.formats.iso_time import iso_datetime
from seawall.words import first

_NAMES_SHOWN: Final = 2
_NAME_MOST: Final = 80
_CAUSE_MOST: Final = 120
_DETAILS_MOST: Final = 160
"""A decision has 64 orders at most, and of each a freeze and a kill may be told."""
_TEXT_MOST: Final = 1000
_OBSERVING: Final = "(observing only) "
_ORDERED: Final = "ordered: "
_STEPS: Final = {
    "thaw": ("thawed", "thawed"),
    "unclamp": ("put back the limit of", "put back the limit of"),
    "freeze": ("froze", "frozen"),
    "clamp": ("lowered the limit of", "lowered the limit of"),
    "terminate": ("asked to end", "asked to end"),
    "kill": ("killed", "killed"),
}
"""Weakest first: what was done, and the same after "would have"."""
_STRENGTH: Final = {step: place for place, step in enumerate(_STEPS)}
_DID: Final = {words: step for step, pair in _STEPS.items() for words in pair}
_DEED: Final = re.compile(
    r"(?P<would>would have )?(?P<did>" + "|".join(map(re.escape, _DID)) + r") (?P<name>.{1,1000}?)"
    r"(?:, \d{1,9} process|, first act after |; |\Z)",
    re.DOTALL,
)
_FAILED: Final = re.compile(
    r"(?P<step>" + "|".join(_STEPS) + r") of (?P<name>.{1,1000}?) failed: ", re.DOTALL
)
_FIRST_CLAUSE: Final = re.compile(r"(?:, |: |; | \(|\. (?=\D))")
_FROZEN_FIRST: Final = "frozen, then killed"
_SENTENCE: Final = re.compile(
    r": (?:it|they) (?:is|are|would be) (killed at once|sent SIGTERM|frozen, then)"
)
_DECIDED: Final = {
    "killed at once": ("decided to kill", "would have killed"),
    "sent SIGTERM": ("decided to ask to end", "would have asked to end"),
    "frozen, then": ("decided to freeze, then kill", f"would have {_FROZEN_FIRST}"),
}
"""What a judge's sentence ends with, where no line tells of the orders."""
_NOBODY: Final = "Nobody is killed: "
_NOTHING: Final = ". Nothing is done: "


class _Deed(NamedTuple):
    """What became of one order."""

    step: str
    name: str
    would: bool
    failed: bool


class _Line(NamedTuple):
    unix_seconds: float | None
    text: str


def guard_events(lines: Iterable[bytes], source: str) -> Iterator[RecentEvent]:
    """From lines of decisions.jsonl; what is of no decision is skipped."""
    by_decision: dict[str, list[_Line]] = {}
    for line in lines:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match told:
            case {"kind": "verdict" | "outcome" | "told", "sentence": str(text), "at": str(at)}:
                name = told.get("decision")
                if not isinstance(name, str) or not name:
                    continue
                rows = by_decision.setdefault(name[:_NAME_MOST], [])
                if told["kind"] == "verdict" and told.get("mode") == "observe":
                    text = _OBSERVING + text
                rows.append(_Line(_unix(at), text))
                rows += (_Line(None, order) for order in _ordered(told))
    for decision, rows in by_decision.items():
        times = [row.unix_seconds for row in rows if row.unix_seconds is not None]
        yield replace(
            guard_event([row.text for row in rows], decision),
            first_at_unix_seconds=min(times, default=None),
            last_at_unix_seconds=max(times, default=None), source=source,
        )  # fmt: skip


def _ordered(verdict: dict[str, Any]) -> Iterator[str]:
    """What it ordered, for a journal that ends before it tells what became of it."""
    orders = verdict.get("orders")
    for order in orders if isinstance(orders, list) else ():
        match order:
            case {"step": str(step), "name": str(name)} if step in _STEPS:
                yield f"{_ORDERED}{step} {name}"


def guard_event(texts: Sequence[str], decision: str) -> RecentEvent:
    """texts: all that was said of one decision, its cause first; without times."""
    texts = list(dict.fromkeys(text[:_TEXT_MOST] for text in texts))[:_DETAILS_MOST]
    deeds = [deed for text in texts if (deed := _deed(text))]
    causes = [text for text in texts if _deed(text) is None and not text.startswith(_ORDERED)]
    words, number = _done(deeds, causes) if deeds else _decided(texts, causes)
    if not words:
        words = _undone(causes)
    elif cause := _cause(causes):
        words = f"{words}: {cause}"
    return RecentEvent(
        kind="guard_decision", first_at_unix_seconds=None, last_at_unix_seconds=None,
        sentence=f"the guard {words}", details=tuple(texts), count=number, decision=decision,
    )  # fmt: skip


def one_for_each_decision(events: Iterable[RecentEvent]) -> Iterator[RecentEvent]:
    """What several logs tell of the same decision becomes one event; all others stay."""
    by_decision: dict[str, list[RecentEvent]] = {}
    for event in events:
        if event.decision:
            by_decision.setdefault(event.decision, []).append(event)
        else:
            yield event
    for same in by_decision.values():
        yield same[0] if len(same) == 1 else _joined(same)


def _joined(same: Sequence[RecentEvent]) -> RecentEvent:
    """Of the same decision; the journal of the guard tells most."""
    best = next((one for one in same if one.source == "guard"), same[0])
    texts = [text for one in (best, *same) for text in one.details]
    firsts = [t for one in same if (t := one.first_at_unix_seconds) is not None]
    lasts = [t for one in same if (t := one.last_at_unix_seconds) is not None]
    whole = guard_event(texts, best.decision)
    return replace(
        best, sentence=whole.sentence, details=whole.details, count=whole.count,
        first_at_unix_seconds=min(firsts, default=None),
        last_at_unix_seconds=max(lasts, default=None),
        more=next((one.more for one in same if one.more), ""),
    )  # fmt: skip


def _deed(text: str) -> _Deed | None:
    if found := _DEED.match(text):
        return _Deed(_DID[found["did"]], _short(found["name"]), bool(found["would"]), failed=False)
    if found := _FAILED.match(text):
        return _Deed(found["step"], _short(found["name"]), would=False, failed=True)
    return None


def _done(deeds: Sequence[_Deed], causes: Sequence[str]) -> tuple[str, int]:
    """The strongest of all that was done, to whom, and to how many."""
    best = max(deeds, key=lambda one: (_STRENGTH[one.step], not one.failed))
    names = list(dict.fromkeys(one.name for one in deeds if one._replace(name=best.name) == best))
    who = first(names, _NAMES_SHOWN)
    did, after_would = _STEPS[best.step]
    if best.failed:
        return f"could not {best.step} {who}", len(names)
    if not best.would:
        return f"{did} {who}", len(names)
    if best.step == "freeze" and any(_FROZEN_FIRST in cause for cause in causes):
        after_would = _FROZEN_FIRST
    return f"would have {after_would} {who}", len(names)


def _decided(texts: Sequence[str], causes: Sequence[str]) -> tuple[str, int]:
    """What was ordered; empty: nothing."""
    orders = [t[len(_ORDERED) :].partition(" ") for t in texts if t.startswith(_ORDERED)]
    orders = [order for order in orders if order[0] in _STEPS]
    if not orders:
        return "", 1
    step = max((order[0] for order in orders), key=_STRENGTH.__getitem__)
    names = list(dict.fromkeys(_short(name) for one, _, name in orders if one == step))
    is_observed = any(cause.startswith(_OBSERVING) for cause in causes)
    did = f"would have {_STEPS[step][1]}" if is_observed else f"decided to {step}"
    return f"{did} {first(names, _NAMES_SHOWN)}", len(names)


def _undone(causes: Sequence[str]) -> str:
    """Nothing was done, or nothing tells of it."""
    cause = causes[0] if causes else ""
    is_observed = cause.startswith(_OBSERVING)
    cause = cause.removeprefix(_OBSERVING)
    if _NOBODY in cause:
        words = "would have killed" if is_observed else "killed"
        return f"{words} nobody: {_clipped(cause.partition(_NOBODY)[2])}"
    if _NOTHING in cause:
        return f"only reports: {_clipped(cause.partition(_NOTHING)[0])}"
    # ``60 MiB left of 1.5 GiB. ns/hog is 205 MiB over ...: it is killed at once, ...``
    left, _, guilt = cause.partition(". ")
    if what := _SENTENCE.search(guilt):
        did = _DECIDED[what[1]][is_observed]
        return f"{did} {_short(guilt.partition(' ')[0])}: {_cause([left])}"
    return f"{'would have acted' if is_observed else 'says'}: {_clipped(cause)}"


def _cause(causes: Sequence[str]) -> str:
    """The first clause, which has the figure: ``151 MiB left of 1.5 GiB``."""
    if not causes:
        return ""
    text = causes[0].removeprefix(_OBSERVING)
    found = _FIRST_CLAUSE.search(text, 8)
    return _clipped(text[: found.start()] if found else text)


def _clipped(text: str) -> str:
    text = text.strip().removesuffix(".")
    return text if len(text) <= _CAUSE_MOST else text[: _CAUSE_MOST - 2].rstrip() + ".."


def _short(name: str) -> str:
    return name if len(name) <= _NAME_MOST else f"{name[: _NAME_MOST - 2]}.."


def _unix(text: str) -> float | None:
    """RFC 3339 in UTC, as the guard writes it."""
    try:
        return iso_datetime(text).timestamp()
    except ValueError:
        return None
