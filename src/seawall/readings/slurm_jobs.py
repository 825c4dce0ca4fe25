# SPDX-License-Identifier: Apache-2.0
"""Slurm's jobs on this node: whose they are, and what their own environment says of them.

Without a question to slurmctld, which may be what is down.  The job is what its cgroup says
(``slurm_paths.py``); its user is of v1's path, else of the job's processes; the user's name is of
/etc/passwd alone, for another source (LDAP) may hang.

Account and array are in the environment of the job's processes (src/common/env.c: SLURM_JOB_ID,
SLURM_JOB_UID, SLURM_JOB_ACCOUNT since 15.08, SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID), and **that
is what the user says**: ``SLURM_JOB_ACCOUNT=x sbatch ...`` is passed on where slurmctld keeps no
accounts, and a job that an array's task submits inherits the array's variables (both seen with
22.05.8).  So it is kept apart as ``claims``, and left out where job or user in it are others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.process_status import parse as parse_status
from seawall.readings.reading import read_as
from seawall.slurm_paths import JobPart, jobs_among, part_of

USERS: Final = "/etc/passwd"
USERS_BYTES_MOST: Final = 4 << 20
_JOBS_MOST: Final = 2048
"""Whose processes are asked."""
_PROCESSES_MOST: Final = 4
"""Of each job: whoever has become another user tells nothing of it."""
_SILENT_MOST: Final = 2
"""Locked address spaces: each costs its deadline."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\$?\Z")
_ACCOUNT: Final = re.compile(r"[\w.@+-]{1,64}\Z", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,10}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJobClaims:
    """What the environment of the job's processes says; its user can write anything there."""

    job: str | None = None
    """Its number: told where the cgroup has Slurm's own id alone."""
    user: str | None = None
    """Where /etc/passwd does not know the uid, and has nobody of that name."""
    account: str | None = None
    array_job: str | None = None
    array_task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """One job on this node."""

    job: str
    """Its number; since 26.05 Slurm's own id, unless ``CgroupJobIdPaths=yes``."""
    cgroup: str
    uid: int | None
    """Of the path, else of its processes; null: none could be asked."""
    user: str | None = None
    """The name of that uid in /etc/passwd."""
    claims: SlurmJobClaims = SlurmJobClaims()

    @property
    def owner(self) -> str:
        """``alice``, ``1001`` where the node has no name for it; empty where nobody is known."""
        return self.user or ("" if self.uid is None else str(self.uid))


@dataclass(frozen=True, slots=True)
class SlurmJobs:
    """The topic: jobs by the path of their cgroup."""

    by_cgroup: Mapping[str, SlurmJob]
    uncounted: tuple[SlurmJob, ...] = ()
    """Jobs that have a cgroup in v1's freezer tree and none where memory is counted: neither
    ConstrainRAMSpace nor JobAcctGatherType=jobacct_gather/cgroup."""
    unread: tuple[Unread, ...] = ()


NO_JOBS: Final = SlurmJobs({})


def read(host: Host, cgroups: Cgroups) -> SlurmJobs:
    """Every job, with what its environment says."""
    found = read_owners(host, cgroups)
    if not found.by_cgroup:
        return found
    told = dict(found.by_cgroup)
    silent: list[Unread] = []
    users = read_users(host) if any(job.user is None for job in told.values()) else {}
    taken = set() if isinstance(users, Unread) else set(users.values())
    for path, pids in _processes(cgroups, told):
        if len(silent) >= _SILENT_MOST:
            break
        job = told[path]
        claims = _asked(host, job, pids, silent)
        if job.user is not None or claims.user in taken or isinstance(users, Unread):
            claims = replace(claims, user=None)
        told[path] = replace(job, claims=claims)
    return replace(found, by_cgroup=told, unread=(*found.unread, *silent))


def read_owners(host: Host, cgroups: Cgroups, before: SlurmJobs = NO_JOBS) -> SlurmJobs:
    """Every job with its user; no environment is read, and what ``before`` knew is not asked
    again.
    """
    parts = jobs_among(cgroups.paths)
    uncounted = tuple(_uncounted(host, cgroups, parts))
    if not parts:
        return NO_JOBS if not uncounted else SlurmJobs({}, uncounted)
    known = before.by_cgroup
    found = {
        path: known[path] if path in known and known[path].uid is not None else _nameless(part)
        for path, part in parts.items()
    }
    for path, pids in _processes(cgroups, found):
        if found[path].uid is None:
            found[path] = replace(found[path], uid=_uid_of(host, pids))
    wanted = {job.uid for job in found.values() if job.uid is not None and job.user is None}
    users: Mapping[int, str] | Unread = read_users(host) if wanted else {}
    if isinstance(users, Unread):
        return SlurmJobs(found, uncounted, (users,) if users.why != "absent" else ())
    for path, job in found.items():
        if job.uid is not None and job.uid in users:
            found[path] = replace(job, user=users[job.uid])
    return SlurmJobs(found, uncounted)


