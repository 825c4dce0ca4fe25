# SPDX-License-Identifier: Apache-2.0
"""Lines of a decision journal (``seawall.decision/1``) as values.

A journal may come from any node, and be forged: sizes are bounded, and whatever is not as the
guard writes it is a ValueError, which the reader counts.
"""

import json
import math
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Final, NamedTuple

from seawall.guard.tell.decision_lines import SCHEMA

_KINDS: Final = ("verdict", "ranking", "outcome", "told", "event")
_MODES: Final = ("observe", "enforce")
_TEXT_MOST: Final = 2000
_NAME_MOST: Final = 512
_ORDERS_MOST: Final = 64
_BYTES_MOST: Final = 1 << 60
_SECONDS_MOST: Final = 1e10
_CUT: Final = b',"ranking_left_out":'
_CUT_OVER_BYTES: Final = 4 << 10
_YEARS: Final = (2000, 2200)
_RANKING_MOST: Final = 2000


class JournalOrder(NamedTuple):
    """An order of a verdict, and whom it is for."""

    step: str
    name: str
    path: str
    inode: int
    why: str
    predicted_bytes: int


class JournalOutcome(NamedTuple):
    """What became of an order."""

    aim: JournalOrder
    is_done: bool
    is_observed: bool
    problem: str
    processes: int
    first_action_seconds: float


class DecisionLine(NamedTuple):
    """A line of the journal."""

    kind: str
    boot_id: str
    decision: str
    unix_seconds: float
    """To the second."""
    seconds: float | None
    """Monotonic, of the tick; None: the line has none."""
    mode: str
    sentence: str
    tells_kills: bool
    """Its guard also writes a line when the kernel kills."""
    trigger: str = ""
    refused: str = ""
    need_bytes: int = 0
    """So much should come back; of a report: so much it is over its limit."""
    aims: tuple[JournalOrder, ...] = ()
    done: JournalOutcome | None = None
    returned_bytes: int | None = None
    kernel_kills: int = 0
    ranking: bytes = b""
    """As it stands in the line, not looked at: few reports need it (``names_in``)."""

    @property
    def mark(self) -> tuple[object, ...]:
        """The same in the journal and in a black box: it counts once."""
        aim = self.done.aim[:3] if self.done else ()
        return (self.kind, self.decision, self.seconds, self.unix_seconds, self.sentence, aim)


def line_of(raw: bytes) -> DecisionLine:
    """One line; ValueError: it is none of ours."""
    try:
        document, ranking = _document(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"expected {SCHEMA}")
    kind = _one_of(document, "kind", _KINDS)
    head = DecisionLine(
        kind, _text(document, "boot_id", 64), _text(document, "decision", 64, may_lack=True),
        _moment(document.get("at")), _seconds(document.get("seconds")),
        _one_of(document, "mode", _MODES), _text(document, "sentence", _TEXT_MOST),
        tells_kills="frame" in document,
    )  # fmt: skip
    if kind != "event" and not head.decision:
        raise ValueError("expected the id of a decision")
    return _whole(head, document, ranking)


def names_in(ranking: bytes) -> dict[str, str]:
    """Names by cgroup, of what ``Said.ranking`` holds."""
    try:
        rows = json.loads(b"{" + ranking[1:]).get("ranking") if ranking else None
    except (ValueError, RecursionError):
        return {}
    return {
        row["cgroup"]: row["name"][:_NAME_MOST]
        for row in (rows[:_RANKING_MOST] if isinstance(rows, list) else ())
        if isinstance(row, dict)
        and isinstance(row.get("cgroup"), str)
        and isinstance(row.get("name"), str)
    }


def _document(raw: bytes) -> tuple[Any, bytes]:
    """A long line is nearly all ranking, which comes last: it is left for later."""
    if len(raw) > _CUT_OVER_BYTES and (at := raw.find(_CUT)) > 0:
        try:
            return json.loads(raw[:at] + b"}"), raw[at:].rstrip()
        except ValueError:
            pass
    document = json.loads(raw)
    at = raw.find(_CUT)
    return document, raw[at:].rstrip() if at > 0 else b""


