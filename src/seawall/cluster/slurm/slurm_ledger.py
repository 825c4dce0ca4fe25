# SPDX-License-Identifier: Apache-2.0
"""All deaths that are kept, and what the judge says of them.  Pure.

The judge hears all of them anew whenever one came, went or is protected by another policy: there
are a thousand at most, and deaths are rare.
"""

from collections.abc import Iterable
from typing import Final

from seawall.cluster.judge.cluster_judge import (
    RETENTION_SECONDS,
    ClusterJudge,
    JudgePolicy,
    SuspicionState,
    WorkloadSuspicion,
)
from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.slurm.slurm_death import PROTECTED, DeathJob, SlurmDeath

DEATHS_MOST: Final = 1000
_RANK: Final = {
    SuspicionState.CONVICTED: 0, SuspicionState.INSEPARABLE: 1, SuspicionState.SUSPECTED: 2,
    SuspicionState.CANNOT_TELL: 3,
}  # fmt: skip


class SlurmLedger:
    """Deaths in, suspicions out."""

    def __init__(self, deaths: Iterable[SlurmDeath] = ()) -> None:
        self._deaths = {one.name: one for one in deaths}

    @property
    def deaths(self) -> tuple[SlurmDeath, ...]:
        """In the order of time."""
        return tuple(sorted(self._deaths.values(), key=lambda one: (one.moment_seconds, one.name)))

    def add(self, death: SlurmDeath) -> None:
        """One more; beyond DEATHS_MOST the oldest goes."""
        self._deaths[death.name] = death
        for one in self.deaths[:-DEATHS_MOST]:
            del self._deaths[one.name]

    def retract(self, node: str, since_seconds: float) -> SlurmDeath | None:
        """The node never died; the death that this was, if it is known."""
        name = death_name(node, since_seconds)
        return self._deaths.pop(name, None)

    def forget_before(self, now_seconds: float) -> None:
        """What is older than the judge remembers."""
        for one in self.deaths:
            if one.moment_seconds < now_seconds - RETENTION_SECONDS:
                del self._deaths[one.name]

    def moment(self, since_seconds: float, round_seconds: float) -> float:
        """Of a silence: that of the earlier death whose silence the same round of pings may have
        found.  Nodes that lost power together are found silent up to a round apart.
        """
        near = [
            one.moment_seconds
            for one in self._deaths.values()
            if 0.0 <= since_seconds - one.moment_seconds <= round_seconds
        ]
        return min(near, default=since_seconds)

    def suspicions(
        self, watched_since: float, false_per_thousand_node_years: float,
        users: frozenset[str], accounts: frozenset[str],
    ) -> tuple[WorkloadSuspicion, ...]:  # fmt: skip
        """As of each one's last death, worst first.  Of keys that name the same jobs the one with
        the most deaths, and of these the finest: who is submitted anew is found by a coarser one.
        ``users`` and ``accounts`` are never suspects.
        """
        judge = ClusterJudge(JudgePolicy(frozenset({PROTECTED}), false_per_thousand_node_years))
        judge.watch_from(watched_since)
        keys: dict[WorkloadKey, set[str]] = {}
        for death in self.deaths:
            judge.add(death.to_judge(users, accounts))
            for job in death.jobs:
                for key in job.keys:
                    keys.setdefault(key, set()).add(job.run)
        judged = sorted(
            judge.judge(keys),
            key=lambda one: (
                _RANK[one.state], -len(one.deaths), one.key.level, -one.score_log10, one.key
            ),
        )  # fmt: skip
        chosen: list[WorkloadSuspicion] = []
        for one in judged:
            if not any(keys[one.key] & keys[other.key] for other in chosen):
                chosen.append(one)
        return tuple(chosen)

    def job_of(self, key: WorkloadKey) -> DeathJob | None:
        """The last one of that key; None: no death has it."""
        for death in reversed(self.deaths):
            for job in death.jobs:
                if key in job.keys:
                    return job
        return None

    def last_seconds(self, names: Iterable[str]) -> float | None:
        """When the newest of these was observed."""
        known = [self._deaths[name].observed_seconds for name in names if name in self._deaths]
        return max(known, default=None)


def death_name(node: str, since_seconds: float) -> str:
    """The same for each look at the same silence."""
    return f"{node}.{since_seconds:.0f}"
