# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall memory WORKLOAD`` are made from."""

from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_parts import MemoryParts
from seawall.accounts.claim import Claim, Suspect
from seawall.accounts.node_memory.headroom import SHORT_BYTES, SHORT_FRACTION, Headroom
from seawall.accounts.pods.pod_table import PodRow, Room
from seawall.accounts.workloads import Workload
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMemoryPage:
    """One answer of the verb."""

    workload: Workload
    row: PodRow | None
    """None where its memory is not counted, or could not be read."""
    parts: MemoryParts | None
    """Of the charge; None with ``row``."""
    limit_name: str
    """Whose limit is the tightest: its own name, or that of the one above which has it."""
    claims: tuple[Claim, ...]
    """What it and what is in it hold in no cgroup's charge, largest first."""
    suspects: tuple[Suspect, ...]
    """It could hold uncounted memory; nothing is proved."""
    headroom: Headroom | Unread
    """The node's."""
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]

    @property
    def socket_bytes(self) -> int | None:
        """Data in sockets that is in the charge: cgroup v2 alone counts it there."""
        return None if self.row is None else self.row.memcg.sock

    @property
    def rest_bytes(self) -> int | None:
        """Of the charge, what no kind has: locked file pages, charges held in reserve."""
        if self.parts is None or self.parts.rest is None:
            return None
        return max(0, self.parts.rest - (self.socket_bytes or 0))

    @property
    def is_node_short(self) -> bool | None:
        """Whether the node has little left; None where that could not be read."""
        if isinstance(self.headroom, Unread):
            return None
        return self.headroom.is_below(SHORT_FRACTION, SHORT_BYTES)

    @property
    def is_stopped_by_node(self) -> bool:
        """The node runs out before the limit is reached, or there is no limit."""
        if not self.is_node_short or self.row is None or isinstance(self.headroom, Unread):
            return False
        room = self.row.room
        return room is not None and (not isinstance(room, Room) or self.headroom.bytes < room.grows)
