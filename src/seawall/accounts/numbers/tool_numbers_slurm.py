# SPDX-License-Identifier: Apache-2.0
"""What Slurm calls the memory of a job: MaxRSS and AveRSS of sstat and sacct, TRESUsageIn*, seff.

One sample every JobAcctGatherFrequency (30 s by default) of each *task*, by one of two plugins:

- jobacct_gather/linux: resident memory of the task's processes, summed (common_jag.c); less what is
  shared, or PSS, with JobAcctGatherParams NoShared or UsePss.
- jobacct_gather/cgroup (jobacct_gather_cgroup.c) with cgroup/v1: ``total_rss`` of the task's
  memory.stat (cgroup_v1.c).  With cgroup/v2 (cgroup_v2.c, cgroup_p_task_get_acct_data):
  ``anon + anon_thp + swapcached`` in 22.05, which has huge pages twice; ``anon + swapcached`` in
  23.02; memory.current since 23.11, less ``active_file`` and ``inactive_file`` with
  JobAcctGatherParams=no_file_cache since 26.05.
- Since 24.11 the maximum is no sample but memory.peak (v1: memory.max_usage_in_bytes), which has
  all page cache, where the kernel has that file (common_jag.c, "MaxRSS direct reading").

MaxRSS is the largest task's; TRESUsageInTot mem is the sum over the tasks of each one's maximum, of
whatever moment; seff (contribs/seff) divides that of the step where it is largest by what was
allocated.  Here the formula is applied to the cgroup that was asked for, now.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.cgroup_memory.memory_parts import ALL
from seawall.accounts.numbers.tool_numbers import Input, ToolNumber, number_of
from seawall.accounts.numbers.tool_numbers_processes import Resident
from seawall.readings.memcg import Memcg

SLURM: Final = "Slurm (sstat, sacct)"
LINUX: Final = "RSS by jobacct_gather/linux"
CGROUP: Final = "RSS by jobacct_gather/cgroup"
MAXIMUM: Final = "MaxRSS of 24.11 and later"
LIMIT_WORDS: Final = "JobAcctGatherParams=no_file_cache"


def slurm_numbers(group: MemoryGroup, resident: Resident | None) -> Iterator[ToolNumber]:
    """Rows for the table, of a job, a step or a task."""
    if resident is not None:
        inputs = [Input("RES", resident.bytes, resident.source)]
        words = "sum of RES over its processes"
        yield number_of(SLURM, LINUX, inputs, "Aift", formula=words)
    rows = _of_v1(group) if group.memcg.version == 1 else _of_v2(group)
    yield from rows
    peak = group.memcg.peak
    if peak is not None:
        name = "memory.max_usage_in_bytes" if group.memcg.version == 1 else "memory.peak"
        inputs = [Input(name, peak, group.file(name))]
        yield number_of(SLURM, MAXIMUM, inputs, ALL, note="the highest so far, page cache included")


def _of_v1(group: MemoryGroup) -> Iterator[ToolNumber]:
    if group.memcg.anon is not None:
        yield number_of(SLURM, CGROUP, [_stat(group, "total_rss", group.memcg.anon)], "A")


def _of_v2(group: MemoryGroup) -> Iterator[ToolNumber]:
    memcg = group.memcg
    if memcg.anon is not None:
        anon = _stat(group, "anon", memcg.anon)
        parts = [anon, *_known(group, "swapcached")]
        huge = [anon, *_known(group, "anon_thp"), *parts[1:]]
        yield number_of(SLURM, f"{CGROUP} 22.05", huge, "A", note="huge pages twice")
        yield number_of(SLURM, f"{CGROUP} 23.02", parts, "A")
    if memcg.usage is not None:
        usage = Input("memory.current", memcg.usage, group.file("memory.current"))
        yield number_of(SLURM, f"{CGROUP} 23.11 and later", [usage], ALL)
        files = _file_lists(memcg)
        if files is not None:
            lists = [
                Input(name, count, f"{group.file('memory.stat')} {name}", -1)
                for name, count in files
            ]
            name = f"{CGROUP} 26.05, {LIMIT_WORDS}"
            yield number_of(SLURM, name, [usage, *lists], "ATK")


def _file_lists(memcg: Memcg) -> list[tuple[str, int]] | None:
    if memcg.active_file is None or memcg.inactive_file is None:
        return None
    return [("active_file", memcg.active_file), ("inactive_file", memcg.inactive_file)]


def _known(group: MemoryGroup, key: str) -> list[Input]:
    """Nothing on a kernel that does not print it: ``swapcached`` is of 5.12."""
    count = group.memcg.stat.get(key)
    return [] if count is None else [_stat(group, key, count)]


def _stat(group: MemoryGroup, key: str, count: int) -> Input:
    return Input(key, count, f"{group.file('memory.stat')} {key}")
