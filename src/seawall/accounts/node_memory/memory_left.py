# SPDX-License-Identifier: Apache-2.0
"""How much memory is left, as the first line of ``why`` and of ``top`` says it.

The same sums as ``host/vitals.py``, which has no parser at hand; a test holds them together.
"""

from typing import NamedTuple

from seawall.accounts.node_memory.gpu_memory import without_cpus
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.readings.numa import NumaNodes


class MemoryLeft(NamedTuple):
    """What is left for programs, in bytes."""

    total_bytes: int
    """MemTotal less what lies on NUMA nodes without CPUs."""
    bytes: int
    how: str
    """``left`` as the kernel says it, ``about`` where that is computed, ``free`` where no more is
    known: the words of ``vitals.line_of``."""
    beside_bytes: int
    """What is left on NUMA nodes without CPUs besides: in neither of the two."""


def memory_left(
    meminfo: Meminfo, numa: NumaNodes | Unread, estimate_bytes: int | None
) -> MemoryLeft:
    """``estimate_bytes``: of what is available where the kernel does not say it (before 3.14), see
    ``headroom.py``.
    """
    total = meminfo.mem_total
    if meminfo.mem_available is not None:
        apart, beside = (0, 0) if isinstance(numa, Unread) else without_cpus(numa)
        return MemoryLeft(total - apart, max(meminfo.mem_available - beside, 0), "left", beside)
    known = (meminfo.active_file, meminfo.inactive_file, meminfo.s_reclaimable)
    if None in known or estimate_bytes is None:
        return MemoryLeft(total, meminfo.mem_free, "free", 0)
    return MemoryLeft(total, estimate_bytes, "about", 0)
