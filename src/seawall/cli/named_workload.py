# SPDX-License-Identifier: Apache-2.0
"""The WORKLOAD of a command line, and what it is charged with in a line."""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.sources.source import Source
from seawall.words import size


def named_workload(source: Source, text: str, *, takes_parts: bool = False) -> Workload:
    """The one that ``text`` names; UsageProblem for none, for several, or when none can be seen.
    Of a batch job's step the job, unless ``takes_parts``.
    """
    from seawall.accounts.addresses import resolve  # noqa: PLC0415 - only when one is named

    workloads = source.first.get(Workloads)
    if isinstance(workloads, Unread):
        raise lookup_problem(workloads)
    found = resolve(text, workloads)
    if found.step is None or takes_parts or found.slurm is None:
        return found
    return workloads.by_cgroup.get(found.slurm.cgroup, found)


def lookup_problem(missing: Unread) -> UsageProblem:
    """What it takes to look a workload up could not be read."""
    words = missing.detail or missing.why
    return UsageProblem(f"no workload can be looked up: {missing.path}: {words}")


def summary(source: Source, workload: Workload) -> str:
    """``ml/llm-0  7.9 GiB of a limit of 8.0 GiB, 6.0 GiB cannot be dropped``."""
    groups = source.first.get(MemoryGroups)
    group = None if isinstance(groups, Unread) else groups.by_path.get(workload.cgroup)
    if group is None or group.memcg.usage is None:
        return f"{workload.name}: its memory is not counted, or could not be read"
    limit = f"of a limit of {size(group.limit)}" if group.limit else "without a limit of its own"
    held = f", {size(group.held_bytes)} cannot be dropped" if group.held_bytes is not None else ""
    return f"{workload.name}  {size(group.memcg.usage)} {limit}{held}"
