# SPDX-License-Identifier: Apache-2.0
"""Rounds of answers (``host/recording.py``) in frames: each as what is new since the one before.

A body::

    {"key": bool, "step": n, "of": "light", "words": [...], "folders": [...],
     "files":  {"new": [[folder, name, name]], "is": [gap, answer, gap, answer],
                "also": [number], "gone": [number]},
     "names": {...}, "links": {...}, "probes": {...}}

Paths are numbers (``words.py``), and each question gets one in the order in which it came (``new``;
of a probe its name and arguments), from a ``key`` body on, which knows nothing of what was before
it.  Rounds ``of`` one series ask the same: what is neither ``is`` nor ``gone`` was asked again, and
answered as it was last known.  ``also``: the series asks from here on what another one has asked
already.  Numbers of questions are steps: 3, 4, 6 is 3, 1, 2; the gaps of ``is`` leave out one more.

An answer: of a file a text or a change of it (``text_changes.py``), of a folder ``{"n": names}`` or
``{"+": names, "-": names}``, of a link a text, of a probe ``{"a": answer}``; of each
``{"u": [why, detail]}`` (with a third word: the path, where it is not the question's own).

``step`` counts from the key: a reader that has missed one waits for the next key.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from seawall.blackbox import answers
from seawall.blackbox.answers import Question
from seawall.blackbox.path_numbers import WordDecoder, WordEncoder, listed
from seawall.host.host import JSON
from seawall.host.recording import Round
from seawall.problems import BundleProblem

QUESTIONS_MOST: Final = 400_000
KNOWN_MOST_CHARACTERS: Final = 64 << 20
SERIES_MOST: Final = 8
_SECTIONS: Final = ("files", "names", "links", "probes")


class SeriesRound(NamedTuple):
    """A round of answers, and the series that it is of."""

    of: str
    """Its series: ``full``, ``light`` or ``quick``."""
    round: Round


class RoundWriter:
    """Bodies of one chain, in order.  Nothing is kept of a round but its answers."""

    def __init__(self) -> None:
        self._step = 0

    def body(self, round_: Round, of: str, *, is_key: bool = False) -> dict[str, JSON]:
        """Of the next round of a series; the first of a writer is a key anyway."""
        if is_key or not self._step:
            self._step = 0
            self._words = WordEncoder()
            self._sections = {name: _Told(name, self._words) for name in _SECTIONS}
        body: dict[str, JSON] = {"key": not self._step, "step": self._step, "of": of}
        self._step += 1
        parts = {
            name: part
            for name, section in self._sections.items()
            if (part := section.tell(of, getattr(round_, name)))
        }
        return {**body, **self._words.news(), **parts}


class RoundReader:
    """Rounds of answers, read back body by body from what the writer of frames wrote."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._words = WordDecoder()
        self._sections: dict[str, _Known] = {}

    def take(self, body: dict[str, JSON]) -> SeriesRound | None:
        """The round of the next body; None until a key when one before it is missing.

        BundleProblem when it is none of ours.
        """
        try:
            return self._take(body)
        except (ValueError, RecursionError) as error:
            self._step = None
            raise BundleProblem(
                f"a round of the black box is malformed ({error}); read from the next key on"
            ) from error

    def _take(self, body: dict[str, JSON]) -> SeriesRound | None:
        step, of = body.get("step"), body.get("of")
        if type(step) is not int or not isinstance(of, str):
            raise ValueError("expected a step and a series")
        if body.get("key") is True:
            self._step = step
            self._words = WordDecoder()
            self._sections = {name: _Known(name, self._words) for name in _SECTIONS}
        if self._step is None or step != self._step:
            self._step = None
            return None
        self._step = step + 1
        self._words.learn(body.get("words"), body.get("folders"))
        round_ = Round()
        for name, section in self._sections.items():
            section.learn(of, body.get(name))
            getattr(round_, name).update(section.of_series(of))
        if sum(section.characters for section in self._sections.values()) > KNOWN_MOST_CHARACTERS:
            raise ValueError("more than any machine answers")
        return SeriesRound(of, round_)


