# SPDX-License-Identifier: Apache-2.0
"""Who is told of each turn of the controller, besides its folder: numbers for Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from seawall.cluster.slurm.slurm_death import SlurmDeath
from seawall.cluster.slurm.slurm_state import SlurmState

HoldBrake = Literal["", "api", "elsewhere", "storm", "view"]
"""api: slurmctld gives no answer; elsewhere: another host has the active slurmctld; storm: many
nodes fell silent at once; view: what it said is old or not whole."""


class HoldObstacle(NamedTuple):
    """Why nobody is held just now; both empty: nothing stands in the way."""

    brake: HoldBrake
    words: str


@dataclass(frozen=True, slots=True)
class SlurmTurn:
    """One whole look, and what followed from it."""

    at_seconds: float
    """Unix seconds, before the first question."""
    obstacle: HoldObstacle
    deaths: Sequence[SlurmDeath]
    """That this look found."""
    jobs: int
    """That wait or run, as squeue lists them."""
    state: SlurmState
    """As it stands behind the turn."""


class TurnSink(Protocol):
    """Both are called by the controller's own thread."""

    def look(self, turn: SlurmTurn) -> None:
        """Slurmctld answered whole."""

    def silence(self) -> None:
        """It did not."""
