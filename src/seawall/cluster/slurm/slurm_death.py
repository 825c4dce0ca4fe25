# SPDX-License-Identifier: Apache-2.0
"""A node's death as it is kept: where, when, which jobs.  Pure.

What is read back was written by us; a file that says otherwise is refused whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    NodeDeath,
    NodeLoads,
    Stratum,
    WorkloadKey,
)
from seawall.cluster.objects.object_fields import ObjectFields, ObjectProblem
from seawall.cluster.objects.record_line import RecordLine, record_lines

PROTECTED: Final = "protected"
JOBS_MOST: Final = 128
"""Of one death; a node of more jobs keeps the first by number."""
LOADS_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class DeathJob:
    """A job that was allocated to the node when it fell silent."""

    run: str
    unit: int
    uid: int
    user: str
    account: str
    name: str
    keys: tuple[WorkloadKey, ...]
    nodes: tuple[int, ...]
    """For each key, how many nodes it had then, from above."""


@dataclass(frozen=True, slots=True)
class SlurmDeath:
    """One death.  Times are Unix seconds of the observer."""

    name: str
    node: str
    stratum: Stratum
    stratum_nodes: int
    moment_seconds: float
    """When it fell silent; nodes that one round of pings found silent have the same."""
    observed_seconds: float
    kind: DeathKind
    domain: str
    loads: NodeLoads | None
    jobs: tuple[DeathJob, ...]
    unseen: tuple[str, ...] = ()
    booted_seconds: float | None = None
    """When the boot that ended began, by slurmctld; None: not known."""
    record: tuple[RecordLine, ...] | None = None
    """What the node's own record says; its pods are ``DeathJob.run``.  None: none was believed."""
    record_words: str = ""
    """Why there is none; empty: it is there, or none was looked for."""

    def to_judge(self, protected_users: frozenset[str], accounts: frozenset[str]) -> NodeDeath:
        """As the judge takes it: whom the policy protects is never a suspect."""
        return NodeDeath(
            self.name, self.node, self.stratum, self.stratum_nodes, self.moment_seconds, self.kind,
            self.domain, loads=self.loads,
            workloads=tuple(
                BoundWorkload(
                    job.run, job.keys, job.nodes,
                    PROTECTED if job.user in protected_users or job.account in accounts else "",
                )
                for job in self.jobs
            ),
            record=None if self.record is None else tuple(one.evidence() for one in self.record),
        )  # fmt: skip

    def accuses(self, run: str) -> bool:
        """Whether its record names that job."""
        return any(run in line.pods for line in self.record or ())

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        loads = self.loads
        return {
            "name": self.name, "node": self.node, "pool": self.stratum.pool,
            "kernel": self.stratum.kernel, "stratum_nodes": self.stratum_nodes,
            "moment": self.moment_seconds, "observed": self.observed_seconds,
            "kind": self.kind.value, "domain": self.domain, "unseen": list(self.unseen),
            "booted": self.booted_seconds, "record_words": self.record_words,
            "record": None if self.record is None else [one.document() for one in self.record],
            "loads": None if loads is None else [loads.dead, loads.living, list(loads.sample)],
            "jobs": [
                {"run": job.run, "unit": job.unit, "uid": job.uid, "user": job.user,
                 "account": job.account, "name": job.name,
                 "keys": [[*key, nodes] for key, nodes in zip(job.keys, job.nodes, strict=True)]}
                for job in self.jobs
            ],
        }  # fmt: skip


def slurm_death(document: Mapping[str, Any]) -> SlurmDeath:
    """As it was written.  KeyError, TypeError, ValueError: it was not."""
    loads = document["loads"]
    return SlurmDeath(
        str(document["name"]), str(document["node"]),
        Stratum(str(document["pool"]), str(document["kernel"])), int(document["stratum_nodes"]),
        float(document["moment"]), float(document["observed"]), DeathKind(document["kind"]),
        str(document["domain"]),
        None if loads is None
        else NodeLoads(int(loads[0]), int(loads[1]), tuple(int(one) for one in loads[2])),
        tuple(_job(one) for one in document["jobs"]), tuple(map(str, document["unseen"])),
        None if document.get("booted") is None else float(document["booted"]),
        _record(document), str(document.get("record_words", "")),
    )  # fmt: skip


def _record(document: Mapping[str, Any]) -> tuple[RecordLine, ...] | None:
    if document.get("record") is None:
        return None
    try:
        return record_lines(ObjectFields(document, "a death"), "record")
    except ObjectProblem as problem:
        raise ValueError(str(problem)) from None


def _job(document: Mapping[str, Any]) -> DeathJob:
    keys = document["keys"]
    return DeathJob(
        str(document["run"]), int(document["unit"]), int(document["uid"]), str(document["user"]),
        str(document["account"]), str(document["name"]),
        tuple(WorkloadKey(int(level), str(value)) for level, value, _ in keys),
        tuple(int(nodes) for *_, nodes in keys),
    )  # fmt: skip
