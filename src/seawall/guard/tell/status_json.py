# SPDX-License-Identifier: Apache-2.0
"""/run/seawall/status.json: the status for programs, schema ``seawall.guard-status-page/1``.

``readings/guard_status.py`` reads it.  Bounded: lists that are too long are cut and counted.
"""

from typing import Any, Final

from seawall.guard.tell.plain import finite, line_of, moment, plain
from seawall.guard.tell.status_values import (
    NOT_PROVED,
    TOP,
    LatestDecision,
    StatusValues,
    seconds_left,
)
from seawall.guard.tick_facts import Group
from seawall.version import VERSION

SCHEMA: Final = "seawall.guard-status-page/1"
PAGE_BYTES: Final = 16384
_ROWS_MOST: Final = 16
_WORDS_MOST: Final = 300


def document(shown: StatusValues) -> bytes:
    """One line of at most PAGE_BYTES."""
    rows = _ROWS_MOST
    while True:
        line = line_of({**_about(shown), **_figures(shown), **_lists(shown, rows)})
        if len(line) <= PAGE_BYTES or not rows:
            return line
        rows //= 2


def _about(shown: StatusValues) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tool_version": VERSION,
        "taken_at": moment(shown.unix_seconds),
        "unix_seconds": finite(shown.unix_seconds),
        "host": {"node": plain(shown.host, 100), "boot_id": plain(shown.boot_id, 64)},
        "pid": shown.pid,
        "since_unix_seconds": finite(shown.since),
        "config": plain(shown.config, _WORDS_MOST),
        "mode": shown.mode,
        "mode_why": plain(shown.mode_why, _WORDS_MOST),
        "brake_since_unix_seconds": finite(shown.brake_since),
        "takes_rescue": shown.takes_rescue,
        "rescue": shown.rescue,
        "state": plain(shown.state, 40),
        "can_kill": shown.can_kill_is_proved,
        "can_kill_words": plain(shown.can_kill or NOT_PROVED, _WORDS_MOST),
        "watcher": plain(shown.watcher, _WORDS_MOST),
        "blackbox": plain(shown.blackbox, _WORDS_MOST),
        "last_decision": None if shown.last is None else _last(shown.last),
        **shown.counts,
    }


def _figures(shown: StatusValues) -> dict[str, Any]:
    node = shown.node
    return {
        "total_bytes": node.total_bytes,
        "free_bytes": node.free_bytes,
        "headroom_bytes": node.headroom_bytes,
        "headroom_shrinks_bytes_per_second": finite(node.slope_bytes_per_second, 0),
        "headroom_seconds": finite(seconds_left(node)),
        "headroom_in_swap_bytes": node.swap_bytes,
        "swap_used_bytes": node.swap_used_bytes,
        "residual_bytes": node.residual_bytes,
        "residual_grown_bytes": node.residual_grown_bytes,
        "residual_grows_bytes_per_second": finite(node.residual_slope_bytes_per_second, 0),
        "unexplained_growth_bytes": node.unexplained_growth_bytes,
        "is_low": node.is_low,
        "is_min": node.is_min,
        "stalls_per_second": finite(node.stalls_per_second),
        "protected_stall": finite(node.protected_stall, 4),
        "claims_seconds": finite(node.claims_seconds),
    }


def _lists(shown: StatusValues, rows: int) -> dict[str, Any]:
    lists = {
        "blind": shown.blind, "problems": shown.problems, "others": shown.others,
        "scope": list(shown.scope), "notes": shown.notes,
    }  # fmt: skip
    left_out = sum([max(0, len(words) - rows) for words in lists.values()])
    short = {name: [plain(w, _WORDS_MOST) for w in words[:rows]] for name, words in lists.items()}
    return {**short, "left_out": left_out, "top": [_group(group) for group in shown.top[:TOP]]}


def _last(last: LatestDecision) -> dict[str, Any]:
    return {
        "decision": plain(last.decision, 64),
        "at": moment(last.unix_seconds),
        "trigger": plain(last.trigger, 40),
        "how": last.how,
        "sentence": plain(last.sentence, 1000),
        "result": plain(last.result, 400),
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": plain(group.name, 256),
        "cgroup": plain(group.path, 512),
        "inode": group.inode,
        "counted_bytes": group.charge_bytes,
        "limit_bytes": group.limit_bytes,
        "outside_certain_bytes": group.outside.certain_bytes,
        "outside_most_bytes": group.outside.most_bytes,
        "sources": plain(group.outside.sources, 200),
    }