class _Told:
    """What the other end knows of one section."""

    def __init__(self, name: str, words: WordEncoder) -> None:
        self._name, self._words = name, words
        self._numbers: dict[Question, int] = {}
        self._known: dict[Question, Any] = {}
        self._asked: dict[str, set[Question]] = {}

    def tell(self, of: str, found: dict[Question, Any]) -> dict[str, JSON]:
        """What is new in these answers."""
        numbers, known, asked = self._numbers, self._known, self._asked.get(of, set())
        new = [question for question in found if question not in numbers]
        for question in new:
            numbers[question] = len(numbers)
        fresh = set(new)
        parts: dict[str, JSON] = {
            "new": self._grouped(new),
            "is": self._changes(found),
            "also": _steps(numbers[q] for q in found if q not in asked and q not in fresh),
            "gone": _steps(numbers[q] for q in asked if q not in found),
        }
        self._asked[of] = set(found)
        known.update(found)
        return {name: part for name, part in parts.items() if part}

    def _changes(self, found: dict[Question, Any]) -> list[JSON]:
        known, numbers = self._known, self._numbers
        changed = [q for q in found if q not in known or not answers.is_same(known[q], found[q])]
        rows: list[JSON] = []
        last = -1
        for question in sorted(changed, key=numbers.__getitem__):
            before, number = known.get(question), numbers[question]
            told = answers.encode_answer(self._name, question, before, found[question], self._words)
            rows += (number - last - 1, told)
            last = number
        return rows

    def _grouped(self, questions: list[Question]) -> list[JSON]:
        """``[[folder, name, name], ...]``, in their order."""
        groups: list[list[int]] = []
        for question in questions:
            if isinstance(question, str):
                folder, name = self._words.path(question)
            else:
                folder, name = (self._words.word(word) for word in question)
            if not groups or groups[-1][0] != folder:
                groups.append([folder])
            groups[-1].append(name)
        return cast("list[JSON]", groups)


class _Known:
    """One section, as far as it was told."""

    def __init__(self, name: str, words: WordDecoder) -> None:
        self._name, self._words = name, words
        self._questions: list[Question] = []
        self._answers: list[Any] = []
        self._asked: dict[str, set[int]] = {}
        self.characters = 0

    def learn(self, of: str, told: JSON) -> None:
        """Of one body; ValueError."""
        if told is not None and not isinstance(told, dict):
            raise ValueError("a section is an object")
        told = told or {}
        asked = self._asked.setdefault(of, set())
        if len(self._asked) > SERIES_MOST:
            raise ValueError("too many series")
        for question in self._new(told.get("new")):
            asked.add(len(self._questions))
            self._questions.append(question)
            self._answers.append(None)
            self.characters += sum(map(len, question)) + 64
            self._bound()
        for number, answer in self._rows(told.get("is")):
            before, question = self._answers[number], self._questions[number]
            after = answers.decode_answer(self._name, question, before, answer, self._words)
            self.characters += answers.length(after) - answers.length(before)
            self._answers[number] = after
            self._bound()
        asked.update(self._numbers(told.get("also")))
        asked.difference_update(self._numbers(told.get("gone")))

    def of_series(self, of: str) -> Iterator[tuple[Question, Any]]:
        """What a round of the series asked, with the answers."""
        for number in sorted(self._asked.get(of, ())):
            answer = self._answers[number]
            if answer is None:
                raise ValueError("a question without an answer")
            yield self._questions[number], answer[0] if isinstance(answer, list) else answer

    def _bound(self) -> None:
        if self.characters > KNOWN_MOST_CHARACTERS or len(self._questions) > QUESTIONS_MOST:
            raise ValueError("more than any machine is asked")

    def _new(self, groups: JSON) -> Iterator[Question]:
        words = self._words
        for group in listed(groups):
            match group:
                case [folder, *names] if self._name == "probes":
                    yield from ((words.word(folder), words.word(name)) for name in names)
                case [folder, *names]:
                    yield from (words.path(folder, name) for name in names)
                case _:
                    raise ValueError("a question has a folder")

    def _rows(self, rows: JSON) -> Iterator[tuple[int, JSON]]:
        """In ascending order, so that nothing is changed twice in one body."""
        pairs = listed(rows)
        if len(pairs) % 2:
            raise ValueError("an answer without its question")
        number = -1
        for gap, answer in zip(pairs[::2], pairs[1::2], strict=True):
            number += 1 + _step(gap)
            if number >= len(self._questions):
                raise ValueError("an answer to nothing")
            yield number, answer

    def _numbers(self, steps: JSON) -> Iterator[int]:
        number = 0
        for step in listed(steps):
            number += _step(step)
            if number >= len(self._questions):
                raise ValueError("a number that nobody gave")
            yield number


def _steps(numbers: Iterable[int]) -> list[JSON]:
    """Ascending numbers as steps from one to the next."""
    ordered = sorted(numbers)
    return [number - last for number, last in zip(ordered, [0, *ordered], strict=False)]


def _step(step: JSON) -> int:
    if type(step) is not int or not 0 <= step < QUESTIONS_MOST:
        raise ValueError("numbers go backwards")
    return step
