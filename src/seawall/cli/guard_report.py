# SPDX-License-Identifier: Apache-2.0
"""``seawall guard report``: would it have been right?  From journals and black boxes."""

import gc
import os
import re
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Final

from seawall.blackbox.record_times import DAY_SECONDS, rfc3339_of
from seawall.cli.progress import ProgressLine
from seawall.cli.source_options import BOX
from seawall.cli.verb import Head, Verb
from seawall.findings.blindness import NotSeen
from seawall.guard.tell.paths import DECISIONS, OLDER_DECISIONS, Paths
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.replay.report_all_nodes import ReportSource, report_of
from seawall.replay.report_files import read
from seawall.replay.report_model import GuardReport
from seawall.views.document import head
from seawall.views.terminal import Console

_SINCE: Final = re.compile(r"(\d{1,6})(s|min|h|d|w)?\Z", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)\Z", re.ASCII)
_UNITS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": DAY_SECONDS, "w": 7 * DAY_SECONDS}


class GuardReportVerb(Verb[GuardReport]):
    """Of this machine's own files, or of those that are given."""

    name = "guard-report"
    document_table = "seawall.replay.report_document:REPORT"

    def page(self) -> GuardReport:
        """UsageProblem when nothing of what is given can be used."""
        since = since_seconds(self.arguments.since)
        own = "" if self.arguments.files else os.uname().nodename
        paths = self.arguments.files or _own_files()
        gc.disable()  # a hundred thousand lines are kept, and none of them is in a cycle
        now = time.time()
        return report_of(_read(paths, own), now - since, now)

    def head(self, _page: GuardReport) -> Head:
        return head(self.name, Unread("journals", "absent", "of several nodes"), None)

    def has_heading(self, _page: GuardReport) -> bool:
        """It is of several nodes."""
        return False

    def text(self, page: GuardReport, paper: Console) -> Iterator[str]:
        from seawall.replay.report_text import lines  # noqa: PLC0415 - text alone

        yield f"guard report since {rfc3339_of(page.since_unix_seconds)}"
        yield from lines(page, paper, whole=self.arguments.whole)

    def unseen(self, page: GuardReport) -> Sequence[NotSeen]:
        """Files that could not be used."""
        return page.unseen


run = GuardReportVerb.run


def _read(paths: list[str], own: str) -> list[ReportSource]:
    """A full black box takes seconds: it says how far it is."""
    progress = ProgressLine("guard report")
    try:
        return read(paths, own, progress.tell)
    finally:
        progress.end()


def _own_files() -> list[str]:
    folder = Paths().folder
    names = [f"{folder}/{name}" for name in (DECISIONS, OLDER_DECISIONS)]
    there = [path for path in (*names, BOX) if os.path.exists(path)]
    if not there:
        raise UsageProblem(
            f"{names[0]} and {BOX}: neither is there; no guard has run here since the boot; "
            "or give the files of another node"
        )
    return there


def since_seconds(text: str) -> float:
    """How many seconds before now ``--since`` means; UsageProblem for what is no time."""
    words = text.strip()[:32]
    if match := _SINCE.match(words):
        return float(match[1]) * _UNITS[match[2] or "d"]
    if match := _DATE.match(words):
        try:
            day = datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=timezone.utc)
        except ValueError:
            day = None
        if day is not None and (ago := time.time() - day.timestamp()) > 0:
            return ago
    raise UsageProblem(f"--since {words!r}: expected 12h, 30d, 2w or a date like 2026-11-01")
