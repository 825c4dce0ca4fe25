# SPDX-License-Identifier: Apache-2.0
"""What is read of the few groups that lead: what the end of one gives back, its processes.

::

    gives back = anonymous + shared memory that ends with it + kernel memory charged to it
                 + locked pages of files

memory.stat of v2 (cgroup-v2.rst): ``anon``, ``shmem``, ``kernel`` (5.18) or its parts, less
``slab_reclaimable``, which stays as long as nobody wants the memory; ``sock``.  v1
(cgroup-v1/memory.rst): ``total_rss``, ``total_shmem`` and half of memory.kmem.usage_in_bytes,
which does not say what of it is slab that stays.  What is in swap comes on top, and there is
told which of it is in memory as well (``swapcached``, 5.12).  Page cache is not in it: it can be
dropped anyway; but what of it a program locked (mlock) only its end gives back.  A group without
processes gives back nothing: what is charged to it outlives its end.

Whoever made so many cgroups below its own that no process is found in those that are looked into
is read like others, less what is in any tmpfs of the host's: neither does it hide its shared
memory so, nor is more expected than comes back.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Final

from seawall.actions.step_daemons import is_daemons_adj
from seawall.guard.sense.canary import number, stat_fields
from seawall.guard.sense.files import all_bytes, first_bytes
from seawall.guard.sense.host_tmpfs import HostTmpfs
from seawall.guard.sense.member import GroupMember, Names, is_populated, read_promises
from seawall.guard.tick_facts import Group
from seawall.slurm_paths import part_of

_STAT_BYTES: Final = 32 << 10
_PROCS_BYTES: Final = 256 << 10
_FOLDERS_MOST: Final = 256
_SEARCHED_MOST: Final = 512
"""Folders below one, as long as no process was found in any: one tells which tmpfs it has."""
_ASKED_MOST: Final = 64
"""Processes that are read one by one, evenly spread: children inherit oom_score_adj."""
_TRIED: Final = 3
"""Processes besides the oldest: of one that ends no mounts can be read."""
_UTIME: Final = 11
_CUTIME: Final = 13
"""Of children that ended: of a ``make -j`` nearly all."""
_KERNEL_PARTS: Final = (
    b"kernel_stack", b"pagetables", b"sec_pagetables", b"percpu", b"vmalloc", b"slab_unreclaimable",
)  # fmt: skip
_FILES: Final = {
    2: (b"file", b"shmem", b"active_file", b"inactive_file", b"unevictable"),
    1: (b"total_cache", b"total_shmem", b"total_active_file", b"total_inactive_file",
        b"total_unevictable"),
}  # fmt: skip
"""All pages of files and shared memory, and the lists on which they are."""


class Details:
    """Reads on demand; keeps nothing but the scratch space."""

    __slots__ = ("_lasting", "_names", "_proc", "_ticks")

    def __init__(self, names: Names, proc: str) -> None:
        self._names = names
        self._proc = proc
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._lasting = HostTmpfs(proc)
        """The host's tmpfs mounts, read at most once a tick: there may be thousands of mounts."""

    def forget(self, groups: Iterable[Group]) -> None:
        """Another tick: what was read in one before is not known now."""
        self._lasting.forget()
        for group in groups:
            group.gives_back_bytes = None

    def read(self, member: GroupMember, now: float, *, has_swap: bool) -> None:
        """Fill in what ``Group`` says of it; a file that cannot be read leaves None."""
        group = member.group
        pids, is_whole = self._pids(group.path)
        asked = pids[:: -(-len(pids) // _ASKED_MOST)] if pids else []
        group.processes = len(pids) if is_whole else None
        is_job = part_of(group.path) is not None
        adjs = [adj for pid in asked if (adj := self._adj(pid, is_job=is_job)) is not None]
        if adjs and not member.folder.is_user_slice:  # of a user's each part has its own
            group.adj = min(adjs)
        group.gives_back_bytes = self._gives_back(group, pids, is_whole=is_whole)
        if member.apart and group.gives_back_bytes is not None:
            apart = sum(one.charge_bytes for one in member.apart)
            group.gives_back_bytes = max(0, group.gives_back_bytes - apart)
        user = self._user_seconds(group.path, asked if len(asked) == len(pids) else [])
        progress = self._progress(member, user, now)
        group.progress_per_second = member.told_progress if progress is None else progress
        read_promises(member, self._names, has_swap=has_swap)

    # --- memory -----------------------------------------------------------------------------

    def _gives_back(self, group: Group, pids: list[int], *, is_whole: bool) -> int | None:
        path = group.path
        text = first_bytes(self._names.of(path, "memory.stat"), _STAT_BYTES)
        if text is None:
            return None
        if not pids and is_whole:
            return 0
        stat = rows(text)
        if group.swap_cached_bytes:
            cached = stat.get(b"swapcached", group.swap_cached_bytes)
            group.swap_cached_bytes = min(cached, group.swap_cached_bytes)
        anonymous = stat.get(b"anon" if self._names.version == 2 else b"total_rss")
        if anonymous is None:
            return None
        if not pids and not self._is_inhabited(path, anonymous):
            return 0
        shared = stat.get(b"shmem" if self._names.version == 2 else b"total_shmem", 0)
        if shared:
            # The oldest is the container's first, as a rule; others may have a namespace of their
            # own, with fewer mounts.
            tried = [min(pids), *pids[:_TRIED]] if pids else []
            shared = max(0, shared - self._lasting.bytes_of(tried))
        return anonymous + shared + self._locked(stat) + self._kernel(path, stat)

    def _is_inhabited(self, path: str, anonymous: int) -> bool:
        """Whether any process is in it or below; on v1 only what it has tells so."""
        return is_populated(path, self._names) if self._names.version == 2 else anonymous > 0

    def _locked(self, stat: dict[bytes, int]) -> int:
        """Pages of files that mlock took off the lists of what can be dropped."""
        file, shared, active, inactive, unevictable = (
            stat.get(name, 0) for name in _FILES[self._names.version]
        )
        return max(0, min(file - shared - active - inactive, unevictable))

    def _kernel(self, path: str, stat: dict[bytes, int]) -> int:
        if self._names.version != 2:
            text = first_bytes(self._names.of(path, "memory.kmem.usage_in_bytes"), 32) or b""
            return int(text) // 2 if text.strip().isdigit() else 0
        kernel = stat.get(b"kernel")
        if kernel is not None:
            kernel = max(0, kernel - stat.get(b"slab_reclaimable", 0))
        else:
            kernel = sum(stat.get(name, 0) for name in _KERNEL_PARTS)
        return kernel + stat.get(b"sock", 0)

    # --- processes --------------------------------------------------------------------------

    def _pids(self, path: str) -> tuple[list[int], bool]:
        """Of it and of those below it that are looked into, and whether that is all of them."""
        pids: list[int] = []
        is_whole = True
        for count, folder in enumerate(below(self._names.of(path, "").rstrip("/"))):
            if count >= (_FOLDERS_MOST if pids else _SEARCHED_MOST):
                return pids, False
            text = all_bytes(f"{folder}/cgroup.procs", _PROCS_BYTES)
            if text is None or len(text) == _PROCS_BYTES:
                # Refused (a threaded cgroup of v2: its domain above lists them) or cut.
                is_whole = is_whole and count > 0 and text is None
                continue
            pids += [int(line) for line in text.split() if line.isdigit() and line != b"0"]
        return pids, is_whole

    def _adj(self, pid: int, *, is_job: bool) -> int | None:
        text = first_bytes(f"{self._proc}/{pid}/oom_score_adj", 16)
        try:
            value = int(text) if text else None
        except ValueError:
            return None
        is_daemons = is_job and value is not None and is_daemons_adj(value, pid, self._proc)
        return None if is_daemons else value

    def _user_seconds(self, path: str, pids: list[int]) -> float | None:
        """Seconds in user mode since the group began."""
        if self._names.unified:
            text = first_bytes(f"{self._names.unified}{path}/cpu.stat", 1024)
            usec = rows(text).get(b"user_usec") if text else None
            if usec is not None:
                return usec / 1e6
        total, is_seen = 0, False
        for pid in pids:
            text = first_bytes(f"{self._proc}/{pid}/stat", 1024)
            if text:
                fields = stat_fields(bytearray(text), len(text))
                total += (number(fields, _UTIME) or 0) + (number(fields, _CUTIME) or 0)
                is_seen = True
        return total / self._ticks if is_seen else None

    def _progress(self, member: GroupMember, user: float | None, now: float) -> float | None:
        if user is None:
            return None
        was, total = member.user_rate.was, int(user * 1e6)
        rise, seconds = member.user_rate.gained(total, now)
        if was is not None and total < was:
            return None  # some ended, and took their time with them
        return rise / 1e6 / seconds if seconds > 0.0 else None


def rows(text: bytes) -> dict[bytes, int]:
    """``NAME NUMBER`` lines; others are left out."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(b" ")
        if value.isdigit():
            found[name] = int(value)
    return found


def below(folder: str) -> Iterator[str]:
    """A cgroup's folder and all below it; of more than ``_SEARCHED_MOST`` some are left out."""
    todo = [folder]
    while todo:
        at = todo.pop()
        yield at
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    if len(todo) >= _SEARCHED_MOST:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            continue
