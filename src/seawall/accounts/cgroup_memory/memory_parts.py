# SPDX-License-Identifier: Apache-2.0
"""What a cgroup's usage is made of, in parts that do not overlap: why its tools disagree.

Each part has a letter, and every tool's number is some of the letters
(``tool_numbers.py``).  Kernel documents: admin-guide/cgroup-v1/memory.rst 5.2,
admin-guide/cgroup-v2.rst ``memory.stat``.
"""

from dataclasses import dataclass
from typing import Final

from seawall.readings.memcg import Memcg

LETTERS: Final = "AIFTK"
ALL: Final = LETTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """Bytes; None where this kernel does not tell.  A to K sum to the usage, when all of them
    are known and no counter lags behind.
    """

    anon: int | None
    """A: the programs' own memory."""
    inactive_file: int | None
    """I: page cache that was used once, or not for long."""
    active_file: int | None
    """F: page cache that was used again."""
    shmem: int | None
    """T: tmpfs, /dev/shm, shared anonymous memory."""
    shmem_is_estimate: bool
    """A kernel without a line for it: page cache less what is on the file lists."""
    kernel: int | None
    """In K: what the kernel itself charged."""
    rest: int | None
    """In K: usage less everything above: locked file pages, sockets on v2, and charges that
    are held in reserve for each processor.  Never below zero."""
    swap: int | None
    """Beside the usage."""

    @property
    def kernel_and_rest(self) -> int | None:
        """Part K in bytes: kernel memory and the rest; None where neither is known."""
        if self.rest is None:
            return self.kernel
        return self.rest + (self.kernel or 0)

    @property
    def page_cache(self) -> int | None:
        """I and F: what the kernel drops when somebody needs memory."""
        if self.inactive_file is None or self.active_file is None:
            return None
        return self.inactive_file + self.active_file

    def rows(self) -> tuple[tuple[str, str, int | None], ...]:
        """The five parts as (letter, name, bytes); bytes is None where the kernel does not tell."""
        return (
            ("A", "anonymous", self.anon),
            ("I", "inactive file", self.inactive_file),
            ("F", "active file", self.active_file),
            ("T", "tmpfs and shared", self.shmem),
            ("K", "kernel and rest", self.kernel_and_rest),
        )


def parts_of(memcg: Memcg) -> MemoryParts:
    """The parts of one moment."""
    shmem, estimate = memcg.shmem, False
    lists = (memcg.inactive_file, memcg.active_file)
    if shmem is None and memcg.file is not None and None not in lists:
        shmem, estimate = max(0, memcg.file - sum(part or 0 for part in lists)), True
    kernel = _kernel(memcg)
    known = (memcg.anon, *lists, shmem)
    rest = None
    if memcg.usage is not None and None not in known:
        rest = max(0, memcg.usage - sum(part or 0 for part in known) - (kernel or 0))
    return MemoryParts(
        anon=memcg.anon,
        inactive_file=memcg.inactive_file,
        active_file=memcg.active_file,
        shmem=shmem,
        shmem_is_estimate=estimate,
        kernel=kernel,
        rest=rest,
        swap=memcg.swap_usage,
    )


def _kernel(memcg: Memcg) -> int | None:
    """v2 before 5.18 has no sum: then its parts."""
    if memcg.kernel is not None or memcg.version == 1:
        return memcg.kernel
    parts = (
        memcg.slab_reclaimable, memcg.slab_unreclaimable, memcg.kernel_stack,
        memcg.page_tables, memcg.percpu, memcg.vmalloc,
    )  # fmt: skip
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
