# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain --from BLACKBOX FILE``: who held uncounted memory when a report was
written, as the black box of that machine has it.

A report counts what cgroups and processes hold; on a node that ran out of uncounted memory it names
an innocent.  The two are brought together by the kill itself, which the black box has too: logs
give a date without its zone, or without its year.
"""

import math
from argparse import Namespace
from typing import TYPE_CHECKING, Final

from seawall.accounts.claims.claims import Claims
from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.oom.report_facts import Hints
from seawall.cli.oom_live import hints_of
from seawall.cli.source_options import open_source
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.kernel import Kernel
from seawall.sources.box_lines import lines_between
from seawall.sources.box_source import BoxSource
from seawall.views.uncounted_moment import UncountedMoment

if TYPE_CHECKING:
    from seawall.accounts.oom.explanation import Explanation
    from seawall.readings.snapshot import Snapshot

FAR_SECONDS: Final = 90.0
"""Of what was held so long before a report nothing is said of it; in peace whole passes are a
minute apart."""
_WHAT: Final = "who held uncounted memory then"


class BoxBesideLog:
    """The black box that stands beside a log."""

    def __init__(self, arguments: Namespace) -> None:
        """UsageProblem where it is none."""
        self._arguments = arguments
        source = open_source(arguments)
        if not isinstance(source, BoxSource):
            raise UsageProblem(
                f"--from {arguments.bundle} and FILE: give one of them; beside a FILE --from takes"
                " the black box of its machine"
            )
        self._source = source

    def hints(self) -> Hints:
        """What the box knows of the machine; of its last boot."""
        return hints_of(self._arguments, self._source)

    def moment(self, told: "Explanation | None") -> UncountedMoment | NotSeen:
        """At the time of a report, or where ``--at`` says."""
        source, where = self._source, "--at"
        wanted = source.asked_unix_seconds
        if self._arguments.at is None:
            wanted, where = self._time_of(told) if told else (None, "")
            if wanted is None:
                why = "the black box has not this kill, and the report no time to ask it for"
                return NotSeen(_WHAT, why, "--at TIME, a moment of the black box")
            again = Namespace(**{**vars(self._arguments), "at": f"@{wanted:.3f}"})
            try:
                source = open_source(again)  # type: ignore[assignment] # the same box
            except UsageProblem as problem:
                return NotSeen(_WHAT, str(problem), "a black box of that time, or --at TIME")
        return _moment_of(source.first, wanted, where)

    def _time_of(self, told: "Explanation") -> tuple[float | None, str]:
        facts, where = told.facts, f"report {told.number}"
        kill = f"rocess {facts.chosen_pid} ({facts.chosen_comm})"
        box = self._source.box
        lines = lines_between(box, 0.0, math.inf) if box and facts.chosen_pid else []
        for line in reversed(lines):
            if line.kind == "kernel" and kill in line.words:
                return line.unix_seconds, where
        return facts.at_unix_seconds, f"{where}, by its own clock"


def _moment_of(first: "Snapshot", wanted: float | None, where: str) -> UncountedMoment | NotSeen:
    kernel, ledger, claims = first.get(Kernel), first.get(FullLedger), first.get(Claims)
    then = None if isinstance(kernel, Unread) else kernel.taken_at_unix_seconds
    if isinstance(ledger, Unread) or then is None:
        why = ledger.detail or ledger.why if isinstance(ledger, Unread) else "it tells no time"
        return NotSeen(_WHAT, why, "a black box with whole passes")
    before = max(0.0, (wanted or then) - then)
    if before > FAR_SECONDS:
        why = f"the last moment of the black box before it is {before:,.0f} s older"
        return NotSeen(_WHAT, why, "a black box of that time, or --at TIME")
    return UncountedMoment(then, before, where, ledger.ledger, claims)
