# SPDX-License-Identifier: Apache-2.0
"""A host whose slow probes are answered later: the answer is "not yet" first, and the question is
noted for the child.  An answer that grew old stays until the next one is there: what is held must
not seem to be gone just because it is asked for again.  ``oldest`` tells of when it is.
"""

import time
from typing import Final

from seawall.host.host import JSON, Host, Unread
from seawall.host.overlay_host import OverlayHost
from seawall.host.slow_probes import SLOW_PROBES
from seawall.watcher.watcher_reader import Question, WatcherReader

_KEPT_MOST: Final = 16
DEAR: Final = frozenset({"driver_files", "driver_mappings"})
"""They look into every process, and while the child does that nothing else is asked."""
DEAR_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 1.0
PATIENCE: Final = 4
"""So long, and so many times what the last one took, they wait for the others: those are wanted
again after every answer while the watcher is fast, and would be first for ever.
"""
REST_SECONDS: Final = 0.4
"""After an answer, or as long as it took: the child takes half a CPU at the most."""
_REST_SHARE_HURRIED: Final = 0.1
"""Of what it took: while seconds are left, an answer is worth its CPU."""
_NOT_YET: Final = "asked now; told at one of the next looks"


class DeferredHost(OverlayHost):
    """``host`` for everything but slow probes, which ``asker`` answers.  An overlay whose answers
    come while it is used, each with a time at which it was asked for and one at which it came.
    """

    def __init__(self, host: Host, asker: WatcherReader) -> None:
        super().__init__(host, {})
        self._asker = asker
        self._answered: dict[Question, tuple[float, float, JSON | Unread]] = {}
        """When it was asked, when answered, and with what."""
        self._asked = self._since = self._dear_since = self._rest_until = 0.0
        self._wanted: dict[Question, float] = {}
        self._dear_took = dict.fromkeys(DEAR, 0.0)
        self.may_ask = True
        """False: what is not known already is not asked for."""
        self.is_hurried = False
        """Seconds are left."""
        self.oldest: float | None = None
        """When the oldest answer that was given since ``refresh`` was asked for."""

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        if probe not in SLOW_PROBES:
            return super().ask(probe, argument)
        question = Question(probe, argument)
        known = self._answered.get(question)
        since = self._dear_since if probe in DEAR else self._since
        if self.may_ask and (known is None or known[1] < since):
            self._wanted.setdefault(question, time.monotonic())
        if known is None:
            return Unread(probe, "not_reached", _NOT_YET)
        self.oldest = known[0] if self.oldest is None else min(self.oldest, known[0])
        return known[2]

    @property
    def is_idle(self) -> bool:
        """Nothing is asked, and nothing is to be."""
        return not self._wanted and self._asker.is_free

    def refresh(self, older_seconds: float) -> None:
        """Answers that are older will be asked for again when they are used."""
        now = time.monotonic()
        self._since = now - older_seconds
        self._dear_since = now - max(older_seconds, DEAR_SECONDS)
        self.oldest = None

    def go_on(self) -> bool:
        """Fetch an answer and ask what is wanted next; whether something new is known."""
        told, now = self._asker.take(), time.monotonic()
        if told is not None:
            took = now - self._asked
            if told[0].probe in DEAR:
                self._dear_took[told[0].probe] = took
            rest = took * _REST_SHARE_HURRIED if self.is_hurried else max(REST_SECONDS, took)
            self._rest_until = now + rest
            if len(self._answered) >= _KEPT_MOST:
                del self._answered[min(self._answered, key=lambda q: self._answered[q][1])]
            self._answered[told[0]] = self._asked, now, told[1]
            self._wanted.pop(told[0], None)  # wanted again while it was on its way
        if self._wanted and self._asker.is_free and now >= self._rest_until:
            question = min(self._wanted, key=self._turn)
            del self._wanted[question]
            self._asked = now
            self._asker.ask(question, SLOW_PROBES[question.probe].deadline_seconds + 0.5)
        return told is not None

    def _turn(self, question: Question) -> float:
        """The smallest is asked next."""
        took = self._dear_took.get(question.probe)
        waits = 0.0 if took is None else PATIENCE_SECONDS + PATIENCE * took
        return self._wanted[question] + waits
