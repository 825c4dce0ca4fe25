# SPDX-License-Identifier: Apache-2.0
"""What a trace comes to: rows of who holds what, stacks, and what was left out of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.accounts.claim import ClaimClass


@dataclass(frozen=True, slots=True)
class TracedProcess:
    """One process's share of a row."""

    pid: int
    name: str
    bytes: int
    is_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRow:
    """What one workload (or what else is known of the taker) holds of one kind."""

    holder: str
    workload: str | None
    cgroup: str | None
    """The workload's own, below the mount point of the tree that counts memory."""
    cgroup_inode: int | None
    is_gone: bool
    """Its cgroup was removed; the memory stayed."""
    kind: ClaimClass
    what: str
    """``packet ring``."""
    driver: str | None
    within: str
    """As ``Claim.within``."""
    bytes: int
    least_bytes: int
    most_bytes: int
    mapped_bytes: int
    """Of them, mapped into processes."""
    processes: tuple[TracedProcess, ...]
    """Those that took them, largest first."""
    stack: tuple[str, ...]
    """Of most of these bytes, from the frame that tells what it is; innermost first."""
    is_doubted: bool = False
    """Events were lost since some of it was taken: then it is not certain because it was."""
    held_bytes: int = 0
    """Held for certain, where that is no proof against ``holder``: what grew may be these."""

    @property
    def living_bytes(self) -> int:
        """Of them, what processes took that still live."""
        return sum(process.bytes for process in self.processes if process.is_alive)


@dataclass(frozen=True, slots=True)
class StackSum:
    """One kernel stack, whoever went through it."""

    bytes: int
    frames: tuple[str, ...]
    """Functions, innermost first."""
    workloads: tuple[str, ...]
    """Holders, largest first."""


@dataclass(frozen=True, slots=True)
class Capped:
    """More was traced than uncounted memory can hold."""

    traced_bytes: int
    """What was traced and found held, where the ledger lacked less; null: nothing was cut."""
    most_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSum:
    """Everything that one trace tells."""

    has_trace: bool = False
    seconds: float = 0.0
    rows: tuple[TracedRow, ...] = ()
    """Largest first."""
    by_stack: tuple[StackSum, ...] = ()
    """Before the cap."""
    counted: Mapping[str, int]
    """What was taken and is on a line of the ledger, by line: nobody's claim."""
    given_back: tuple[tuple[str, int], ...] = ()
    """(holder, bytes) that were taken and given back meanwhile: nobody's claim."""
    growth_bytes: int | None = None
    """Of uncounted memory, since before the trace; None without a ledger before it."""
    error_bytes: int = 0
    """How far ``growth_bytes`` may be off."""
    capped: Capped | None = None
    events: int = 0
    lost_events: int = 0
    sampled_one_in: int = 1
    """Page frames: one in so many was followed."""
    mechanism: str = ""
    """`ring`, or `ring+hist`."""
    notes: tuple[str, ...] = ()
    """What could not be seen of it."""


NOBODY_TRACED = TraceSum(counted={})
