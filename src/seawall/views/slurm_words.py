# SPDX-License-Identifier: Apache-2.0
"""A Slurm job in words: whose it is, and why Slurm's own numbers of its memory differ."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.workloads import Workload
from seawall.readings.slurm_jobs import SlurmJob
from seawall.words import size

_NOTABLE_BYTES: Final = 1 << 20


def job_words(workload: Workload) -> str:
    """``Slurm job 7, step batch, of alice (uid 1000); its environment says task 2 of array 5,
    account physics``; empty for what is no job.
    """
    job = workload.slurm
    if job is None:
        return ""
    words = f"Slurm job {job.job}" + (f", step {workload.step}" if workload.step else "")
    if job.user is not None:
        words += f", of {job.user} (uid {job.uid})"
    elif job.uid is not None:
        words += f", of uid {job.uid}"
    said = ", ".join(_claims(job))
    return words + (f"; its environment says {said}" if said else "")


def _claims(job: SlurmJob) -> Iterator[str]:
    claims = job.claims
    if claims.job:
        yield f"job {claims.job}"
    if claims.user:
        yield f"user {claims.user}"
    if claims.array_job:
        yield f"task {claims.array_task} of array {claims.array_job}"
    if claims.account:
        yield f"account {claims.account}"


def accounting_words(group: MemoryGroup) -> Iterator[str]:
    """Why MaxRSS, sstat, seff and TRES usage are not the cgroup's numbers; a sentence each."""
    memcg = group.memcg
    yield (
        "Slurm's RSS is a sample every JobAcctGatherFrequency (30 s unless slurm.conf says another)"
        " of each task: what grows and is killed between two samples is in none of them. MaxRSS is"
        " the largest task's, TRESUsageInTot mem the sum of each task's highest sample, of whatever"
        " moment; seff divides that of the step where it is largest by what was allocated. None is"
        " the job's highest use."
    )
    if memcg.version == 1:
        missing = "no page cache, no tmpfs, no kernel memory"
    else:
        missing = (
            "no page cache, no tmpfs, no kernel memory up to 23.02; all of it, page cache too, from"
            " 23.11 on"
        )
    yield f"RSS by jobacct_gather/cgroup has {missing}; by jobacct_gather/linux it is RES as above."
    tmpfs = memcg.shmem
    if tmpfs is not None and tmpfs >= _NOTABLE_BYTES:
        yield (
            f"{size(tmpfs)} of it is in /dev/shm, another tmpfs or shared memory: it counts to the"
            " limit of --mem, and MaxRSS may have none of it."
        )
    yield (
        "What --mem limits is the cgroup's usage, whatever MaxRSS says. Memory of a GPU, and what a"
        " driver or a network takes outside every cgroup, is in none of these: seawall memory."
    )
