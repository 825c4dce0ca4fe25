# SPDX-License-Identifier: Apache-2.0
"""The head of ``why WORKLOAD``: what one workload is charged with, in a line."""

from seawall.accounts.memory_groups import MemoryGroups
from seawall.accounts.workloads import Workload
from seawall.cli.source import Source
from seawall.host.host import Unread
from seawall.words import size


def summary(source: Source, workload: Workload) -> str:
    """``ml/llm-0  7.9 GiB of a limit of 8.0 GiB, 6.0 GiB cannot be dropped``."""
    groups = source.first.get(MemoryGroups)
    group = None if isinstance(groups, Unread) else groups.by_path.get(workload.cgroup)
    if group is None or group.memcg.usage is None:
        return f"{workload.name}: its memory is not counted, or could not be read"
    limit = f"of a limit of {size(group.limit)}" if group.limit else "without a limit of its own"
    held = f", {size(group.held)} cannot be dropped" if group.held is not None else ""
    return f"{workload.name}  {size(group.memcg.usage)} {limit}{held}"