def _whole(head: DecisionLine, document: dict[str, Any], ranking: bytes) -> DecisionLine:
    if head.kind == "verdict":
        return head._replace(
            trigger=_text(document, "trigger", 32), refused=_text(document, "refused", _TEXT_MOST),
            need_bytes=_bytes(document.get("need_bytes", 0)),
            aims=_aims(document.get("orders")), ranking=ranking,
        )  # fmt: skip
    if head.kind == "outcome":
        return head._replace(done=_done(document.get("outcome")))
    if head.kind == "told":
        returned = document.get("returned_bytes")
        return head._replace(returned_bytes=None if returned is None else _bytes(returned))
    return head._replace(kernel_kills=_bytes(document.get("kernel_kills", 0)))


def _aims(orders: Any) -> tuple[JournalOrder, ...]:
    if not isinstance(orders, list):
        raise ValueError("expected a list of orders")  # noqa: TRY004 - of a file, not of a caller
    return tuple(_aim(order) for order in orders[:_ORDERS_MOST])


def _aim(order: Any) -> JournalOrder:
    if not isinstance(order, dict):
        raise ValueError("expected an order")  # noqa: TRY004 - of a file, not of a caller
    return JournalOrder(
        _text(order, "step", 16), _text(order, "name", _NAME_MOST),
        _text(order, "cgroup", _NAME_MOST), _bytes(order.get("inode")), _text(order, "why", 64),
        _bytes(order.get("predicted_bytes", 0)),
    )  # fmt: skip


def _done(outcome: Any) -> JournalOutcome:
    if not isinstance(outcome, dict):
        raise ValueError("expected an outcome")  # noqa: TRY004 - of a file, not of a caller
    return JournalOutcome(
        _aim(outcome.get("order")), outcome.get("is_done") is True,
        outcome.get("is_observed") is True, _text(outcome, "problem", 300, may_lack=True),
        _bytes(outcome.get("processes", 0)),
        _seconds(outcome.get("first_action_seconds")) or 0.0,
    )  # fmt: skip


def _text(document: dict[str, Any], name: str, most: int, *, may_lack: bool = False) -> str:
    value = document.get(name)
    if value is None and may_lack:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"expected a text: {name}")  # noqa: TRY004 - of a file
    return value[:most]


def _one_of(document: dict[str, Any], name: str, words: tuple[str, ...]) -> str:
    value = document.get(name)
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"expected one of {', '.join(words)}: {name}")
    return value


def _bytes(value: Any) -> int:
    if type(value) is not int or not -_BYTES_MOST < value < _BYTES_MOST:
        raise ValueError("expected a number")
    return value


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ValueError("expected seconds")
    if value > _SECONDS_MOST:
        raise ValueError("no machine has been up for so long")
    return float(value)


def _moment(at: Any) -> float:
    """RFC 3339 in UTC, as the guard writes it."""
    if not isinstance(at, str) or len(at) != 20 or not at.isascii() or at[19] != "Z":
        raise ValueError("expected a time")
    hour, minute, second = int(at[11:13]), int(at[14:16]), int(at[17:19])
    if hour > 23 or minute > 59 or second > 60 or hour < 0 or minute < 0 or second < 0:
        raise ValueError("an absurd time")
    return _day(at[:10]) + hour * 3600 + minute * 60 + second


@lru_cache(maxsize=4096)
def _day(date: str) -> float:
    year, month, day = int(date[:4]), int(date[5:7]), int(date[8:])
    if not _YEARS[0] <= year < _YEARS[1]:
        raise ValueError("an absurd time")
    return datetime(year, month, day, tzinfo=timezone.utc).timestamp()
