# SPDX-License-Identifier: Apache-2.0
"""Nodes as slurmctld has them, by one call of sinfo: state with all flags, and who drained them.

``StateComplete`` is there since 20.11, ``Extra`` since 21.08 (src/sinfo/opts.c); an older sinfo
refuses the format.  Reason and time are printed of nodes that are drained, down or failing alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.problems import ParseProblem

FIELDS: Final = (
    "NodeList", "NodeHost", "StateComplete", "Timestamp", "Comment", "Extra", "Reason"
)  # fmt: skip
_ENDS_FIELD: Final = "\x1f"
COMMAND: Final = (
    "sinfo", "--local", "--all", "--noheader", "--Node",
    "--Format=" + ",".join(f"{name}:0{_ENDS_FIELD}" for name in FIELDS),
)  # fmt: skip
"""To be called with SLURM_TIME_FORMAT=%s; its size is some 100 bytes a node."""
NODES_MOST: Final = 200_000
_NOTHING: Final = ("(null)", "none", "N/A")


@dataclass(frozen=True, slots=True)
class SlurmNodeRow:
    """One node as slurmctld sees it."""

    name: str
    host: str
    states: frozenset[str]
    """``idle``, ``drain``, ``not_responding``: in small letters, without other marks."""
    reason_unix_seconds: int | None
    comment: str
    extra: str
    reason: str
    """Without the user's name; empty for nodes that are up."""


def parse(data: bytes) -> Mapping[str, SlurmNodeRow]:
    """By name; a node of several partitions stands there once.  ParseProblem for anything else."""
    found: dict[str, SlurmNodeRow] = {}
    text = data.decode("utf-8", "replace")
    records = text.split(_ENDS_FIELD + "\n")  # a reason may have a line's end in it
    if records.pop() != "":
        raise ParseProblem(0, "the end of a node's line", data[-60:])
    for number, record in enumerate(records, 1):
        words = record.split(_ENDS_FIELD)
        if len(words) != len(FIELDS) or not words[0] or number > NODES_MOST:
            raise ParseProblem(number, f"{len(FIELDS)} fields", record.encode())
        name, host, states, when, comment, extra, reason = words
        found[name] = SlurmNodeRow(
            name=name, host=host, states=frozenset(states.lower().split("+")),
            reason_unix_seconds=int(when) if when.isascii() and when.isdigit() else None,
            comment=_or_empty(comment), extra=_or_empty(extra), reason=_or_empty(reason),
        )  # fmt: skip
    return found


def _or_empty(word: str) -> str:
    return "" if word in _NOTHING else word
