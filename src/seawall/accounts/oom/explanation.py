# SPDX-License-Identifier: Apache-2.0
"""One OOM report in plain words: what ``seawall oom explain`` says, before it has a form."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from seawall.accounts.oom.advice import advice, verdict, why_this_one
from seawall.accounts.oom.anomalies_choice import choice_anomalies
from seawall.accounts.oom.anomalies_memory import memory_anomalies
from seawall.accounts.oom.anomalies_report import report_anomalies
from seawall.accounts.oom.anomaly import Anomaly
from seawall.accounts.oom.choice_sentences import choice_sentences
from seawall.accounts.oom.owner_sentences import owner_sentences
from seawall.accounts.oom.report_facts import Hints, ReportFacts, facts_of
from seawall.accounts.oom.request_sentences import request_sentences
from seawall.accounts.oom.return_sentences import return_sentences
from seawall.accounts.oom.series import Series
from seawall.accounts.oom.shortage_sentences import shortage_sentences
from seawall.readings.oom_log.oom_report import OomReport

BUG: Final = "seawall-bug"
"""The anomaly of a report that Seawall could not explain whole."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its sentences."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """The words of a report."""

    verdict: str
    why: str
    advice: str
    sections: tuple[Section, ...]
    anomalies: tuple[Anomaly, ...]


@dataclass(eq=False)
class Explanation:
    """A report and everything that can be said about it.

    The words are made when the first of them is asked for: of thousands of reports a page shows
    one.
    """

    number: int
    """Of the report in its log, from 1."""
    facts: ReportFacts
    _tell: Callable[[], _Told]

    @cached_property
    def _told(self) -> _Told:
        return self._tell()

    @property
    def verdict(self) -> str:
        """What happened, to whom."""
        return self._told.verdict

    @property
    def why(self) -> str:
        """Why this one, in a sentence."""
        return self._told.why

    @property
    def advice(self) -> str:
        """One line: what to do."""
        return self._told.advice

    @property
    def sections(self) -> tuple[Section, ...]:
        """The details of the report: sections, each a heading and its sentences."""
        return self._told.sections

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """What is wrong with this kill or its report, each with an id for programs."""
        return self._told.anomalies

    def complete(self) -> "Explanation":
        """With all its words made."""
        _ = self._told
        return self


@dataclass(slots=True)
class _Teller:
    """Asks for one part after the other; a guarded one survives a bug in one of them."""

    facts: ReportFacts
    is_guarded: bool
    bugs: list[Anomaly] = field(default_factory=list)

    def words(self, part: str, tell: Callable[[ReportFacts], str]) -> str:
        """The one sentence that ``tell`` makes; ``part`` names it should a bug keep it from being
        told.
        """
        return " ".join(self.sentences(part, lambda facts: [tell(facts)]))

    def sentences(self, part: str, tell: Callable[[ReportFacts], Iterable[str]]) -> tuple[str, ...]:
        """The sentences that ``tell`` makes; guarded, a bug leaves a sentence that says so."""
        try:
            return tuple(tell(self.facts))
        except Exception as error:  # a log of thousands of reports must not end at one
            if not self.is_guarded:
                raise
            return (f"Not told: {self._bug(part, error)}.",)

    def anomalies(self, tell: Callable[[ReportFacts], Iterable[Anomaly]]) -> tuple[Anomaly, ...]:
        """The anomalies that ``tell`` finds; guarded, a bug leaves none and goes to ``bugs``."""
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
    before = series.free_before_bytes(report) if series is not None else None
    facts = facts_of(report, hints, before)
    teller = _Teller(facts, is_guarded)
    repeated = teller.anomalies(series.after) if series is not None else ()
    made = Explanation(number, facts, lambda: _tell(teller, repeated))
    return made if is_guarded else made.complete()


def _tell(teller: _Teller, repeated: tuple[Anomaly, ...]) -> _Told:
    """``repeated``: what the reports before it add."""
    anomalies = (
        *teller.anomalies(report_anomalies),
        *teller.anomalies(choice_anomalies),
        *repeated,
        *teller.anomalies(memory_anomalies),
    )
    return _Told(
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


def wholeness(report: OomReport) -> int:
    """How much of it the log has: the kernel itself cuts all but ten reports in five seconds."""
    if report.kills and not (report.is_cut or report.is_headless):
        return 3
    if report.tasks and report.choice is not None:
        return 2
    return 1 if report.tasks or report.memory is not None or report.mem_info is not None else 0


def _sections(teller: _Teller) -> Iterator[Section]:
    rows = (
        ("asked", request_sentences),
        ("short", shortage_sentences),
        ("whose", owner_sentences),
        ("chosen", choice_sentences),
        ("given back", return_sentences),
    )
    for title, tell in rows:
        if told := teller.sentences(title, tell):
            yield Section(title, told)
