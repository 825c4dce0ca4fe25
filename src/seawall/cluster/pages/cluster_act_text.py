# SPDX-License-Identifier: Apache-2.0
"""A deed as text: one screen of 24 lines, what is lost for good before what is written."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from seawall.cluster.pages.cluster_act_page import ActStep, BrakeAnswer, ClusterActPage
from seawall.cluster.pages.cluster_words import ago
from seawall.findings.blindness import NotSeen
from seawall.views.document import taken_at
from seawall.views.terminal import Console, plain, shorten
from seawall.words import counted, first

_LABEL: Final = 9
_STEPS_SHOWN: Final = 6
_STEP_LINES: Final = 3
_UNSEEN_SHOWN: Final = 2
_NODES_SHOWN: Final = 5
_VALUE_LETTERS: Final = 32
_LEVELS: Final = {"partly": "warning", "needs yes": "warning"}
_LOUD: Final = ("refused", "left")
_TAKEN_BACK: Final = "take back"
_ENDINGS: Final = {
    "planned": "NOTHING WAS WRITTEN: a dry run. Without --dry-run it is.",
    "needs yes": "NOTHING WAS WRITTEN: pods would be deleted. With --yes it is.",
    "nothing": "Nothing was written: there is nothing left to do.",
}


def act_lines(page: ClusterActPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: every step and node, however many lines that takes."""
    top = f"cluster: {page.source}, as of {taken_at(page.as_of_unix_seconds)}"
    yield paper.paint(shorten(plain(top), paper.width), "dim")
    yield ""
    for line in paper.wrap(page.headline):
        yield paper.paint(line, _LEVELS.get(page.outcome, "bold"))
    for line in _part(paper, "for good", page.lost):
        yield paper.paint(line, "warning")
    yield from _steps(page.steps, paper, whole=whole)
    yield from _guards(page, paper, whole=whole)
    yield from _part(paper, "then", page.effects)
    label = _TAKEN_BACK if page.is_taken_back else "look"
    for number, command in enumerate(page.commands):
        yield _label(label if not number else "") + plain(command)
    yield from _unseen(page.unseen, paper, whole=whole)
    if words := _ENDINGS.get(page.outcome):
        yield ""
        yield paper.paint(words, "bold")


def step_words(step: ActStep) -> str:
    """``patch Job batch/etl: /spec/suspend false -> true``, and what became of it."""
    place = f"{step.namespace}/{step.name}" if step.namespace else step.name
    words = f"{step.what} {step.kind} {place}"
    if step.path:
        words += f": {step.path} {_value(step.before)} -> {_value(step.after)}"
    if step.result not in ("done", "planned"):
        words += f" - {step.result.upper() if step.result in _LOUD else step.result}"
    return f"{words}: {step.words}" if step.words else words


def _steps(steps: Sequence[ActStep], paper: Console, *, whole: bool) -> Iterator[str]:
    """Those that were not made first: they are what somebody has to look at."""
    ordered = sorted(steps, key=lambda one: one.result not in _LOUD)
    shown = ordered if whole else ordered[:_STEPS_SHOWN]
    is_plan = any(one.result == "planned" for one in steps)
    label = "to write" if is_plan else "written"
    for number, step in enumerate(shown):
        yield from _step(step, label if not number else "", paper, None if whole else _STEP_LINES)
    if more := len(ordered) - len(shown):
        yield f"{_label('')}and {counted(more, 'write')} more: --whole"


def followed_lines(step: ActStep, paper: Console) -> Iterator[str]:
    """One step by itself, as it is made."""
    return _step(step, "to write" if step.result == "planned" else "written", paper, None)


def unfollowed(page: ClusterActPage) -> ClusterActPage:
    """For who has followed its steps: those alone that somebody has to look at."""
    return replace(page, steps=tuple(one for one in page.steps if one.result in _LOUD))


def _step(step: ActStep, label: str, paper: Console, most: int | None) -> Iterator[str]:
    lines = list(paper.wrap(step_words(step), " " * (_LABEL + 3), _label(label)))
    for line in lines[:most]:
        yield paper.paint(line, "warning") if step.result in _LOUD else line


def _guards(page: ClusterActPage, paper: Console, *, whole: bool) -> Iterator[str]:
    if not page.guards:
        return
    observing = [one for one in page.guards if one.state == "observes"]
    rest = [one for one in page.guards if one.state != "observes"]
    most = len(page.guards) if whole else _NODES_SHOWN
    if observing:
        nodes = first([one.node for one in observing], most)
        words = f"{counted(len(observing), 'guard')} said so since: {nodes}"
        yield from _part(paper, "observe", [words])
    for number, one in enumerate(rest if whole else rest[:_NODES_SHOWN]):
        label = _label("NOT" if not number else "")
        words = f"{one.node}: {_guard_words(one, page.as_of_unix_seconds)}"
        for line in paper.wrap(words, " " * (_LABEL + 1), label):
            yield paper.paint(line, "warning")
    more = len(rest) - most
    if more > 0:
        yield f"{_label('')}and {counted(more, 'node')} more: --whole"


def _guard_words(one: BrakeAnswer, now: float) -> str:
    if one.said_at_unix_seconds is None:
        return one.words
    return f"{one.words}; said {one.mode or 'nothing'} {ago(one.said_at_unix_seconds, now)}"


def _unseen(rows: Sequence[NotSeen], paper: Console, *, whole: bool) -> Iterator[str]:
    shown = rows if whole else rows[:_UNSEEN_SHOWN]
    words = [f"{row.what}: {row.why}" for row in shown]
    if more := len(rows) - len(shown):
        words[-1] += f" (and {more} more: --whole)"
    yield from _part(paper, "unseen", words)


def _value(text: str | None) -> str:
    """A long list by its length: which entries differ stands in the document."""
    if text is None:
        return "absent"
    if len(text) <= _VALUE_LETTERS:
        return text
    try:
        value: Any = json.loads(text)
    except ValueError:
        return shorten(text, _VALUE_LETTERS)
    if isinstance(value, list):
        return f"[{counted(len(value), 'entry', 'entries')}]"
    return shorten(text, _VALUE_LETTERS)


def _label(word: str) -> str:
    return f"{word:{_LABEL}} "


def _part(paper: Console, label: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield from paper.wrap(text, " " * (_LABEL + 1), _label(label if not number else ""))
