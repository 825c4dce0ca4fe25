# SPDX-License-Identifier: Apache-2.0
"""What each tool calls "the memory" of one container, with the formula that it uses.

The same container is 1.6 GiB in Prometheus, 632 MiB in ``docker stats`` and 521 MiB in a sum
of resident memory, and every one of them is right about what it counts.  Formulas as in the
tools' own sources: cAdvisor (lib/container/libcontainer/handler.go), docker/cli a4a07c6430
(20.10) and 82600b7021 (17.06).
"""

from dataclasses import dataclass

from seawall.readings.memcg import Memcg


@dataclass(frozen=True, slots=True)
class ToolNumber:
    """One tool's number for one container, in bytes."""

    tool: str
    bytes: int
    formula: str
    """Over the files of this container's cgroup folder."""


def tool_numbers(memcg: Memcg) -> tuple[ToolNumber, ...]:
    """Every number whose inputs could be read; those that could not are left out."""
    usage_file = "memory.usage_in_bytes" if memcg.version == 1 else "memory.current"
    total = "total_" if memcg.version == 1 else ""
    rows = [
        ("container_memory_usage_bytes", memcg.usage, usage_file),
        ("container_memory_working_set_bytes", working_set(memcg),
         f"{usage_file} - {total}inactive_file"),
        ("container_memory_rss", memcg.anon, "total_rss" if total else "anon"),
        ("container_memory_cache", memcg.file, "total_cache" if total else "file"),
        ("container_memory_mapped_file", memcg.mapped_file,
         "total_mapped_file" if total else "file_mapped"),
        ("container_memory_swap", memcg.swap_usage,
         "memory.memsw.usage_in_bytes - memory.usage_in_bytes" if total
         else "memory.swap.current"),
        ("docker stats (20.10 and later)", docker_stats(memcg),
         f"{usage_file} - {total}inactive_file, when that is less than the usage"),
        ("docker stats (17.06 to 19.03)", docker_stats_17_06(memcg),
         f"{usage_file} - cache" if total else usage_file),
        ("docker stats (before 17.06)", memcg.usage, usage_file),
    ]  # fmt: skip
    return tuple(ToolNumber(tool, number, how) for tool, number, how in rows if number is not None)


def inactive_file(memcg: Memcg) -> int | None:
    """File pages that were used once, or not for long: what the tools take off."""
    return memcg.inactive_file


def working_set(memcg: Memcg) -> int | None:
    """What ``kubectl top`` prints and the kubelet ranks by: active file pages are in it."""
    inactive = inactive_file(memcg)
    if memcg.usage is None or inactive is None:
        return None
    return max(memcg.usage - inactive, 0)


def docker_stats(memcg: Memcg) -> int | None:
    """20.10 and later."""
    inactive = inactive_file(memcg)
    if memcg.usage is None or inactive is None:
        return None
    return memcg.usage - inactive if inactive < memcg.usage else memcg.usage


def docker_stats_17_06(memcg: Memcg) -> int | None:
    """17.06 to 19.03: less ``cache``, a key that v2 does not have, so nothing is taken off."""
    cache = memcg.stat.get("cache", memcg.file if memcg.version == 1 else 0)
    if memcg.usage is None or cache is None:
        return None
    return memcg.usage - cache


def droppable(memcg: Memcg) -> int | None:
    """File pages that reclaim can take: no tmpfs, nothing locked.  Dirty ones are in it; they
    have to be written first.
    """
    inactive, active = inactive_file(memcg), memcg.active_file
    return None if inactive is None or active is None else inactive + active


def held(memcg: Memcg) -> int | None:
    """What reclaim cannot take without swap: usage less file pages and reclaimable slab."""
    cache = droppable(memcg)
    if memcg.usage is None or cache is None:
        return None
    return max(memcg.usage - cache - (memcg.slab_reclaimable or 0), 0)
