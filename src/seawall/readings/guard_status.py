# SPDX-License-Identifier: Apache-2.0
"""/run/seawall/status.json: what the guard of this host says about itself and the node.

Written by ``seawall guard run``, the last one also after the guard has ended or died: compare
``unix_seconds`` with now.  What it holds may have been chosen by containers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.base import BOOT_ID
from seawall.readings.own_files import NUMBER_MOST, document, number, word
from seawall.readings.reading import decode_name, read_as

PATH: Final = "/run/seawall/status.json"
SCHEMA: Final = "seawall.guard-status-page/1"
LIMIT_BYTES: Final = 64 << 10
_MODES: Final = ("observe", "enforce")
_LIST_MOST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDecision:
    """The last thing that it decided; plain words."""

    decision: str
    """Id, the same in /run/seawall/decisions.jsonl and in the kernel's log."""
    at: str
    trigger: str
    how: str
    """``acted``, ``observed``, ``refused``, ``reported``."""
    sentence: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutside:
    """One of the workloads that hold most uncounted memory; bytes."""

    name: str
    cgroup: str
    counted_bytes: int
    limit_bytes: int | None
    outside_certain_bytes: int
    outside_most_bytes: int
    sources: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardStatus:
    """The topic: what the guard last wrote about itself and the node into status.json."""

    boot_id: str
    unix_seconds: float
    """When it was written."""
    since_unix_seconds: float
    pid: int
    mode: str
    """``observe`` or ``enforce``."""
    mode_why: str
    """Why it observes although its file says otherwise; empty: it does what the file says."""
    state: str
    """``peace``, ``near``, ``short``, ``holding``, ``blind``; ``stopped``: it has ended."""
    can_kill: bool
    """Proved by its last self-test."""
    can_kill_words: str
    watcher: str
    config: str
    headroom_bytes: int
    headroom_seconds: float | None
    """Until it is gone at that moment's pace; None: it did not shrink."""
    residual_bytes: int | None
    residual_grown_bytes: int
    decisions: int
    kills: int
    returned_bytes: int
    last_decision: LastDecision | None
    top: tuple[HeldOutside, ...]
    blind: tuple[str, ...]
    problems: tuple[str, ...]
    others: tuple[str, ...]
    scope: tuple[str, ...]


def parse(data: bytes) -> GuardStatus:
    """A document of schema ``seawall.guard-status-page/1``; further keys are skipped."""
    found = document(data, SCHEMA)
    mode, last, host = word(found, "mode"), found.get("last_decision"), found.get("host")
    can_kill = found.get("can_kill")
    if mode not in _MODES or not isinstance(can_kill, bool) or not isinstance(host, dict):
        raise ParseProblem(0, f"host, can_kill, and mode as one of {_MODES}", data)
    return GuardStatus(
        boot_id=word(host, "boot_id"), unix_seconds=float(number(found, "unix_seconds")),
        since_unix_seconds=float(number(found, "since_unix_seconds")),
        pid=int(number(found, "pid")), mode=mode, mode_why=word(found, "mode_why"),
        state=word(found, "state"), can_kill=can_kill,
        can_kill_words=word(found, "can_kill_words"), watcher=word(found, "watcher"),
        config=word(found, "config"),
        headroom_bytes=int(number(found, "headroom_bytes", -NUMBER_MOST)),
        headroom_seconds=_optional(found, "headroom_seconds"),
        residual_bytes=_bytes_or_none(found, "residual_bytes", -NUMBER_MOST),
        residual_grown_bytes=int(number(found, "residual_grown_bytes", -NUMBER_MOST)),
        decisions=int(number(found, "decisions")), kills=int(number(found, "kills")),
        returned_bytes=int(number(found, "returned_bytes")),
        last_decision=None if last is None else _last(last),
        top=tuple(_group(row) for row in _rows(found, "top")), blind=_words(found, "blind"),
        problems=_words(found, "problems"), others=_words(found, "others"),
        scope=_words(found, "scope"),
    )  # fmt: skip


def read(host: Host) -> GuardStatus | Unread:
    """Unread (``absent``) as well when the file is of another boot."""
    status = read_as(host, PATH, parse, LIMIT_BYTES)
    if isinstance(status, Unread):
        return status
    boot_id = host.read(BOOT_ID)
    if isinstance(boot_id, Unread):
        return boot_id
    if decode_name(boot_id).strip() != status.boot_id:
        return Unread(PATH, "absent", "of a guard of another boot")
    return status


def _last(row: JSON) -> LastDecision:
    if not isinstance(row, dict):
        raise ParseProblem(0, "an object for last_decision")
    return LastDecision(
        decision=word(row, "decision"), at=word(row, "at"), trigger=word(row, "trigger"),
        how=word(row, "how"), sentence=word(row, "sentence"), result=word(row, "result"),
    )  # fmt: skip


def _group(row: JSON) -> HeldOutside:
    if not isinstance(row, dict):
        raise ParseProblem(0, "objects in top")
    return HeldOutside(
        name=word(row, "name"), cgroup=word(row, "cgroup"), sources=word(row, "sources"),
        counted_bytes=int(number(row, "counted_bytes")),
        limit_bytes=_bytes_or_none(row, "limit_bytes"),
        outside_certain_bytes=int(number(row, "outside_certain_bytes")),
        outside_most_bytes=int(number(row, "outside_most_bytes")),
    )  # fmt: skip


def _rows(found: Mapping[str, JSON], key: str) -> list[JSON]:
    rows = found.get(key)
    if not isinstance(rows, list) or len(rows) > _LIST_MOST:
        raise ParseProblem(0, f"a list of at most {_LIST_MOST} for {key}")
    return rows


def _words(found: Mapping[str, JSON], key: str) -> tuple[str, ...]:
    return tuple(word({key: row}, key) for row in _rows(found, key))


def _optional(found: Mapping[str, JSON], key: str) -> float | None:
    return None if found.get(key) is None else float(number(found, key))


def _bytes_or_none(found: Mapping[str, JSON], key: str, least: int = 0) -> int | None:
    return None if found.get(key) is None else int(number(found, key, least))
