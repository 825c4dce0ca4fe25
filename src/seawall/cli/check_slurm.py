# SPDX-License-Identifier: Apache-2.0
"""``seawall check --slurm``: what HealthCheckProgram of slurm.conf asks, in a fifth of a second.

slurmd starts that program as root on all nodes at once, without arguments, hence a script that
calls this one; it waits for it before it registers, kills it after 60 s, and writes what it printed
and a status other than 0 into its log, no more (src/slurmd/slurmd/slurmd.c,
run_script_health_check, 22.05 to 26.05).  Draining is the program's own affair: here it is off
until slurm.toml says for which checks.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from seawall.accounts.node_checks.answer import NodeFault
from seawall.accounts.slurm_health import SHM_LEAST_BYTES, SlurmHealth, SlurmProblem, judge
from seawall.cli.node_look import NAMES, OFF_UNLESS_ASKED, NodeFinding, NodeLook
from seawall.cli.slurm_file import SlurmSettings, host_name, load
from seawall.cli.statuses import NPD_OK, NPD_PROBLEM, NPD_UNKNOWN
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.slurm_node_look import look
from seawall.problems import UsageProblem
from seawall.readings import guard_status
from seawall.slurm_node import SlurmNodeLook, SlurmRemark
from seawall.views.terminal import plain

_APART_SECONDS: Final = 0.05
"""Between two looks, where the first one has something: a step that begins or ends is between."""
_LINES_MOST: Final = 30


def run_check(
    config: str | None = None, only: str = "", *, is_report: bool = False, is_json: bool = False
) -> int:
    """Print it; 0: nothing, 1: a problem, 2: none, and something could not be seen.

    ``only``: names of checks, with commas; ``is_report``: nothing is drained, whatever the file
    says.
    """
    node = os.environ.get("SLURMD_NODENAME", "")
    settings = load(config, node or host_name(), NAMES)
    names = chosen(settings, only)
    asked = NodeLook(settings, names)
    first = look(shm_least_bytes=SHM_LEAST_BYTES, node=node)
    second = first
    if is_worth_another_look(first):
        time.sleep(_APART_SECONDS)
        second = look(shm_least_bytes=SHM_LEAST_BYTES, node=node)
    host = LiveHost("/")
    left = judge(first, second, guard_status.read(host), time.time(), _total_bytes(host))
    found = joined(left, asked.findings(), names, is_idle=first.is_idle and second.is_idle)
    draining: list[str] = []
    if any(settings.mode(name) == "drain" for name in names) and not is_report:
        from seawall.cli.slurm_draining import decide  # noqa: PLC0415 - where it is switched on

        draining = decide(settings, found, node, names)
    running = len(second.running)
    if is_json:
        modes = {name: settings.mode(name) for name in sorted(names)}
        print(_document(host, found, node, running, modes, draining))
    else:
        for line in lines(found, running) + draining:
            print(plain(line))
    if found.problems:
        return NPD_PROBLEM
    return NPD_UNKNOWN if found.unseen else NPD_OK


def _document(
    host: LiveHost, found: SlurmHealth, node: str, running: int, modes: Mapping[str, str],
    draining: Sequence[str],
) -> str:  # fmt: skip
    from seawall.findings.blindness import NotSeen  # noqa: PLC0415 - JSON alone
    from seawall.readings import kernel  # noqa: PLC0415 - JSON alone
    from seawall.views.document import head, render  # noqa: PLC0415 - likewise
    from seawall.views.documents.slurm_check_document import (  # noqa: PLC0415 - likewise
        SLURM_CHECK,
        SlurmCheckPage,
    )

    page = SlurmCheckPage(
        node=node or host_name(), is_slurmds_call=bool(node), running_jobs=running, checks=modes,
        problems=found.problems, notes=found.notes, draining=tuple(draining),
        could_not_see=tuple(NotSeen(kind, words, "") for kind, words in found.unseen),
    )  # fmt: skip
    return render(SLURM_CHECK.of(head(SLURM_CHECK.name, kernel.read(host), None), page))


def chosen(settings: SlurmSettings, only: str) -> frozenset[str]:
    """The checks that are on; UsageProblem for a name that is none."""
    known = [*NAMES, *(command.name for command in settings.commands)]
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise UsageProblem(f"--only {name}: no such check; {', '.join(known)}")
    return frozenset(
        name for name in wanted or known
        if settings.mode(name) != "off"
        and (name not in OFF_UNLESS_ASKED or name in settings.modes or name in wanted)
    )  # fmt: skip


def joined(
    left: SlurmHealth, findings: Iterable[NodeFinding], names: frozenset[str], *, is_idle: bool
) -> SlurmHealth:  # fmt: skip
    """What jobs left and what is broken; what a running job may cause is a note while one runs."""
    problems = [one for one in left.problems if one.kind in names]
    unseen = [one for one in left.unseen if one.kind in names]
    notes = list(left.notes) if "uncounted" in names else []
    for check, answer in findings:
        if not isinstance(answer, NodeFault):
            unseen.append(SlurmRemark(check.name, answer.words))
        elif check.jobs_may and not is_idle:
            words = f"{answer.words}: not judged while jobs run here"
            notes.append(SlurmRemark(check.name, words))
        else:
            problems.append(SlurmProblem(
                check.name, answer.words, is_lasting=check.is_lasting
            ))  # fmt: skip
    return SlurmHealth(tuple(problems), tuple(unseen), tuple(notes))


def is_worth_another_look(seen: SlurmNodeLook) -> bool:
    """Whether something may be left, or on its way."""
    is_left = any(job.users and not job.has_stepd for job in seen.jobs)
    return is_left or seen.uids is not None


def lines(found: SlurmHealth, running: int) -> list[str]:
    """Problems first, by kind; slurmd writes all of it into its log."""
    jobs = f"{running} job{'' if running == 1 else 's'} running"
    told = [f"{problem.kind}: {problem.words}" for problem in found.problems]
    if not told:
        told = [f"nothing is left behind or broken; {jobs}"]
    told += [f"note: {kind}: {words}" for kind, words in found.notes]
    told += [f"could not see: {kind}: {words}" for kind, words in found.unseen]
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
