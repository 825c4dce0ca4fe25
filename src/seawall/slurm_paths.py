# SPDX-License-Identifier: Apache-2.0
"""What a path below a Slurm job's cgroup tells: job, step, task, user.

cgroup/v1 (src/plugins/cgroup/v1/cgroup_v1.c, xcgroup.c before 21.08): ``uid_N/job_N/step_S/task_T``
in each controller's tree, slurmstepd itself in ``step_S``.  cgroup/v2 (cgroup_v2.c, since 22.05):
``job_N/step_S/user/task_T``, with slurmstepd in ``step_S/slurm``; no user in the path.  ``S`` is a
number (``+N`` for a component of a heterogeneous job), ``batch``, ``interactive`` or ``extern``:
sessions that pam_slurm_adopt moved to the job are in the last one (log.c, log_build_step_id_str).
A task that no number was given has 4294967293 (cgroup_v2.c, task_special_id).

slurmd and slurmstepd make these folders as root and hand none of them over.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from seawall.cgroup_paths import CgroupPlace, place_of

_STEP: Final = re.compile(r"step_(batch|extern|interactive|[0-9]{1,10}(?:\+[0-9]{1,10})?)\Z")
_TASK: Final = re.compile(r"task_(special|[0-9]{1,10})\Z")
_UID: Final = re.compile(r"/uid_([0-9]{1,10})/[^/]+\Z")
_NO_NUMBER: Final = ("4294967293", "4294967294", "special")
_USERS_PART: Final = "user"
_DAEMONS_PART: Final = "slurm"


class JobPart(NamedTuple):
    """Where in a job a cgroup is."""

    job: str
    """Its number, or since 26.05 its id in base 32 (``CgroupJobIdPaths=no``)."""
    cgroup: str
    """The job's own."""
    uid: int | None
    """Of v1's path; the path of v2 does not tell it."""
    step: str = ""
    """``0``, ``batch``, ``extern``, ``interactive``; empty for the job itself."""
    task: str = ""
    """``0``; ``other`` for processes that have no number; empty for no task's cgroup."""
    is_daemons: bool = False
    """Only slurmstepd is there."""

    @property
    def address(self) -> str:
        """``7``, ``7.batch``, ``7.0/1``: as Slurm's commands write it, but for the task."""
        step = f".{self.step}" if self.step else ""
        return f"{self.job}{step}" + (f"/{self.task}" if self.task else "")


def part_of(path: str, place: CgroupPlace | None = None) -> JobPart | None:
    """None: the path is in no job.  ``place``: of that path, where it is known already."""
    if "slurm" not in path:
        return None
    place = place or place_of(path)
    if place.job is None or not (path == place.cgroup or path.startswith(place.cgroup + "/")):
        return None
    user = _UID.search(place.cgroup)
    part = JobPart(
        place.job.removeprefix("job_"), place.cgroup, int(user[1]) if user else None
    )  # fmt: skip
    below = path[len(place.cgroup) + 1 :].split("/")
    found = _STEP.match(below[0])
    if found is None:
        return part
    part = part._replace(step=found[1])
    rest = below[1:]
    if rest[:1] == [_DAEMONS_PART]:
        return part._replace(is_daemons=True)
    if rest[:1] == [_USERS_PART]:
        rest = rest[1:]
    task = _TASK.match(rest[0]) if rest else None
    if task is None:
        return part
    return part._replace(task="other" if task[1] in _NO_NUMBER else task[1])


def jobs_among(paths: Iterable[str]) -> dict[str, JobPart]:
    """The jobs whose own cgroups are among these, by path."""
    found = {}
    for path in paths:
        part = part_of(path)
        if part is not None and part.cgroup == path:
            found[path] = part
    return found
