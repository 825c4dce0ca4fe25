# SPDX-License-Identifier: Apache-2.0
"""Who was over its own limit, or stuck at it, and was only reported.

With ``over_limit = "report"`` these are all that a guard says in months.  A report has no order,
so who is meant stands in its sentence alone (``guard/judge/over_limit.py``, ``stuck.py``).
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from seawall.replay.boot_story import BootStory
from seawall.replay.journal_lines import DecisionLine
from seawall.replay.report_model import LimitReport
from seawall.replay.report_names import kind_of

STUCK: Final = "stuck_at_limit"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE: Final = r"\d{1,9}(?:\.\d)? (?:B|[KMGTP]iB)"
# Up to the last place that fits: a name may hold the words behind it.
_OVER: Final = re.compile(
    rf"(?P<over>{_SIZE}) over its limit of (?P<limit>{_SIZE}): (?P<name>.*)"
    rf" has {_SIZE} charged and holds {_SIZE} (?:of uncounted memory|outside its cgroup) \(",
    re.DOTALL,
)
_STUCK: Final = re.compile(
    rf"(?P<name>.*) has stood at its limit(?: of (?P<limit>{_SIZE}))? for ", re.DOTALL
)


class OverLimitRow(NamedTuple):
    """One workload, on all nodes together."""

    name: str
    """As ``kind_of`` has it."""
    names: tuple[str, ...]
    """In full, the most overrun first."""
    reports: int
    nodes: tuple[str, ...]
    first_unix_seconds: float
    last_unix_seconds: float
    most: LimitReport
    """The report of its largest overrun."""

    @property
    def is_stuck(self) -> bool:
        """It hung at its limit, and was not over it."""
        return self.most.trigger == STUCK


def reported_in(node: str, story: BootStory, since: float) -> list[LimitReport]:
    """Of one boot since then (Unix seconds); also those that came just before an occasion."""
    return [
        _reported(node, said) for said in story.decision_lines
        if said.kind == "verdict" and not said.aims and said.trigger != "node_short"
        and said.unix_seconds >= since
    ]  # fmt: skip


def _reported(node: str, said: DecisionLine) -> LimitReport:
    found = (_STUCK if said.trigger == STUCK else _OVER).match(said.sentence)
    told = found.groupdict() if found else {}
    over = None
    if said.trigger != STUCK:
        over = max(0, said.need_bytes) or _bytes_in(told.get("over"))
    return LimitReport(
        node, said.unix_seconds, said.decision, said.trigger, told.get("name") or "", over,
        _bytes_in(told.get("limit")),
    )  # fmt: skip


def _bytes_in(words: str | None) -> int | None:
    """The opposite of ``words.size``."""
    if not words:
        return None
    number, _, unit = words.partition(" ")
    return round(float(number) * (1 << 10 * _UNITS.index(unit)))


def over_limits(reported: Iterable[LimitReport]) -> list[OverLimitRow]:
    """By workload: the most overrun first, those that are stuck last."""
    found: dict[tuple[bool, str], list[LimitReport]] = {}
    for one in reported:
        found.setdefault((one.trigger == STUCK, kind_of(one.name)), []).append(one)
    rows = [_row(name, some) for (_, name), some in found.items()]
    return sorted(rows, key=lambda row: (*_order(row.most), -row.reports, row.name))


def _row(name: str, some: list[LimitReport]) -> OverLimitRow:
    some.sort(key=_order)
    times = [one.unix_seconds for one in some]
    return OverLimitRow(
        name, tuple(dict.fromkeys(one.name for one in some)), len(some),
        tuple(dict.fromkeys(one.node for one in some)), min(times), max(times), some[0],
    )  # fmt: skip


def _order(one: LimitReport) -> tuple[bool, int]:
    return one.trigger == STUCK, -(one.over_bytes or 0)
