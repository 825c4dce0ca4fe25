# SPDX-License-Identifier: Apache-2.0
"""Printing findings as they become certain, each of them once."""

import sys
import time
from collections.abc import Iterable
from itertools import chain
from typing import Final

from seawall.findings.finding import Judged
from seawall.views.terminal import Paper
from seawall.views.why_json import order
from seawall.views.why_text import finding_lines

INFOS_TOLD_WHOLE: Final = 2
UNHURRIED_SECONDS: Final = 6.0
"""A healthy machine has answered everything by then; on one that thrashes each line that is
printed is code read back from a disk that is stuck."""


class Telling:
    """What was printed so far, so that a second look repeats nothing."""

    def __init__(self, paper: Paper, *, whole: bool) -> None:
        self._paper = paper
        self._whole = whole
        self._began = time.monotonic()
        self._told: dict[str, Judged] = {}

    def tell(self, phase: Iterable[Judged], first_look: Iterable[Judged] = ()) -> list[Judged]:
        """Print what fires; the phase's findings, without those of the first look."""
        settled: list[Judged] = []
        later: list[Judged] = []
        marked = chain(((i, True) for i in phase), ((i, False) for i in first_look))
        for item, is_settled in marked:
            if is_settled:
                settled.append(item)
            if item.finding.verdict != "fires" or item.muted is not None or self._has_told(item):
                continue
            self._told[item.key] = item
            if item.finding.severity == "critical" or self._is_slow():
                self._print(item, whole=self._whole)
            else:
                later.append(item)
        # With nothing worse to read, a few infos are told whole.
        mild = all(item.finding.severity == "info" for item in self._told.values())
        whole = self._whole or (mild and len(later) <= INFOS_TOLD_WHOLE)
        for item in sorted(later, key=order):
            self._print(item, whole=whole)
        return settled

    def take_back(self, judged: Iterable[Judged]) -> None:
        """Say of what the first look found, and the window did not bear out."""
        held = {item.key for item in judged if item.finding.verdict == "fires"}
        for key, item in self._told.items():
            if key not in held:
                print(f"\n{item.id} was seen at first and does not hold over the window.")

    def _is_slow(self) -> bool:
        return time.monotonic() - self._began > UNHURRIED_SECONDS

    def _has_told(self, item: Judged) -> bool:
        before = self._told.get(item.key)
        return before is not None and before.finding.severity == item.finding.severity

    def _print(self, item: Judged, *, whole: bool) -> None:
        hurried = not self._whole and self._is_slow()
        for line in finding_lines(item, self._paper, whole=whole, hurried=hurried):
            print(line)
        sys.stdout.flush()
