# SPDX-License-Identifier: Apache-2.0
"""What this node remembers of its own drains, on its disk: which is its own, when it lifted one,
what it saw in the look before, and what was decided lately.

One file a node (several slurmd may be on one host), written whole.  A disk that takes no file, or
a file that is not ours, costs the lifting of a drain, never a wrong one.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from seawall.accounts.drain_queue import DAY_SECONDS, REASON_HEAD
from seawall.replaced_file import replace_file

SCHEMA: Final = "seawall.slurm-drains/1"
_BYTES_MOST: Final = 256 << 10
_DECISIONS_MOST: Final = 50
_SEEN_MOST: Final = 200
_YIELDED_MOST: Final = 100


@dataclass(slots=True)
class OwnDrain:
    """A drain that this node made."""

    reason: str
    unix_seconds: int | None
    """When, by slurmctld; None: it could not be asked, and nobody here will lift it."""
    keys: list[str]
    """Of the findings that it was made for."""
    boot_id: str = ""
    """The boot that must be over before it is lifted; empty: none."""


@dataclass(slots=True)
class DrainRecord:
    """The file's content."""

    drain: OwnDrain | None = None
    lifts: list[float] = field(default_factory=list)
    """Unix seconds of the last day."""
    seen: dict[str, float] = field(default_factory=dict)
    """Findings of the look before, and since when each was there in every look."""
    well_since: float | None = None
    """Since when nothing was there to drain for."""
    yielded: list[str] = field(default_factory=list)
    """Findings whose drain somebody took back by hand: not drained for again before they end."""
    claim: str = ""
    """The field of slurmctld's in which its number may still stand: a run that was killed."""
    decisions: list[list[Any]] = field(default_factory=list)
    """Unix seconds and words, newest last."""

    def note(self, now: float, words: str) -> None:
        """Write down a decision, unless it is the last one once more."""
        if not self.decisions or self.decisions[-1][1] != words:
            self.decisions = [*self.decisions, [round(now, 1), words]][-_DECISIONS_MOST:]

    def see(self, keys: set[str], now: float) -> None:
        """What is there in this look; what is gone begins anew if it comes back."""
        before = self.seen
        self.seen = {key: min(before.get(key, now), now) for key in sorted(keys)[:_SEEN_MOST]}
        self.yielded = [key for key in self.yielded if key in keys][:_YIELDED_MOST]
        self.lifts = [moment for moment in self.lifts if abs(now - moment) < DAY_SECONDS]

    def age(self, key: str, now: float) -> float:
        """For how many seconds a finding was there in every look; 0: since this one."""
        return max(0.0, now - self.seen.get(key, now))


def path_of(folder: str, node: str) -> str:
    """The node's file; ValueError for a name that is no file's."""
    if not node or "/" in node or node.startswith(".") or not node.isprintable():
        raise ValueError(node)
    return f"{folder}/{node[:200]}.json"


def load(path: str) -> DrainRecord:
    """An empty one where there is none, or none that can be used."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            data = file.read(_BYTES_MOST + 1)
        document = json.loads(data) if len(data) <= _BYTES_MOST else None
    except (OSError, ValueError, RecursionError):
        return DrainRecord()
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return DrainRecord()
    return DrainRecord(
        drain=_drain(document.get("drain")),
        lifts=[float(one) for one in _list(document, "lifts") if _is_number(one)],
        seen={
            str(key): float(moment)
            for key, moment in _dict(document, "seen").items() if _is_number(moment)
        },
        well_since=document.get("well_since") if _is_number(document.get("well_since")) else None,
        yielded=[one for one in _list(document, "yielded") if isinstance(one, str)],
        claim=document["claim"] if document.get("claim") in ("Comment", "Extra") else "",
        decisions=[
            one for one in _list(document, "decisions")
            if isinstance(one, list) and len(one) == 2 and isinstance(one[1], str)
        ],
    )  # fmt: skip


def save(path: str, record: DrainRecord) -> None:
    """Whole or not at all; OSError."""
    drain = record.drain
    document = {
        "schema": SCHEMA,
        "drain": None if drain is None else {
            "reason": drain.reason, "unix_seconds": drain.unix_seconds, "keys": drain.keys,
            "boot_id": drain.boot_id,
        },
        "lifts": record.lifts, "seen": record.seen, "well_since": record.well_since,
        "yielded": record.yielded, "claim": record.claim, "decisions": record.decisions,
    }  # fmt: skip
    replace_file(path, json.dumps(document, indent=1).encode() + b"\n")


def _drain(value: object) -> OwnDrain | None:
    if not isinstance(value, dict):
        return None
    match value:
        case {"reason": str(reason), "unix_seconds": int() | None as moment, "keys": list(keys)}:
            if reason.startswith(REASON_HEAD):
                boot_id = str(value.get("boot_id", ""))
                return OwnDrain(reason, moment, [str(key) for key in keys], boot_id)
    return None


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _dict(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
