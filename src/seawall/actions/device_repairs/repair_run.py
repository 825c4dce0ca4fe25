# SPDX-License-Identifier: Apache-2.0
"""One ``gpu repair --do``: until when, for whom, what was seen last; and how a step of it went."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.devices.repairs.repair_plan import plan_of
from seawall.accounts.devices.repairs.step import RepairPlan, RepairScope, State
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.watchdog import Slot
from seawall.readings.snapshot import Snapshot

HOST_ROOT: Final = "/"


class RepairStepOutcome(NamedTuple):
    """How one step of a repair went: its state, in words, and whether that was verified."""

    state: State
    words: str
    is_verified: bool = False
    """By looking anew; of a step that was skipped: it is not needed."""


@dataclass(slots=True)
class RepairRun:
    """One run of ``gpu repair --do``: what is to be repaired, until when, and the last snapshot."""

    scope: RepairScope
    until: float
    """The monotonic second after which nothing is waited for."""
    kubeconfig: str | None
    say: Callable[[str], None]
    snapshot: Snapshot
    slot: Slot | None = None
    """Where the open question is noted."""

    def seconds_left(self) -> float:
        """At least a little: who asks for none is told that it took too long."""
        return max(0.1, self.until - time.monotonic())

    def look(self) -> Snapshot:
        """A new snapshot of the live host, kept in ``snapshot``."""
        self.snapshot = Snapshot(LiveHost(HOST_ROOT, until=self.until, slot=self.slot))
        return self.snapshot

    def plan(self) -> RepairPlan | Unread:
        """Of what is there now."""
        return plan_of(self.look(), self.scope)
