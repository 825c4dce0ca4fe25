# SPDX-License-Identifier: Apache-2.0
"""The fields of ``seawall top --json``, and where their values come from."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from seawall.accounts.live_view.live_history import LiveRow
from seawall.accounts.node_memory.memory_left import MemoryLeft
from seawall.findings.blindness import NotSeen
from seawall.views.documents.document_fields import Document, known, shown, unread
from seawall.views.top_screen import TopPage, UncountedLook, danger_of


class TopAnswer(NamedTuple):
    """One screen, of which nothing is left out for want of room."""

    page: TopPage
    rows: Sequence[LiveRow]
    """In the order of --sort, those that --filter leaves."""
    unseen: Sequence[NotSeen]


class HeadroomNow(NamedTuple):
    """How much memory is left, and how long it lasts."""

    left: MemoryLeft | None
    pace: float | None
    """Bytes a second by which it changes, the median slope of the last 10 s; 0 where it moves no
    more than it always does, below zero where it shrinks."""
    seconds_left: float | None
    """Until nothing is left at this pace; null: it does not shrink."""


class SwapNow(NamedTuple):
    """Of the whole machine."""

    total: int | None
    free: int | None


class TopDanger(NamedTuple):
    """Why a row must jump to the eye."""

    level: Literal["critical", "warning"]
    sentence: str


def headroom(answer: TopAnswer) -> HeadroomNow:
    """How much memory is left, and how long it lasts."""
    page = answer.page
    return HeadroomNow(page.node.left, page.pace, page.seconds_left)


def swap(answer: TopAnswer) -> SwapNow:
    """Of the whole machine."""
    node = answer.page.node
    return SwapNow(node.swap_total_bytes, node.swap_free_bytes)


def stalls(answer: TopAnswer) -> Mapping[str, float]:
    """Share of the last 10 s in which some task waited for memory, io or a cpu (PSI some avg10);
    one that is missing is not measured.
    """
    return {name: round(share, 4) for name, share in answer.page.node.stalls.items()}


def held_by_workloads(answer: TopAnswer) -> int | None:
    """Uncounted memory that is held by workloads that are known; of all of them, shown or not."""
    if answer.page.uncounted.age_seconds is None:
        return None
    return sum(row.uncounted_bytes or 0 for row in answer.page.rows)


class UncountedNow(NamedTuple):
    """Memory in no counter: how much, whose, who looked, and when."""

    look: UncountedLook
    held: int | None
    """By workloads that are known; of all of them, shown or not."""

    @property
    def source(self) -> Literal["own_look", "guard"] | None:
        """Who looked; null: nobody has yet."""
        return self.look.source

    @property
    def problem(self) -> str | None:
        """Why the newest look brought nothing; null: it brought something."""
        return self.look.problem or None


def uncounted(answer: TopAnswer) -> UncountedNow:
    """Memory in no counter: how much, whose, who looked, and when."""
    return UncountedNow(answer.page.uncounted, held_by_workloads(answer))


def guard(answer: TopAnswer) -> str | None:
    """A sentence of the guard's state; null: none runs."""
    return answer.page.guard or None


def oom_kills(answer: TopAnswer) -> int | None:
    """Of the whole machine in ``window_seconds``."""
    return answer.page.new_kills


def workloads_in_all(answer: TopAnswer) -> int:
    """How many there are, shown or not."""
    return len(answer.page.rows)


def danger(row: LiveRow) -> TopDanger | None:
    """The worst that one look can tell; null: nothing."""
    found = danger_of(row)
    if found is None:
        return None
    return TopDanger("critical" if found[0] == "critical" else "warning", found[1])


TOP: Final = Document(
    name="top",
    verb="seawall top --json",
    about="One screen of the live view. Additive within a major number. Unlimited is null; what "
    "could not be read is absent and named in its object's unread.",
    pages=(TopAnswer,),
    window="how long was watched; rates are taken of that",
    shapes={
        TopAnswer: (
            *shown(headroom, stalls, swap, uncounted, guard),
            *unread(oom_kills),
            *shown(workloads_in_all),
            *shown("workloads=rows could_not_see=unseen"),
        ),
        HeadroomNow: (
            *unread("left_bytes=left.bytes total_bytes=left.total_bytes how=left.how"),
            *unread("beside_bytes=left.beside_bytes pace_bytes_per_second=pace:0"),
            *shown("seconds_left:1"),
        ),
        SwapNow: (*unread("total free", unit="bytes"),),
        UncountedNow: (
            *unread("node_bytes=look.node_bytes held_by_workloads_bytes=held"),
            *unread("age_seconds=look.age_seconds:1"),
            *shown("source is_whole=look.is_whole problem"),
        ),
        LiveRow: (
            *shown("name cgroup=path", danger),
            *unread("charge_bytes limit_bytes held_bytes clean_bytes uncounted_bytes"),
            *known("uncounted_source=uncounted_source"),
            *unread("growth_bytes_per_second=growth:0 stall_share=stall oom_kills=kills"),
            *unread("oom_kills_last_minute=new_kills"),
        ),
    },
)
