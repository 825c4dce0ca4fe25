# SPDX-License-Identifier: Apache-2.0
"""Which jobs had a node when it fell silent, and on how many nodes their like ran.  Pure.

slurmctld gives a silent node's jobs back to the queue once it gives the node up; what ran there is
known from the looks before.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from seawall.cluster.judge.node_death import NodeLoads, Stratum, WorkloadKey
from seawall.cluster.judge.workload_keys import stable_name
from seawall.cluster.slurm.job_keys import LEVEL_SCRIPT, job_keys
from seawall.cluster.slurm.slurm_death import JOBS_MOST, LOADS_MOST, DeathJob
from seawall.cluster.slurm.slurm_rows import (
    NODE_FAIL,
    AccountedJob,
    SlurmctldNodeRow,
    SlurmJobRow,
)

_NAME_MOST: Final = 128
ScriptDigest = Callable[[SlurmJobRow], "str | None"]
"""None: it was not read; empty: it has none."""


class DeadNodeJobs:
    """What each node runs, look by look."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, SlurmJobRow]] = {}

    def see(
        self, nodes: Mapping[str, SlurmctldNodeRow], jobs: Mapping[int, SlurmJobRow],
        silent: Iterable[str],
    ) -> None:  # fmt: skip
        """Of a node that answers what it runs now; of a silent one that, too, as long as slurmctld
        has not given it up.
        """
        now: dict[str, dict[str, SlurmJobRow]] = {}
        for row in jobs.values():
            if row.is_on_nodes:
                for node in row.nodes:
                    now.setdefault(node, {})[row.run] = row
        silent = set(silent)
        for name in nodes:
            if name in silent:
                self._by_node.setdefault(name, {}).update(now.get(name, {}))
            else:
                self._by_node[name] = now.get(name, {})
        for name in [name for name in self._by_node if name not in nodes]:
            del self._by_node[name]

    def on_dead(
        self, node: str, since: float, jobs: Mapping[int, SlurmJobRow],
        accounted: Iterable[AccountedJob],
    ) -> list[SlurmJobRow]:  # fmt: skip
        """Those that had it at ``since``, by number; ``accounted``: what slurmdbd says besides."""
        found = {
            run: row
            for run, row in self._by_node.get(node, {}).items()
            if not _ended_before(jobs.get(row.job), row, since)
        }
        for one in accounted:
            row = jobs.get(one.job)
            if node not in one.nodes or any(known.job == one.job for known in found.values()):
                continue
            if row is None or row.uid != one.uid:
                row = SlurmJobRow(
                    one.job, one.job, "", one.uid, one.user, one.account, NODE_FAIL, "", 0,
                    False, 0, one.nodes, one.ended_seconds, "", "", one.name,
                )  # fmt: skip
            found[row.run] = row
        return sorted(found.values(), key=lambda row: row.job)[:JOBS_MOST]

    def forget(self, node: str) -> None:
        """It died: nothing runs there any more."""
        self._by_node.pop(node, None)

    def death_jobs(self, rows: Iterable[SlurmJobRow], digest: ScriptDigest) -> tuple[DeathJob, ...]:
        """With their keys, and on how many nodes each key was."""
        rows = list(rows)
        running = {run: row for on in self._by_node.values() for run, row in on.items()}
        running |= {row.run: row for row in rows}
        keys_of = {row.run: job_keys(row, digest(row)) for row in rows}
        wanted = {key for keys in keys_of.values() for key in keys}
        owners = {(row.uid, row.account) for row in rows}
        spread: dict[WorkloadKey, set[str]] = {key: set() for key in wanted}
        for row in running.values():
            if (row.uid, row.account) not in owners:
                continue
            known = digest(row)
            own = keys_of.get(row.run) or job_keys(row, known)
            if known is None:  # it may be any of its owner's: from above
                prefix = f"{row.uid}/{row.account}/"
                own += tuple(
                    key for key in wanted
                    if key.level == LEVEL_SCRIPT and key.value.startswith(prefix)
                )  # fmt: skip
            for key in own:
                if key in spread:
                    spread[key].update(row.nodes)
        return tuple(
            DeathJob(
                row.run,
                row.unit,
                row.uid,
                row.user,
                row.account,
                row.name[:_NAME_MOST],
                keys_of[row.run],
                tuple(max(len(spread[key]), 1) for key in keys_of[row.run]),
            )
            for row in rows
        )

    def loads(self, node: str, living: Iterable[str]) -> NodeLoads | None:
        """How busy it was, and the others of its stratum; None: no other lives."""
        names = sorted(living)
        if not names:
            return None
        step = max(len(names) // LOADS_MOST, 1)
        sample = tuple(len(self._by_node.get(name, {})) for name in names[::step][:LOADS_MOST])
        return NodeLoads(len(self._by_node.get(node, {})), len(names), sample)


def _ended_before(now: SlurmJobRow | None, then: SlurmJobRow, since: float) -> bool:
    """Whether it had ended, well or badly, before its node fell silent."""
    if now is None or now.run != then.run or not now.is_over or now.state == NODE_FAIL:
        return False
    return now.ended_seconds is not None and now.ended_seconds < since


def strata_of(nodes: Mapping[str, SlurmctldNodeRow]) -> dict[str, Stratum]:
    """Of each node: its partitions and its kernel."""
    return {name: Stratum(row.pool, row.kernel) for name, row in nodes.items()}


def label_of(job: DeathJob) -> str:
    """``train-# of alice``: for people."""
    return f"{stable_name(job.name)} of {job.user}"
