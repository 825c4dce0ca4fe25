# SPDX-License-Identifier: Apache-2.0
"""Which nodes died, from one look at slurmctld's list to the next.  Pure.

A death is a node that was in service, fell silent and was given up by slurmctld (DOWN, with
NOT_RESPONDING).  What was drained, in maintenance, rebooting, powered down or set DOWN by somebody
before it fell silent was planned, and counts for nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.slurm.slurm_rows import REBOOTED, SlurmctldNodeRow, slurm_seconds

MEMORY_SECONDS: Final = 900.0
"""What an observer that was away for longer knows nothing of."""


SAME_BOOT_SECONDS: Final = 30.0
"""slurmd reckons the time of its boot anew each time it registers, and is off by a second or two; a
node that boots takes longer."""


class NodeTurn(Enum):
    """What became known of a node."""

    SILENT = "silent"
    """It does not answer: its jobs are remembered from now on."""
    DEATH = "death"
    PLANNED = "planned"
    """It went away, and somebody meant it to."""
    UNSEEN = "unseen"
    """It was gone before anybody watched."""
    BACK = "back"
    """It was silent, and answers again before slurmctld gave it up."""
    RETRACTED = "retracted"
    """It was given up, and answers again without a boot: it never died."""


@dataclass(frozen=True, slots=True)
class NodeTurnEvent:
    """One of them."""

    turn: NodeTurn
    row: SlurmctldNodeRow
    since_seconds: float
    """When it was seen silent first."""
    kind: DeathKind = DeathKind.SILENT
    boot: str = ""
    """Of a death: when the boot that ended began, as Slurm has it."""


@dataclass(slots=True)
class _Silence:
    since: float
    boot: str
    plan: str
    """Why its end is no death; empty: it may be one."""
    is_over: bool = False
    """slurmctld gave it up."""
    is_death: bool = False


class SilentNodes:
    """All nodes, look by look."""

    def __init__(self) -> None:
        self._rows: dict[str, SlurmctldNodeRow] = {}
        self._silences: dict[str, _Silence] = {}
        self._recalled: dict[str, _Silence] = {}
        self._is_remembered = False

    def see(self, rows: Mapping[str, SlurmctldNodeRow], now: float) -> list[NodeTurnEvent]:
        """What is new, in the order of names."""
        events: list[NodeTurnEvent] = []
        for name in sorted(rows):
            events += self._see(rows[name], now)
        for name in [name for name in self._silences if name not in rows]:
            del self._silences[name]  # it was taken out of slurm.conf
        self._rows = dict(rows)
        self._recalled, self._is_remembered = {}, True
        return events

    @property
    def silent(self) -> frozenset[str]:
        """Nodes that do not answer, given up or not."""
        return frozenset(self._silences)

    @property
    def awaits_end(self) -> bool:
        """A node is silent, and slurmctld has not given it up."""
        return any(not one.is_over and not one.plan for one in self._silences.values())

    def document(self) -> dict[str, Any]:
        """What must outlive this process."""
        return {
            name: {"since": one.since, "boot": one.boot, "plan": one.plan,
                   "is_over": one.is_over, "is_death": one.is_death}
            for name, one in self._silences.items()
        }  # fmt: skip

    def recall(self, document: Any, age_seconds: float) -> None:
        """As another process left it, so long ago; what is no such document is not believed."""
        if not isinstance(document, dict):
            return
        for name, one in document.items():
            if isinstance(one, dict) and isinstance(one.get("since"), int | float):
                self._recalled[str(name)] = _Silence(
                    float(one["since"]), str(one.get("boot")), str(one.get("plan")),
                    one.get("is_over") is True, one.get("is_death") is True,
                )  # fmt: skip
        self._is_remembered = age_seconds <= MEMORY_SECONDS

    def _see(self, row: SlurmctldNodeRow, now: float) -> list[NodeTurnEvent]:
        before = self._rows.get(row.name)
        silence = self._silences.get(row.name)
        if silence is None and before is None and row.name in self._recalled:
            silence = self._silences[row.name] = self._recalled[row.name]
        if row.is_silent:
            return self._see_silent(row, before, silence, now)
        if silence is not None:
            return self._see_return(row, silence, now)
        return self._see_boot(row, before, now)

    def _see_silent(
        self,
        row: SlurmctldNodeRow,
        before: SlurmctldNodeRow | None,
        silence: _Silence | None,
        now: float,
    ) -> list[NodeTurnEvent]:
        events = []
        if silence is None:
            boot = row.boot if before is None else before.boot
            silence = _Silence(now, boot, self._plan(row, before))
            self._silences[row.name] = silence
            events.append(NodeTurnEvent(NodeTurn.SILENT, row, now))
        if row.is_down and not silence.is_over:
            silence.is_over = True
            silence.is_death = not silence.plan
            turn = NodeTurn.DEATH if not silence.plan else NodeTurn.PLANNED
            if silence.plan == UNSEEN:
                turn = NodeTurn.UNSEEN
            events.append(NodeTurnEvent(turn, row, silence.since, boot=silence.boot))
        return events

    def _plan(self, row: SlurmctldNodeRow, before: SlurmctldNodeRow | None) -> str:
        if before is None and not self._is_remembered:
            return UNSEEN
        for one in (before, row):
            # A drain that is seen with the silence may have been before it: in doubt, a plan.
            if one is not None and one.is_planned:
                return ", ".join(sorted(one.flags - {"NOT_RESPONDING"})) or one.state
        if before is not None and before.is_down:
            return f"DOWN before: {before.reason}"
        if "UNKNOWN" in (row.state, before.state if before is not None else ""):
            return "slurmctld began anew, and has not heard of it since"
        return ""

    def _see_return(
        self, row: SlurmctldNodeRow, silence: _Silence, now: float
    ) -> list[NodeTurnEvent]:
        del self._silences[row.name]
        if not silence.is_over:
            if _is_other_boot(silence.boot, row.boot) and not silence.plan:
                return [
                    NodeTurnEvent(NodeTurn.DEATH, row, silence.since, DeathKind.RESET, silence.boot)
                ]
            return [NodeTurnEvent(NodeTurn.BACK, row, silence.since)]
        if silence.is_death and not _is_other_boot(silence.boot, row.boot):
            return [NodeTurnEvent(NodeTurn.RETRACTED, row, silence.since)]
        return [NodeTurnEvent(NodeTurn.BACK, row, now)]

    def _see_boot(
        self, row: SlurmctldNodeRow, before: SlurmctldNodeRow | None, now: float
    ) -> list[NodeTurnEvent]:
        """Another boot without a silence that anybody saw: it was reset, or died and was quick."""
        if before is None or not _is_other_boot(before.boot, row.boot):
            return []
        is_told = row.is_down and row.reason.startswith(REBOOTED)
        if before.is_planned or before.is_down or (row.is_planned and not is_told):
            return []
        return [NodeTurnEvent(NodeTurn.DEATH, row, now, DeathKind.RESET, before.boot)]


UNSEEN: Final = "it was silent before anybody watched"


def _is_other_boot(before: str, after: str) -> bool:
    """Whether the node booted between; False where nobody knows."""
    first, second = slurm_seconds(before), slurm_seconds(after)
    return first is not None and second is not None and abs(second - first) > SAME_BOOT_SECONDS
