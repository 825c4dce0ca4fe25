# SPDX-License-Identifier: Apache-2.0
"""What one look at a node of Slurm finds of its jobs, as values (host/slurm_node_look.py)."""

from dataclasses import dataclass
from typing import NamedTuple

from seawall.slurm_paths import JobPart


class SlurmRemark(NamedTuple):
    """What was not looked at or is not judged, and the check that it is of."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProcesses:
    """One job's cgroup, and who is in it."""

    part: JobPart
    users: int
    """Processes that are not slurmstepd's."""
    has_stepd: bool
    """A slurmstepd of root's is in it: the job or one of its steps runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodeLook:
    """What is there at one moment."""

    jobs: tuple[JobProcesses, ...]
    shm_bytes: dict[int, int]
    """In /dev/shm by the uid of the file's owner; no root's."""
    uids: frozenset[int] | None
    """Whoever has a process here; None where nobody had to be asked."""
    has_stray_stepd: bool = False
    """A slurmstepd of root's in no job's cgroup, where no job has one that counts memory."""
    unseen: tuple[SlurmRemark, ...] = ()

    @property
    def running(self) -> tuple[JobProcesses, ...]:
        """Jobs whose slurmstepd lives."""
        return tuple(job for job in self.jobs if job.has_stepd)

    @property
    def is_idle(self) -> bool:
        """No job runs here, in whatever cgroup."""
        return not self.running and not self.has_stray_stepd
