# SPDX-License-Identifier: Apache-2.0
"""Would killing help?  The OOM killer played out over a list of processes.

The kernel kills one process, tries again to allocate, and comes back when that fails.  Played
here until enough came back or until it is clear that it will not:

- ``ties``: three kills in a row hit processes that give back next to nothing, while others
  with the very same points hold the memory.  The formula cannot tell them apart, so the place
  in the list decides, and the small ones (init, an agent: made first) die.  Their parents
  start them again, and it begins anew: that is the hang of CentOS 6 with many small processes.
- ``many``: it works, but takes more kills than ``kills_most``.
- ``exhausted``: everybody who can be killed was, and it is not enough.
- ``relieved``: enough came back.

Points are those of the beginning: the survivors' points change only with what they then take.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.oom.badness_ages import Candidate, Formula

Outcome: TypeAlias = Literal["relieved", "ties", "many", "exhausted"]

FUTILE_KILLS: Final = 3
"""So many in a row, and the list decides, not the size."""
FUTILE_FRACTION: Final = 0.1
"""A kill is futile when it returns less than this part of what the largest with the same
points would have returned, and less than is needed."""
KILLS_MOST: Final = 10_000


class Member(NamedTuple):
    """One process, in the order in which the kernel meets it."""

    pid: int
    comm: str
    candidate: Candidate
    returns_bytes: int
    """What its death gives back."""


class Victim(NamedTuple):
    """One kill of the play."""

    pid: int
    comm: str
    points: int
    returns_bytes: int


@dataclass(frozen=True, slots=True)
class Relief:
    """How the OOM kills, played out, ended: after how many kills, and what they gave back."""

    outcome: Outcome
    needed_bytes: int
    freed_bytes: int
    kills: int
    first: tuple[Victim, ...]
    """The first of them."""
    tied: int
    """Eligible processes with the same points as the first victim, itself included."""
    largest_tied_bytes: int
    """What the largest of those would return."""

    @property
    def hangs(self) -> bool:
        """Killing goes on without relief."""
        return self.outcome == "ties"


class _Queue(NamedTuple):
    victims: list[Victim]
    """In the order in which they die."""
    tied: dict[int, int]
    largest: dict[int, int]
    """By points: how many have them, and what the largest of these returns."""


def relief(
    formula: Formula,
    herd: Sequence[Member],
    total_pages: int,
    needed_bytes: int,
    kills_most: int = KILLS_MOST,
) -> Relief:
    """Kill in the kernel's order until ``needed_bytes`` came back, or until that is hopeless."""
    queue = _queue(formula, herd, total_pages)
    outcome: Outcome = "relieved" if needed_bytes <= 0 else "exhausted"
    freed = kills = futile = 0
    for victim in queue.victims:
        if outcome == "relieved":
            break
        if kills >= kills_most:
            outcome = "many"
            break
        kills += 1
        freed += victim.returns_bytes
        futile = futile + 1 if _is_futile(victim, queue, needed_bytes) else 0
        if freed >= needed_bytes:
            outcome = "relieved"
        elif futile >= FUTILE_KILLS:
            outcome = "ties"
            break
    points = queue.victims[0].points if queue.victims else 0
    return Relief(
        outcome, needed_bytes, freed, kills, tuple(queue.victims[: max(kills, 1)][:10]),
        queue.tied.get(points, 0), queue.largest.get(points, 0),
    )  # fmt: skip


def _queue(formula: Formula, herd: Sequence[Member], total_pages: int) -> _Queue:
    """As ``formula.choose`` would take them one after the other."""
    rated = []
    tied: dict[int, int] = {}
    largest: dict[int, int] = {}
    for index, member in enumerate(herd):
        points = formula.points(member.candidate, total_pages)
        if points is None:
            continue
        place = -index if formula.takes_last else index
        victim = Victim(member.pid, member.comm, points, member.returns_bytes)
        rated.append((-points, place, victim))
        tied[points] = tied.get(points, 0) + 1
        largest[points] = max(largest.get(points, 0), member.returns_bytes)
    rated.sort(key=lambda row: row[:2])
    return _Queue([victim for _, _, victim in rated], tied, largest)


def _is_futile(victim: Victim, queue: _Queue, needed_bytes: int) -> bool:
    best = queue.largest[victim.points]
    return victim.returns_bytes < min(FUTILE_FRACTION * best, needed_bytes)
