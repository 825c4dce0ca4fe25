"""By whose hand a workload ended: what the guard, the kernel and each peer say that they did.

A number alone says nothing: logs are full of MiB that are somebody's pid too.  The peers' lines
are those of Debian 12: earlyoom 1.7, nohang 0.2.0, oomd 0.5.0, systemd-oomd 252.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

ENDS = frozenset({"kill", "terminate"})
Row = Mapping[str, Any]

# --- the guard -------------------------------------------------------------------------


def journal(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Lines of the guard's decisions, those of the older file first; the last may be torn."""
    text = files.get("decisions.1.jsonl", "") + files.get("decisions.jsonl", "")
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def signalled(rows: Iterable[Row], *, is_done: bool = False) -> set[str]:
    """Cgroups in which the guard signalled somebody; ``is_done``: and all that it was to."""
    outcomes = [row["outcome"] for row in rows if row.get("outcome")]
    return {
        one["order"]["cgroup"] for one in outcomes
        if one["order"]["step"] in ENDS and one["processes"] and not one["is_observed"]
        and (one["is_done"] or not is_done)
    }  # fmt: skip


def interrupted(rows: Iterable[Row], path: str) -> bool:
    """Whether a guard was ended while it signalled it, as the next one says."""
    ended = re.compile(
        r"the guard before was ended while it sent SIG(TERM|KILL), by decision [0-9a-f]{8}-\d+, "
        rf"to /sys/fs/cgroup(/memory|/unified)?{re.escape(path)}"
    )
    return any(ended.fullmatch(row["sentence"]) for row in rows if row["kind"] == "event")


# --- the kernel ------------------------------------------------------------------------


def kernel_hand(texts: Iterable[str], path: str) -> str:
    """Of a cgroup or one below it, by the kernel's log; empty: it says nothing."""
    its = re.compile(rf"\btask_memcg={re.escape(path)}[,/]")
    for text in texts:
        if its.search(text):
            return "kernel" if ",global_oom," in text else "kernel, its limit"
    return ""


# --- the peers -------------------------------------------------------------------------

_EARLYOOM = re.compile(r"^sending SIG(?:TERM|KILL) to process (\d+) uid ", re.MULTILINE)
# It names the victim some lines before what it does to it, and says then whether that was done.
_NOHANG = re.compile(
    r"^  PID: +(\d+), name: (?:(?!^  PID: ).)*?^  Sending SIG(?:TERM|KILL) to the victim\nOK; ",
    re.MULTILINE | re.DOTALL,
)
_OOMD = re.compile(r"\bKilled [1-9]\d*:((?: \d+\S*)+)$", re.MULTILINE)
_OOMD_PID = re.compile(r" (\d+)(?:\([^()]*\))?(?=\s|$)")
"""Not ``123(name)[E3]``: that one was gone."""
_SYSTEMD_OOMD = re.compile(r"\bKilled (/\S+) due to ")
"""Those that it merely considered are named with their paths too."""


def pids_killed(peer: str, log: str) -> set[int]:
    """Processes that a peer says it signalled."""
    if peer == "earlyoom":
        found = _EARLYOOM.findall(log)
    elif peer == "nohang":
        found = _NOHANG.findall(log)
    elif peer == "oomd":
        found = [pid for rest in _OOMD.findall(log) for pid in _OOMD_PID.findall(rest)]
    else:
        found = []
    return set(map(int, found))


def is_killed(peer: str, log: str, row: Row) -> bool:
    """One of its processes, or its cgroup, or one above or below that."""
    path = f"{row['path']}/"
    killed = [f"{one}/" for one in _SYSTEMD_OOMD.findall(log)] if peer == "systemd-oomd" else []
    return any(path.startswith(one) or one.startswith(path) for one in killed) or bool(
        pids_killed(peer, log) & set(row["pids"])
    )
