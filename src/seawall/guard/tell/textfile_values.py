# SPDX-License-Identifier: Apache-2.0
"""What the guard tells the aide for the textfile collector; ``tell/textfile.py`` has the names."""

from typing import Any

from seawall.guard.guard_memory import Footprint
from seawall.guard.tell.decision_tally import DecisionTally
from seawall.guard.tell.plain import finite
from seawall.guard.tell.status_values import StatusValues


def values_of(
    shown: StatusValues, tally: DecisionTally, footprint: Footprint | None,
    tick_seconds: str | None, *,
    is_config_taken: bool,
) -> dict[str, Any]:  # fmt: skip
    """Bytes and seconds; None: not known."""
    node = shown.node
    return {
        "mode": shown.mode, "can_kill": shown.can_kill_is_proved, "state": shown.state,
        "headroom_bytes": node.headroom_bytes, "residual_bytes": node.residual_bytes,
        "residual_grown_bytes": node.residual_grown_bytes, "decisions": tally.rows(),
        "kills": tally.kills, "predicted_bytes": tally.predicted_bytes,
        "returned_bytes": tally.returned_bytes,
        "reaction_seconds": finite(tally.reaction_seconds, 6),
        "last_tick_seconds": tick_seconds, "config_taken": is_config_taken,
        "watcher_up": node.claims_seconds is not None,
        "own_major_faults": tally.own_major_faults,
        "resident_bytes": footprint and footprint.resident_bytes(),
        "unix_seconds": finite(shown.unix_seconds),
    }  # fmt: skip
