# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a node of Slurm between its jobs: left behind by one that ended, or broken.

Nothing is a finding that a running job may cause: what is left of a user who has another job or any
process here is his, and uncounted memory is nobody's leftover as long as a job runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Unread
from seawall.readings.guard_status import GuardStatus
from seawall.slurm_node import JobProcesses, SlurmNodeLook, SlurmRemark
from seawall.words import counted, size

OLD_SECONDS: Final = 30.0
"""The guard writes its page at every tick."""
AHEAD_SECONDS: Final = 5.0
SHM_LEAST_BYTES: Final = 256 << 20
"""Of one user, left in /dev/shm."""
UNCOUNTED_SHARE: Final = 0.03
"""Of the node's memory, as SW101 warns: an idle host has 0.05 to 0.5 %."""


@dataclass(frozen=True, slots=True)
class SlurmProblem:
    """A fault of the node, or what a job left on it."""

    kind: str
    """The check."""
    words: str
    """A sentence without its full stop."""
    what: str = ""
    """Of which job or user, where a kind has several; the same in two looks for the same."""
    is_lasting: bool = False
    """It cannot pass by itself."""

    @property
    def key(self) -> str:
        """The same in two looks for the same fault."""
        return f"{self.kind} {self.what}".strip()


@dataclass(frozen=True, slots=True)
class SlurmHealth:
    """What was found, what could not be seen, and what is a running job's affair."""

    problems: tuple[SlurmProblem, ...]
    unseen: tuple[SlurmRemark, ...]
    notes: tuple[SlurmRemark, ...]


def judge(
    first: SlurmNodeLook, second: SlurmNodeLook, guard: GuardStatus | Unread,
    now_unix_seconds: float, total_bytes: int | None,
) -> SlurmHealth:  # fmt: skip
    """Of two looks a moment apart: what is there in one of them alone is coming or going."""
    problems = [*_left_processes(first, second), *_left_shm(first, second)]
    unseen = [*second.unseen]
    notes: list[SlurmRemark] = []
    is_idle = first.is_idle and second.is_idle
    stale = _why_not_believed(guard, now_unix_seconds)
    if stale:
        unseen.append(SlurmRemark("uncounted", stale))
    elif isinstance(guard, GuardStatus):
        problems += _of_guard(guard)
        grown = guard.residual_grown_bytes
        if total_bytes is None:
            words = "/proc/meminfo does not say how much memory there is"
            unseen.append(SlurmRemark("uncounted", words))
        elif grown >= UNCOUNTED_SHARE * total_bytes:
            words = f"{size(grown)} more than at its least is in no cgroup and in no counter"
            if is_idle:
                problems.append(SlurmProblem("uncounted", f"{words}, and no job runs here"))
            else:
                words += ": not judged while jobs run here (seawall memory)"
                notes.append(SlurmRemark("uncounted", words))
    return SlurmHealth(tuple(problems), tuple(unseen), tuple(notes))


def _left_processes(first: SlurmNodeLook, second: SlurmNodeLook) -> Iterator[SlurmProblem]:
    before = {job.part.cgroup for job in first.jobs if _is_left(job)}
    for job in second.jobs:
        if _is_left(job) and job.part.cgroup in before:
            whose = "" if job.part.uid is None else f" of uid {job.part.uid}"
            words = counted(job.users, "process", "processes")
            yield SlurmProblem(
                "processes",
                f"{words} of job {job.part.job}{whose} left: no slurmstepd is with it",
                what=job.part.cgroup,
            )


def _is_left(job: JobProcesses) -> bool:
    return bool(job.users) and not job.has_stepd


def _left_shm(first: SlurmNodeLook, second: SlurmNodeLook) -> Iterator[SlurmProblem]:
    """Of users who have nothing else here, in both looks."""
    if first.uids is None or second.uids is None:
        return
    here = first.uids | second.uids
    here |= {job.part.uid for look in (first, second) for job in look.jobs if job.part.uid}
    for uid, held in sorted(second.shm_bytes.items()):
        if uid not in here and min(held, first.shm_bytes.get(uid, 0)) >= SHM_LEAST_BYTES:
            yield SlurmProblem(
                "shm",
                f"{size(held)} in /dev/shm of uid {uid}, who has no job and no process here",
                what=str(uid),
            )


def _of_guard(guard: GuardStatus) -> Iterator[SlurmProblem]:
    if guard.mode == "enforce" and not guard.can_kill:
        yield SlurmProblem("guard", f"the guard should act and cannot: {guard.can_kill_words}")


def _why_not_believed(guard: GuardStatus | Unread, now: float) -> str:
    """Empty: what the page says is of now."""
    if isinstance(guard, Unread):
        return f"no guard tells of it ({guard.path}: {guard.detail or guard.why})"
    age = now - guard.unix_seconds
    if guard.state == "stopped":
        return "the guard has ended"
    if not -AHEAD_SECONDS <= age <= OLD_SECONDS:
        return f"the guard's page is {age:.0f} s old"
    return ""
