# SPDX-License-Identifier: Apache-2.0
"""The lines of decisions.jsonl (schema ``seawall.decision/1``), from what the judge says.

Every name in them is plain ASCII: a container may have chosen it.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from seawall.actions.orders import Order, Outcome
from seawall.guard.tell.decisions import LAST_WAS, LINE_MOST_BYTES
from seawall.guard.tell.plain import finite, line_of, moment, plain
from seawall.guard.verdict import DecisionUpdate, Rank, Verdict

SCHEMA: Final = "seawall.decision/1"
CLASSES: Final = ("besteffort", "burstable", "guaranteed", "system")
_NAME_MOST: Final = 256
_PATH_MOST: Final = 512
_WORDS_MOST: Final = 300
_SENTENCE_MOST: Final = 1000
_REASONS_MOST: Final = 12
_ORDERS_MOST: Final = 64
_MARGIN_BYTES: Final = 100
ROWS_A_LINE: Final = 32
"""Of the ranking, behind the verdict's own: what it takes for a moment stays small."""


class Stamp(NamedTuple):
    """What every line begins with."""

    unix_seconds: float
    boot_id: str
    mode: str
    frame: int | None = None
    """Of the black box: the tick's number; None: there is no recorder."""


def verdict_line(verdict: Verdict, stamp: Stamp) -> bytes:
    """The whole of it, with the ranking; of that the last are left out, and counted, only when
    the line would be longer than a file takes.
    """
    document = _head("verdict", verdict.decision, verdict.seconds, stamp)
    document |= {
        "trigger": verdict.trigger,
        "is_report": verdict.is_report,
        "need_bytes": verdict.need_bytes,
        "budget_seconds": finite(verdict.budget_seconds),
        "refused": plain(verdict.refused, _SENTENCE_MOST),
        "sentence": plain(verdict.sentence, _SENTENCE_MOST),
        "orders": [_order(order) for order in verdict.orders[:_ORDERS_MOST]],
        "orders_left_out": max(0, len(verdict.orders) - _ORDERS_MOST),
    }
    base = line_of(document)
    rows, count = _rows(_leaders_first(verdict.ranking), LINE_MOST_BYTES - len(base))
    left_out = len(verdict.ranking) - count
    return b'%s,"ranking_left_out":%d,"ranking":[%s]}\n' % (base[:-2], left_out, rows)


def ranking_lines(verdict: Verdict, rest: Iterable[Rank], stamp: Stamp) -> Iterator[bytes]:
    """Whom the verdict's own line had no room for, one line for as many as it takes."""
    rest = iter(rest)
    head = _head("ranking", verdict.decision, verdict.seconds, stamp)
    head["sentence"] = "who else was looked at"
    base = line_of(head)
    while rows := _rows(islice(rest, ROWS_A_LINE), LINE_MOST_BYTES - len(base))[0]:
        yield b'%s,"ranking":[%s]}\n' % (base[:-2], rows)


def outcome_line(outcome: Outcome, words: str, seconds: float, stamp: Stamp) -> bytes:
    """What became of one order; ``seconds``: of the tick that gave it, monotonic."""
    document = _head("outcome", outcome.order.decision, seconds, stamp)
    document["sentence"] = plain(words, _SENTENCE_MOST)
    return line_of(document | {"outcome": _outcome(outcome)})


def update_line(told: DecisionUpdate, stamp: Stamp) -> bytes:
    """The line of decisions.jsonl that tells how many bytes came back after a decision."""
    document = _head("told", told.decision, told.seconds, stamp)
    document["sentence"] = plain(told.sentence, _SENTENCE_MOST)
    document["returned_bytes"] = told.returned_bytes
    return line_of(document)


def event_line(words: str, stamp: Stamp) -> bytes:
    """Something about the guard itself."""
    document = _head("event", None, None, stamp)
    document["sentence"] = plain(words, _SENTENCE_MOST)
    return line_of(document)


def heading_line(last_decision: str, stamp: Stamp) -> bytes:
    """The first line of a file that begins anew; empty: nothing was decided in this boot."""
    if last_decision[:8] != stamp.boot_id[:8]:
        return b""
    return event_line(f"the file begins anew; {LAST_WAS}{last_decision}", stamp)


def kernel_line(kills: int, seconds: float, stamp: Stamp) -> bytes:
    """The kernel's OOM killer ended processes since the last tick: what a decision is held
    against later (``seawall guard report``), also where no black box is.
    """
    document = _head("event", None, seconds, stamp)
    document["sentence"] = f"processes that the kernel's OOM killer ended: {kills}"
    document["kernel_kills"] = kills
    return line_of(document)


def _head(kind: str, decision: str | None, seconds: float | None, stamp: Stamp) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": kind,
        "decision": None if decision is None else plain(decision, 64),
        "at": moment(stamp.unix_seconds),
        "seconds": finite(seconds),
        "boot_id": stamp.boot_id,
        "mode": stamp.mode,
        "frame": stamp.frame,
    }


def _rows(ranking: Iterable[Rank], most_bytes: int) -> tuple[bytearray, int]:
    """As many as have room, with their commas, and how many those are.  None is kept beside the
    whole: so many small pieces would take pages that were never touched.
    """
    rows, count = bytearray(), 0
    for rank in ranking:
        row = line_of(_rank(rank))[:-1]
        if len(rows) + len(row) + _MARGIN_BYTES > most_bytes:
            break
        if count:
            rows += b","
        rows += row
        count += 1
    return rows, count


def _leaders_first(ranking: Iterable[Rank]) -> list[Rank]:
    place: Callable[[Rank], int] = lambda rank: rank.place or 1 << 30  # noqa: E731 - sorts only
    return sorted(ranking, key=place)


def _rank(rank: Rank) -> dict[str, Any]:
    source = {"is_source": True} if rank.is_source else {}
    return {
        "place": rank.place,
        "name": plain(rank.name, _NAME_MOST),
        "cgroup": plain(rank.path, _PATH_MOST),
        "inode": rank.inode,
        "class": CLASSES[rank.class_rank] if 0 <= rank.class_rank < len(CLASSES) else "unknown",
        "charge_bytes": rank.charge_bytes,
        "limit_bytes": rank.limit_bytes,
        "outside_certain_bytes": rank.outside_certain_bytes,
        "outside_most_bytes": rank.outside_most_bytes,
        "expected_return_bytes": rank.expected_return_bytes,
        "growth_bytes_per_second": finite(rank.growth_bytes_per_second, 0),
        "score": finite(rank.score, 6),
        "reasons": [plain(words, _WORDS_MOST) for words in rank.reasons[:_REASONS_MOST]],
        "against": [plain(words, _WORDS_MOST) for words in rank.against[:_REASONS_MOST]],
        **source,
    }


def _order(order: Order) -> dict[str, Any]:
    return {
        "step": order.step,
        "name": plain(order.target.name, _NAME_MOST),
        "cgroup": plain(order.target.path, _PATH_MOST),
        "inode": order.target.inode,
        "why": plain(order.why, 64),
        "predicted_bytes": order.predicted_bytes,
        "limit_bytes": order.limit_bytes,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "order": _order(outcome.order),
        "is_done": outcome.is_done,
        "is_observed": outcome.is_observed,
        "problem": plain(outcome.problem, _WORDS_MOST),
        "processes": outcome.processes,
        "left": outcome.left,
        "first_action_seconds": finite(outcome.first_action_seconds, 6),
        "seconds": finite(outcome.seconds, 6),
        "old_value": plain(outcome.old_value, 64),
    }
