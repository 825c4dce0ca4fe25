# SPDX-License-Identifier: Apache-2.0
"""What is thought of one key's jobs, what was done to them, and the way back.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.slurm.job_keys import LEVEL_NAME, LEVEL_UNIT, job_keys
from seawall.cluster.slurm.slurm_rows import SlurmJobRow

JobQuarantineState = Literal["Suspected", "Proposed", "Active", "Released"]
"""Suspected: the judge would not convict; Proposed: it convicts; Active: by policy or a person's
word its jobs are held; Released: it is over, and the jobs were let go."""
HoldLever = Literal["hold", "requeuehold"]
"""requeuehold: the running job is ended and waits, held."""
HoldResult = Literal["begun", "done", "refused", "changed", "undone", "gone"]
"""begun: written down, and perhaps not done; changed: somebody released it since, and it is left
alone; gone: it ended."""
HOLDS_MOST: Final = 2000
OPEN_RESULTS: Final = ("begun", "done")
EXPIRED: Final = "its time was over"
"""Who released what no person released: a further death counts at once."""
NODES_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class JobHold:
    """One write to slurmctld, recorded before it is made."""

    target: str
    """``4711``: a job, or an array with all its tasks; ``4700_12``: one task."""
    lever: HoldLever
    at_seconds: float
    priority_before: int
    """0: not known."""
    result: HoldResult
    words: str = ""
    """Why it was refused or left."""
    restores: bool = False
    """The priority before is put back: Slurm would not reckon it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuarantine:
    """Of one key."""

    name: str
    key: WorkloadKey
    uid: int
    user: str
    account: str
    label: str
    """The job's name; written by its user."""
    state: JobQuarantineState
    verdict: str
    score_log10: float
    threshold_log10: float
    nodes: tuple[str, ...]
    deaths: tuple[str, ...]
    why_not: str
    """Why it is no conviction, or why nothing is done."""
    named_seconds: float
    expires_seconds: float
    activated_seconds: float | None = None
    approved_by: str = ""
    """Empty: nobody's word but the policy's."""
    may_end: bool = False
    """A person also let running jobs be ended."""
    released_by: str = ""
    holds: tuple[JobHold, ...] = ()

    def matches(self, row: SlurmJobRow, script: str | None) -> bool:
        """Whether the row is one of its jobs; a script that was not read is nobody's."""
        if self.key.level in (LEVEL_UNIT, LEVEL_NAME):
            return self.key in job_keys(row, None)
        return self.key in job_keys(row, script)

    def with_hold(self, hold: JobHold) -> "JobQuarantine":
        """The latest of each target and lever."""
        rest = [one for one in self.holds if (one.target, one.lever) != (hold.target, hold.lever)]
        return replace(self, holds=(*rest, hold)[-HOLDS_MOST:])

    def open_holds(self) -> tuple[JobHold, ...]:
        """That are to be undone, holds first: with them goes what was ended."""
        found = [one for one in reversed(self.holds) if one.result in OPEN_RESULTS]
        return tuple(sorted(found, key=lambda one: one.lever != "hold"))

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {
            **plain, "key": [self.key.level, self.key.value], "nodes": list(self.nodes),
            "deaths": list(self.deaths),
            "holds": [
                {name: getattr(one, name) for name in JobHold.__slots__} for one in self.holds
            ],
        }  # fmt: skip


_PLAIN: Final[Mapping[str, type | tuple[type, ...]]] = {
    "name": str, "uid": int, "user": str, "account": str, "label": str, "state": str,
    "verdict": str, "score_log10": (int, float), "threshold_log10": (int, float), "why_not": str,
    "named_seconds": (int, float), "expires_seconds": (int, float),
    "activated_seconds": (int, float, type(None)), "approved_by": str, "may_end": bool,
    "released_by": str,
}  # fmt: skip
_HOLD: Final[Mapping[str, type | tuple[type, ...]]] = {
    "target": str, "lever": str, "at_seconds": (int, float), "priority_before": int,
    "result": str, "words": str, "restores": bool,
}  # fmt: skip
_WORDS: Final = {
    "state": get_args(JobQuarantineState), "lever": get_args(HoldLever),
    "result": get_args(HoldResult),
}  # fmt: skip


def job_quarantine(document: Mapping[str, Any]) -> JobQuarantine:
    """As it was written.  KeyError, TypeError, ValueError: it was not."""
    level, value = document["key"]
    holds = tuple(JobHold(**_checked(one, _HOLD)) for one in document["holds"])
    return JobQuarantine(
        **_checked(document, _PLAIN), key=WorkloadKey(int(level), str(value)),
        nodes=tuple(map(str, document["nodes"])), deaths=tuple(map(str, document["deaths"])),
        holds=holds,
    )  # fmt: skip


def _checked(document: Any, kinds: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    found = {name: document[name] for name in kinds}
    for name, value in found.items():
        if not isinstance(value, kinds[name]) or value not in _WORDS.get(name, (value,)):
            raise ValueError(f"{name}: {value!r}")
    return found


def quarantine_name(user: str, key: WorkloadKey) -> str:
    """Short, the same each time, and of letters that a shell leaves alone."""
    import hashlib  # noqa: PLC0415 - not whole in the self-contained file

    digest = hashlib.sha256(f"{key.level} {key.value}".encode("utf-8", "surrogateescape"))
    letters = "".join(one if one.isascii() and one.isalnum() else "-" for one in user)[:24]
    return f"{letters or 'user'}-{digest.hexdigest()[:8]}"
