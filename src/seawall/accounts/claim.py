# SPDX-License-Identifier: Apache-2.0
"""What one piece of evidence says: who still holds memory that its cgroup may not count.

A claim is what is *held* now, never what was once allocated.  It stands between the least that
is certain and the most that is possible; whoever allocated carries it, however often a
descriptor was handed on since.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Confidence: TypeAlias = Literal["exact", "traced", "bound", "estimate"]
"""exact: the kernel or driver counts it for this holder.  traced: seen being taken, netted by
page frame.  bound: only ``most_bytes`` means something.  estimate: derived, may be off."""

ClaimClass: TypeAlias = Literal[
    "surface",  # graphics or driver surface, buffers of a device
    "pinned",  # host memory pinned for a device
    "managed",  # memory that a driver moves between host and device
    "ring",  # network ring
    "socket",  # data in sockets
    "pool",  # a driver's cache of free pages: given back under pressure
    "unified",  # device memory that is the host's own, on unified-memory machines
    "hugetlb",
    "vmalloc",
    "dying",  # of removed cgroups
    "file_system",  # a cluster file system's client or daemon
    "unknown",  # traced, by code that is not in our tables
]

RESIDUAL: Final = "residual"
"""``Claim.within``: the bytes are in no line of the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``least_bytes`` to ``most_bytes``, most likely ``bytes``, are ``holder``'s."""

    holder: str
    """A workload's address, or words such as ``the NVIDIA driver``."""
    workload: str | None
    """Its address; None when a driver is all that is known."""
    cgroup: str | None
    """Of the workload, below the mount point of the tree that counts memory."""
    driver: str | None
    """The driver whose memory it is, where one is known."""
    bytes: int
    """Most likely; between least_bytes and most_bytes."""
    least_bytes: int
    most_bytes: int
    kind: ClaimClass
    within: str
    """RESIDUAL, or the name of the ledger's line that has these bytes."""
    is_counted: bool
    """Whether the charge of ``cgroup`` has these bytes already: then they are no shadow charge."""
    source: str
    confidence: Confidence
    missing: str
    """What the evidence does not tell; empty when nothing is missing."""
    give_back: str
    """What the owner can do so that the memory comes back."""
    things: frozenset[str] = frozenset()
    """What was counted, by identity (``socket:[4711]``, ``dmabuf:17``): a thing that two claims
    name is the same memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Holds a driver's files, so it could hold uncounted memory; nothing is proved."""

    workload: str | None
    cgroup: str | None
    driver: str
    """Whose files or sockets it holds."""
    pids: tuple[int, ...]
    """Some of its processes."""
    why: str
    """``3 processes have /dev/nvidia0 open``."""


@dataclass(frozen=True, slots=True)
class SourceClaims:
    """What one source says.  Each module of ``claim_sources/`` has a function ``claims`` that
    returns it; its parameters are topics, as a rule's are.
    """

    claims: tuple[Claim, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    unseen: tuple[str, ...] = ()
    """One sentence each: what this source could not see here, and what would let it."""
