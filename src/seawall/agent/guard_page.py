# SPDX-License-Identifier: Apache-2.0
"""``/run/seawall/status.json`` for the agent, which is read on a node that dies.

``readings/guard_status.py`` reads the same file for verbs; this one has no dataclasses and opens
no further module.  Names in it may have been chosen by containers.
"""

import json
import math
from typing import Any, Final, NamedTuple

from seawall.guard.tell.plain import plain
from seawall.problems import ParseProblem

SCHEMA: Final = "seawall.guard-status-page/1"
PAGE_MOST_BYTES: Final = 64 << 10
_ROWS_MOST: Final = 16
_WORDS_MOST: Final = 1000
_PATH_MOST: Final = 512
_BYTES_MOST: Final = 1 << 60
_SECONDS_MOST: Final = 1e12


class PageHolder(NamedTuple):
    """A workload that holds much uncounted memory; bytes."""

    name: str
    cgroup: str
    counted_bytes: int
    certain_bytes: int
    most_bytes: int


class PageDecision(NamedTuple):
    """The guard's last decision."""

    decision: str
    """Its id; in decisions.jsonl too."""
    trigger: str
    how: str
    sentence: str


class PageRescue(NamedTuple):
    """What the guard says of a rescue order."""

    order: str
    """Its uid."""
    state: str
    """``waits``, ``accepted``, ``done``, ``refused``."""
    words: str
    decision: str
    returned_bytes: int | None


class GuardPage(NamedTuple):
    """What the guard last said; None: it could not tell, which is never zero."""

    boot_id: str
    unix_seconds: float
    since_unix_seconds: float
    version: str
    mode: str
    state: str
    """``peace``, ``near``, ``short``, ``holding``, ``blind``, ``stopped``."""
    can_kill: bool
    can_kill_words: str
    total_bytes: int
    """0: the node's memory could not be read in that tick."""
    headroom_bytes: int | None
    headroom_seconds: float | None
    """None: it does not shrink, or is not known."""
    uncounted_bytes: int | None
    grown_bytes: int | None
    """Of it, over its base."""
    stall: float | None
    """0 to 1: the worst share in which what is protected stood still."""
    is_min: bool
    kills: int
    decisions: int
    last: PageDecision | None
    holders: tuple[PageHolder, ...]
    blind: tuple[str, ...]
    is_braked: bool = False
    takes_rescue: bool = False
    """Its mode or its file lets it carry out a rescue order."""
    rescue: PageRescue | None = None

    @property
    def is_seen(self) -> bool:
        """Whether the node's memory could be read."""
        return self.total_bytes > 0


def parse_page(data: bytes) -> GuardPage:
    """A page of schema ``seawall.guard-status-page/1``; keys that are not known are skipped."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON", data) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ParseProblem(0, SCHEMA, data)
    host = found.get("host")
    if not isinstance(host, dict) or not isinstance(found.get("can_kill"), bool):
        raise ParseProblem(0, "host and can_kill", data)
    total = _bytes(found, "total_bytes") or 0
    is_seen = total > 0
    return GuardPage(
        boot_id=_words(host, "boot_id", 64), unix_seconds=_seconds(found, "unix_seconds") or 0.0,
        since_unix_seconds=_seconds(found, "since_unix_seconds") or 0.0,
        version=_words(found, "tool_version", 64), mode=_words(found, "mode", 16),
        state=_words(found, "state", 16), can_kill=found["can_kill"],
        can_kill_words=_words(found, "can_kill_words", 200), total_bytes=total,
        headroom_bytes=_bytes(found, "headroom_bytes") if is_seen else None,
        headroom_seconds=_seconds(found, "headroom_seconds") if is_seen else None,
        uncounted_bytes=_bytes(found, "residual_bytes"),
        grown_bytes=_bytes(found, "residual_grown_bytes"),
        stall=_seconds(found, "protected_stall") if is_seen else None,
        is_min=found.get("is_min") is True, kills=_bytes(found, "kills") or 0,
        decisions=_bytes(found, "decisions") or 0, last=_decision(found.get("last_decision")),
        holders=tuple(_holder(row) for row in _rows(found, "top") if isinstance(row, dict)),
        blind=tuple(plain(row, 200) for row in _rows(found, "blind") if isinstance(row, str)),
        is_braked=_seconds(found, "brake_since_unix_seconds") is not None,
        takes_rescue=found.get("takes_rescue") is True, rescue=_rescue(found.get("rescue")),
    )  # fmt: skip


def _decision(found: Any) -> PageDecision | None:
    if not isinstance(found, dict):
        return None
    return PageDecision(
        _words(found, "decision", 64), _words(found, "trigger", 40), _words(found, "how", 16),
        _words(found, "sentence", _WORDS_MOST),
    )  # fmt: skip


def _rescue(found: Any) -> PageRescue | None:
    if not isinstance(found, dict):
        return None
    return PageRescue(
        _words(found, "order", 128), _words(found, "state", 16), _words(found, "words", 600),
        _words(found, "decision", 64), _bytes(found, "returned_bytes"),
    )  # fmt: skip


def _holder(row: dict[str, Any]) -> PageHolder:
    certain = max(0, _bytes(row, "outside_certain_bytes") or 0)
    return PageHolder(
        _words(row, "name", 256), _words(row, "cgroup", _PATH_MOST),
        max(0, _bytes(row, "counted_bytes") or 0), certain,
        max(certain, _bytes(row, "outside_most_bytes") or 0),
    )  # fmt: skip


def _words(found: dict[str, Any], key: str, most: int) -> str:
    value = found.get(key)
    return plain(value, most) if isinstance(value, str) else ""


def _rows(found: dict[str, Any], key: str) -> list[Any]:
    value = found.get(key)
    return value[:_ROWS_MOST] if isinstance(value, list) else []


def _bytes(found: dict[str, Any], key: str) -> int | None:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if abs(value) <= _BYTES_MOST else None


def _seconds(found: dict[str, Any], key: str) -> float | None:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= _SECONDS_MOST else None
