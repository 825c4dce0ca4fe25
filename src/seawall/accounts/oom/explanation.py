# SPDX-License-Identifier: Apache-2.0
"""One OOM report in plain words: what ``seawall oom explain`` says, before it has a form."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from seawall.accounts.oom.advice import advice, verdict, why_this_one
from seawall.accounts.oom.anomalies_choice import choice_anomalies
from seawall.accounts.oom.anomalies_memory import memory_anomalies
from seawall.accounts.oom.anomalies_report import report_anomalies
from seawall.accounts.oom.anomaly import Anomaly
from seawall.accounts.oom.facts import Facts, Hints, facts_of
from seawall.accounts.oom.series import Series
from seawall.accounts.oom.told_choice import told_choice
from seawall.accounts.oom.told_owner import told_owner
from seawall.accounts.oom.told_request import told_request
from seawall.accounts.oom.told_return import told_return
from seawall.accounts.oom.told_shortage import told_shortage
from seawall.readings.oom_log.report import OomReport

BUG: Final = "seawall-bug"
"""The anomaly of a report that Seawall could not explain whole."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its sentences."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A report and everything that can be said about it."""

    number: int
    """Of the report in its log, from 1."""
    facts: Facts
    verdict: str
    """What happened, to whom."""
    why: str
    """Why this one, in a sentence."""
    advice: str
    """One line: what to do."""
    sections: tuple[Section, ...]
    anomalies: tuple[Anomaly, ...]


@dataclass(slots=True)
class _Teller:
    """Asks for one part after the other; a guarded one survives a bug in one of them."""

    facts: Facts
    is_guarded: bool
    bugs: list[Anomaly] = field(default_factory=list)

    def words(self, part: str, tell: Callable[[Facts], str]) -> str:
        """One sentence."""
        return " ".join(self.sentences(part, lambda facts: [tell(facts)]))

    def sentences(self, part: str, tell: Callable[[Facts], Iterable[str]]) -> tuple[str, ...]:
        """Several."""
        try:
            return tuple(tell(self.facts))
        except Exception as error:  # a log of thousands of reports must not end at one
            if not self.is_guarded:
                raise
            return (f"Not told: {self._bug(part, error)}.",)

    def anomalies(self, tell: Callable[[Facts], Iterable[Anomaly]]) -> tuple[Anomaly, ...]:
        """What is wrong."""
        try:
            return tuple(tell(self.facts))
        except Exception as error:  # as above
            if not self.is_guarded:
                raise
            self._bug("what is wrong", error)
            return ()

    def _bug(self, part: str, error: Exception) -> str:
        words = f"a bug in Seawall ({type(error).__name__})"
        text = f"{words} keeps a part of this report from being told: {part}. Please report it."
        self.bugs.append(Anomaly(BUG, text[0].upper() + text[1:]))
        return words


def explain(
    report: OomReport,
    hints: Hints | None = None,
    *,
    number: int = 1,
    series: Series | None = None,
    is_guarded: bool = False,
) -> Explanation:
    """``series`` knows the reports before this one in the same log.

    ``is_guarded``: a bug in one part is an anomaly of this report and no error.
    """
    facts = facts_of(report, hints)
    teller = _Teller(facts, is_guarded)
    after = series.after if series is not None else lambda _: []
    anomalies = [
        anomaly
        for tell in (report_anomalies, choice_anomalies, after, memory_anomalies)
        for anomaly in teller.anomalies(tell)
    ]
    return Explanation(
        number=number,
        facts=facts,
        verdict=teller.words("the verdict", verdict),
        why=teller.words("why this one", why_this_one),
        advice=teller.words("what to do", advice),
        sections=tuple(_sections(teller)),
        anomalies=(*anomalies, *teller.bugs),
    )


def explain_all(
    reports: Iterable[OomReport],
    hints: Hints | None = None,
    *,
    series: Series | None = None,
    after: int = 0,
    is_guarded: bool = False,
) -> Iterator[Explanation]:
    """One after the other; nothing of an earlier report is kept but its kill's size and time.

    ``series`` and ``after``: the kills before these, and how many they were.
    """
    series = series or Series()
    for number, report in enumerate(reports, after + 1):
        yield explain(report, hints, number=number, series=series, is_guarded=is_guarded)


def _sections(teller: _Teller) -> Iterator[Section]:
    rows = (
        ("asked", told_request),
        ("short", told_shortage),
        ("whose", told_owner),
        ("chosen", told_choice),
        ("given back", told_return),
    )
    for title, tell in rows:
        if told := teller.sentences(title, tell):
            yield Section(title, told)
