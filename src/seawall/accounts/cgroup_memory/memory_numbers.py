# SPDX-License-Identifier: Apache-2.0
"""The sums over one cgroup's counters that tools print and rules judge by.

Which tool shows which of them, and under what name, is in ``tool_numbers.py``.  Formulas as
in the tools' own sources: cAdvisor (lib/container/libcontainer/handler.go), docker/cli
a4a07c6430 (20.10) and 82600b7021 (17.06), containers/common #2455 (Podman 5.6).
"""

from seawall.readings.memcg import Memcg


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
    """Bytes that ``docker stats`` shows since 20.10: usage less inactive file; None where one of
    the two counters is missing.
    """
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


def held_bytes(memcg: Memcg) -> int | None:
    """What reclaim cannot take without swap: usage less file pages and reclaimable slab."""
    cache = droppable(memcg)
    if memcg.usage is None or cache is None:
        return None
    return max(memcg.usage - cache - (memcg.slab_reclaimable or 0), 0)