def parse_users(data: bytes) -> dict[int, str]:
    """/etc/passwd: the first name of each uid, of those that a name can be printed of."""
    found: dict[int, str] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        words = line.split(":")
        if len(words) > 2 and _NUMBER.match(words[2]) and _NAME.match(words[0]):
            found.setdefault(int(words[2]), words[0])
    return found


def parse_job_environment(data: bytes) -> dict[str, str]:
    """/proc/PID/environ after the sieve: Slurm's variables; of one that is there twice the first,
    which is what getenv(3) gives.
    """
    found: dict[str, str] = {}
    for word in data.split(b"\0"):
        name, equals, value = word.decode("utf-8", "replace").partition("=")
        if equals and name.startswith("SLURM_"):
            found.setdefault(name, value)
    return found


def claims_of(job: SlurmJob, variables: Mapping[str, str]) -> SlurmJobClaims | None:
    """None where the environment is of another job or says another user."""
    number = variables.get("SLURM_JOB_ID", "")
    is_numbered = bool(_NUMBER.match(job.job))
    if not _NUMBER.match(number) or (is_numbered and number != job.job):
        return None
    uid = variables.get("SLURM_JOB_UID")
    if uid is not None and job.uid is not None and uid != str(job.uid):
        return None
    array = _fit(_NUMBER, variables.get("SLURM_ARRAY_JOB_ID"))
    task = _fit(_NUMBER, variables.get("SLURM_ARRAY_TASK_ID"))
    return SlurmJobClaims(
        job=None if is_numbered else number,
        user=_fit(_NAME, variables.get("SLURM_JOB_USER")),
        account=_fit(_ACCOUNT, variables.get("SLURM_JOB_ACCOUNT")),
        array_job=array if task else None,
        array_task=task if array else None,
    )


def _fit(pattern: re.Pattern[str], value: str | None) -> str | None:
    return value if value is not None and pattern.match(value) else None


def _nameless(part: JobPart) -> SlurmJob:
    return SlurmJob(job=part.job, cgroup=part.cgroup, uid=part.uid)


def _processes(cgroups: Cgroups, jobs: Mapping[str, SlurmJob]) -> Iterator[tuple[str, list[int]]]:
    """Some of each job's, those of its tasks first and of those the oldest by number; slurmstepd
    is none of them.
    """
    found: dict[str, list[tuple[bool, bool, int]]] = {}
    for path, pids in cgroups.pids.items():
        part = part_of(path)
        if part is not None and part.cgroup in jobs and not part.is_daemons:
            is_extern = part.step == "extern"
            found.setdefault(part.cgroup, []).extend(
                (not part.task, is_extern, pid) for pid in pids[:_PROCESSES_MOST]
            )
    for path, rows in list(found.items())[:_JOBS_MOST]:
        yield path, [pid for _, _, pid in sorted(rows)[:_PROCESSES_MOST]]


def _uid_of(host: Host, pids: Iterable[int]) -> int | None:
    """Of the first that is not root's: slurmstepd waits among them on v1, and passes by on v2."""
    is_root = False
    for pid in pids:
        status = read_as(host, f"/proc/{pid}/status", parse_status)
        if isinstance(status, Unread) or status.uid is None:
            continue
        if status.uid:
            return status.uid
        is_root |= not status.name.startswith("slurmstepd")
    return 0 if is_root else None


def _asked(host: Host, job: SlurmJob, pids: Iterable[int], silent: list[Unread]) -> SlurmJobClaims:
    for pid in pids:
        variables = read_as(host, f"/proc/{pid}/environ", parse_job_environment)
        if isinstance(variables, Unread):
            if variables.why == "no_answer":
                silent.append(variables)
                break
            continue
        claims = claims_of(job, variables)
        if claims is not None:
            return claims
    return SlurmJobClaims()


def read_users(host: Host) -> Mapping[int, str] | Unread:
    """Names by uid, of /etc/passwd alone."""
    return read_as(host, USERS, parse_users, USERS_BYTES_MOST)


def _uncounted(host: Host, cgroups: Cgroups, counted: Mapping[str, JobPart]) -> Iterator[SlurmJob]:
    """Jobs of v1's freezer tree that are in no cgroup of memory's: the paths are the same."""
    tree = cgroups.layout.v1.get("freezer")
    if tree is None or cgroups.layout.memory_version != 1:
        return
    for top in _folders(host, tree, "slurm"):
        for user in _folders(host, f"{tree}/{top}", "uid_"):
            for name in _folders(host, f"{tree}/{top}/{user}", "job_"):
                part = part_of(f"/{top}/{user}/{name}")
                if part is not None and part.cgroup not in counted:
                    yield _nameless(part)


def _folders(host: Host, path: str, prefix: str) -> list[str]:
    names = host.names(path)
    if isinstance(names, Unread):
        return []
    found = [name[:-1] for name in names if name.startswith(prefix) and name.endswith("/")]
    return found[:_JOBS_MOST]
