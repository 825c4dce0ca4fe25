"""Pages and journals of the guard, by the guard's own code, from facts of a node."""

import os
import time
from pathlib import Path
from typing import Any

from tests.guard.telling import CGROUP, GIB, MIB, POD_UID, group, node, rank, verdict

from seawall.agent.page_watch import boot_id_here
from seawall.guard.tell.decision_lines import Stamp, verdict_line
from seawall.guard.tell.status_json import document
from seawall.guard.tell.status_values import LatestDecision, StatusValues

__all__ = ["CGROUP", "GIB", "MIB", "POD_UID", "Pages", "rank"]
HERE = boot_id_here()
DECISION = f"{HERE[:8]}-0001"


class Pages:
    """A folder as /run/seawall is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def write(self, state: str, *, top: Any = None, decided: bool = False,
              trigger: str = "node_short", mode: str = "observe",
              can_kill: str = "can kill: proved 1 s ago", boot_id: str = HERE, blind: Any = (),
              brake_since: float | None = None, rescue: Any = None,
              at: float = 1_795_428_031.5, **of_node: Any) -> None:  # fmt: skip
        """Renamed over, as the guard does it."""
        last = LatestDecision(DECISION, at, trigger, "observed", "the node is short", "")
        shown = StatusValues(
            mode=mode, mode_why="", state=state, unix_seconds=at, node=node(**of_node),
            top=[group()] if top is None else top, last=last if decided else None,
            counts={"decisions": 1, "kills": 0, "predicted_bytes": 0, "returned_bytes": 0},
            can_kill=can_kill, watcher="it runs", blackbox="", blind=list(blind), problems=[],
            others=[], notes=[], scope=("/kubepods.slice",), config="/etc/seawall/guard.toml",
            folder=str(self.folder), pid=1, since=at - 100, boot_id=boot_id, host="node-7",
            brake_since=brake_since, rescue=rescue,
        )  # fmt: skip
        self.raw(document(shown))

    def raw(self, data: bytes) -> None:
        part = self.folder / ".status.json.spare"
        part.write_bytes(data)
        os.rename(part, self.folder / "status.json")

    def peace(self, **changes: Any) -> None:
        self.write("peace", **{"residual_grown_bytes": 0, **changes})

    def short(self, **changes: Any) -> None:
        facts = {"headroom_bytes": 200 * MIB, "slope_bytes_per_second": 20.0 * MIB,
                 "residual_grown_bytes": 2 * GIB, "protected_stall": 0.7}  # fmt: skip
        held = [group(outside=1900 * MIB, most=2 * GIB)]
        self.write("short", **{**facts, "top": held, **changes})

    def decide(self, **changes: Any) -> None:
        """A verdict of this boot in the journal."""
        row = rank(**{"is_source": True, **changes})
        line = verdict_line(
            verdict((row,), decision=DECISION, seconds=time.monotonic()),
            Stamp(1_795_428_031.0, HERE, "observe"),
        )
        with open(self.folder / "decisions.jsonl", "ab") as file:
            file.write(line)
