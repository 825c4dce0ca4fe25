# SPDX-License-Identifier: Apache-2.0
"""``seawall check --slurm``: what HealthCheckProgram of slurm.conf asks, in a fifth of a second.

slurmd starts that program as root on all nodes at once, without arguments, hence a script that
calls this one; it waits for it before it registers, kills it after 60 s, and writes what it printed
and a status other than 0 into its log, no more (src/slurmd/slurmd/slurmd.c,
run_script_health_check, 22.05 to 26.05).  Nothing is drained: that is the program's own affair, and
this one only tells.
"""

import time
from typing import Final

from seawall.accounts.slurm_health import SHM_LEAST_BYTES, SlurmHealth, judge
from seawall.cli.statuses import NPD_OK, NPD_PROBLEM, NPD_UNKNOWN
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.slurm_node_look import look
from seawall.readings import guard_status
from seawall.slurm_node import SlurmNodeLook
from seawall.views.terminal import plain

_APART_SECONDS: Final = 0.05
"""Between two looks, where the first one has something: a step that begins or ends is between."""
_LINES_MOST: Final = 20


def run_check() -> int:
    """Print it; 0: nothing, 1: a problem, 2: none, and something could not be seen."""
    first = look(shm_least_bytes=SHM_LEAST_BYTES)
    second = first
    if is_worth_another_look(first):
        time.sleep(_APART_SECONDS)
        second = look(shm_least_bytes=SHM_LEAST_BYTES)
    host = LiveHost("/")
    found = judge(first, second, guard_status.read(host), time.time(), _total_bytes(host))
    for line in lines(found, len(second.running)):
        print(plain(line))
    if found.problems:
        return NPD_PROBLEM
    return NPD_UNKNOWN if found.unseen else NPD_OK


def is_worth_another_look(seen: SlurmNodeLook) -> bool:
    """Whether something may be left, or on its way."""
    is_left = any(job.users and not job.has_stepd for job in seen.jobs)
    return is_left or seen.uids is not None


def lines(found: SlurmHealth, running: int) -> list[str]:
    """Problems first, by kind; slurmd writes all of it into its log."""
    jobs = f"{running} job{'' if running == 1 else 's'} running"
    told = [f"{problem.kind}: {problem.words}" for problem in found.problems]
    if not told:
        told = [f"nothing is left behind; {jobs}"]
    told += [f"note: {words}" for words in found.notes]
    told += [f"could not see: {words}" for words in found.unseen]
    more = len(told) - _LINES_MOST
    return told[:_LINES_MOST] + ([f"{more} more"] if more > 0 else [])


def _total_bytes(host: LiveHost) -> int | None:
    data = host.read("/proc/meminfo")
    if isinstance(data, Unread):
        return None
    for line in data.split(b"\n"):
        words = line.split()
        if words[:1] == [b"MemTotal:"] and len(words) == 3 and words[1].isdigit():
            return int(words[1]) * 1024
    return None
