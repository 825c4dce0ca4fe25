# SPDX-License-Identifier: Apache-2.0
"""The memory controller of every cgroup, both versions in one shape.

Kernel documents: admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst "Memory".
v1 values are the hierarchical ``total_*`` ones, so that both versions mean a subtree.
Which files a cgroup has, its folder tells: no file is asked for that this kernel does not
have, and a cgroup of v2 for which the controller is not switched on has no memcg.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings import cgroup, pressure
from seawall.readings.cgroup_tree import (
    CgroupWalk,
    CgroupWalkResult,
    file_path,
    flat_keyed,
    one_limit,
    one_number,
)
from seawall.readings.pressure import Pressure
from seawall.readings.reading import UNLIMITED, Unlimited

# The limit that v1 prints for none is 2**63 - 1 rounded down to a page; 64 KiB pages exist.
_V1_UNLIMITED: Final = 2**63 - (64 << 10)

# What each file is read as.  The first one of a version tells whether the cgroup is still
# there, so it is read last: what was read before it then belongs to a living cgroup.
_V2_FILES: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "memory.current": one_number,
    "memory.max": one_limit, "memory.high": one_limit,
    "memory.low": one_limit, "memory.min": one_limit, "memory.peak": one_number,
    "memory.swap.current": one_number, "memory.swap.max": one_limit,
    "memory.oom.group": one_number, "memory.stat": flat_keyed,
    "memory.events": flat_keyed, "memory.events.local": flat_keyed,
    "memory.pressure": pressure.parse, "io.pressure": pressure.parse,
    "cgroup.stat": flat_keyed, "cgroup.events": flat_keyed,
}  # fmt: skip
_V1_FILES: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "memory.usage_in_bytes": one_number, "memory.limit_in_bytes": one_number,
    "memory.soft_limit_in_bytes": one_number, "memory.max_usage_in_bytes": one_number,
    "memory.memsw.usage_in_bytes": one_number, "memory.memsw.limit_in_bytes": one_number,
    "memory.failcnt": one_number, "memory.memsw.failcnt": one_number,
    "memory.kmem.usage_in_bytes": one_number, "memory.use_hierarchy": one_number,
    "memory.stat": flat_keyed, "memory.oom_control": flat_keyed,
}  # fmt: skip

# Field of Memcg -> key of memory.stat.
_V2_STAT: Final = {
    "kernel": "kernel", "anon": "anon", "file": "file", "shmem": "shmem",
    "mapped_file": "file_mapped", "dirty": "file_dirty", "writeback": "file_writeback",
    "inactive_anon": "inactive_anon", "active_anon": "active_anon",
    "inactive_file": "inactive_file", "active_file": "active_file",
    "unevictable": "unevictable", "swap_cached": "swapcached",
    "slab_reclaimable": "slab_reclaimable", "slab_unreclaimable": "slab_unreclaimable",
    "kernel_stack": "kernel_stack", "page_tables": "pagetables", "percpu": "percpu",
    "sock": "sock", "vmalloc": "vmalloc",
}  # fmt: skip
_V1_STAT: Final = {
    "anon": "total_rss", "file": "total_cache", "shmem": "total_shmem",
    "mapped_file": "total_mapped_file", "dirty": "total_dirty",
    "writeback": "total_writeback", "inactive_anon": "total_inactive_anon",
    "active_anon": "total_active_anon", "inactive_file": "total_inactive_file",
    "active_file": "total_active_file", "unevictable": "total_unevictable",
    "swap_cached": "total_swapcached",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Memcg:
    """Bytes.  ``None``: this kernel or version does not have it, or it is in ``unread``."""

    path: str
    version: Literal[1, 2]
    """Of cgroups: 1 or 2."""
    usage: int | None
    """memory.current; memory.usage_in_bytes.  None for a v2 root, which has no such file."""
    limit: int | Unlimited | None
    """memory.max; memory.limit_in_bytes (values at or above 2**63 - page are UNLIMITED)."""
    high: int | Unlimited | None = None
    """Memory.high; null: none."""
    low: int | Unlimited | None = None
    """Memory.low; null: all of it."""
    min: int | Unlimited | None = None
    """``max`` here protects all that the cgroup uses."""
    soft_limit: int | Unlimited | None = None
    peak: int | None = None
    """memory.peak (6.0+), memory.max_usage_in_bytes."""
    swap_usage: int | None = None
    """memory.swap.current; memsw usage less usage."""
    swap_limit: int | Unlimited | None = None
    """memory.swap.max; v1: memsw limit less limit."""
    kernel: int | None = None
    """memory.stat ``kernel`` (5.18+); v1 memory.kmem.usage_in_bytes."""
    anon: int | None = None
    """v1: total_rss (swap cache included there)."""
    file: int | None = None
    """Page cache with shmem, as both versions count it (v1 total_cache)."""
    shmem: int | None = None
    """v1: since 4.x in memory.stat; None before."""
    mapped_file: int | None = None
    dirty: int | None = None
    writeback: int | None = None
    inactive_anon: int | None = None
    active_anon: int | None = None
    inactive_file: int | None = None
    active_file: int | None = None
    unevictable: int | None = None
    swap_cached: int | None = None
    slab_reclaimable: int | None = None
    slab_unreclaimable: int | None = None
    kernel_stack: int | None = None
    page_tables: int | None = None
    percpu: int | None = None
    sock: int | None = None
    vmalloc: int | None = None
    stat: Mapping[str, int]
    """memory.stat whole, under the kernel's keys (v1: with ``total_`` as printed)."""
    events: Mapping[str, int]
    """memory.events (hierarchical): low, high, max, oom, oom_kill, oom_group_kill."""
    events_local: Mapping[str, int]
    failcnt: int | None = None
    memsw_failcnt: int | None = None
    oom_kill_disable: bool | None = None
    under_oom: bool | None = None
    oom_kill: int | None = None
    """Kills: memory.events oom_kill; v1 memory.oom_control oom_kill (4.13+)."""
    oom_group: bool | None = None
    memory_pressure: Pressure | None = None
    io_pressure: Pressure | None = None
    dying_descendants: int | None = None
    """cgroup.stat nr_dying_descendants (v2, 4.14+)."""
    populated: bool | None = None
    hierarchical: bool = True
    """False: v1 with use_hierarchy=0 and cgroups below, which are not in these values."""
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Memcgs:
    """The topic: every cgroup that counts memory, by path, root ``/`` included."""

    version: Literal[1, 2]
    by_path: Mapping[str, Memcg]
    mount_point: str
    unread: tuple[Unread, ...]


def read(host: Host) -> Memcgs | Unread:
    """Walk the tree that counts memory and read the controller's files of every cgroup."""
    layout = cgroup.read_layout(host)
    if isinstance(layout, Unread):
        return layout
    version = layout.memory_version
    mount_point = layout.memory_tree
    if version is None or mount_point is None:
        return Unread(mount_point or cgroup.USUAL_PLACE, "absent", "no cgroup tree counts memory")
    files = _V1_FILES if version == 1 else _V2_FILES
    walk = CgroupWalk(host, mount_point)
    asked = [(found, names) for found in walk.results() if (names := _names(found, files))]
    if not asked:
        return walk.unread[0] if walk.unread else Unread(mount_point, "absent", "nothing there")
    build = _v1 if version == 1 else _v2
    by_path: dict[str, Memcg] = {}
    for found, answers, unread in _read_files(host, mount_point, files, asked):
        by_path[found.path] = build(found, answers, tuple(unread))
    return Memcgs(version, by_path, mount_point, tuple(walk.unread) + _flat(by_path, mount_point))


def _names(found: CgroupWalkResult, files: Mapping[str, object]) -> list[str]:
    """Which files to read of a cgroup, its proof of life last; none where memory is not counted."""
    proof = next(iter(files))
    if found.files is None:
        return [*list(files)[1:], proof]
    if proof not in found.files and found.path != "/":
        return []
    names = [name for name in files if name in found.files and name != proof]
    return [*names, proof] if proof in found.files else names


def _read_files(
    host: Host,
    mount_point: str,
    files: Mapping[str, Callable[[bytes], Any]],
    asked: Sequence[tuple[CgroupWalkResult, list[str]]],
) -> Iterator[tuple[CgroupWalkResult, dict[str, Any], list[Unread]]]:
    """The parsed files of every cgroup that was there to the end, in one go."""
    paths = [file_path(mount_point, found.path, name) for found, names in asked for name in names]
    pairs = zip(paths, host.read_each(paths), strict=True)
    proof = next(iter(files))
    for found, names in asked:
        answers: dict[str, Any] = {}
        unread: list[Unread] = []
        gone = False
        for name in names:
            path, data = next(pairs)
            if isinstance(data, Unread):
                # EOPNOTSUPP, as *.pressure says with psi=0, is absent too: only the proof tells.
                if data.why not in ("absent", "vanished"):
                    unread.append(data)
                elif name == proof:
                    gone = True
                continue
            try:
                answers[name] = files[name](data)
            except ParseProblem as problem:
                unread.append(Unread(path, "malformed", str(problem)))
        if not gone:
            yield found, answers, unread


def _v2(found: CgroupWalkResult, answers: dict[str, Any], unread: tuple[Unread, ...]) -> Memcg:
    stat: dict[str, int] = answers.get("memory.stat", {})
    events: dict[str, int] = answers.get("memory.events", {})
    group = answers.get("memory.oom.group")
    populated = answers.get("cgroup.events", {}).get("populated")
    return Memcg(
        path=found.path,
        version=2,
        usage=answers.get("memory.current"),
        limit=answers.get("memory.max"),
        high=answers.get("memory.high"),
        low=answers.get("memory.low"),
        min=answers.get("memory.min"),
        peak=answers.get("memory.peak"),
        swap_usage=answers.get("memory.swap.current"),
        swap_limit=answers.get("memory.swap.max"),
        stat=stat,
        events=events,
        events_local=answers.get("memory.events.local", {}),
        oom_kill=events.get("oom_kill"),
        oom_group=None if group is None else bool(group),
        memory_pressure=answers.get("memory.pressure"),
        io_pressure=answers.get("io.pressure"),
        dying_descendants=answers.get("cgroup.stat", {}).get("nr_dying_descendants"),
        populated=None if populated is None else bool(populated),
        unread=unread,
        **_fields(stat, _V2_STAT),
    )


def _v1(found: CgroupWalkResult, answers: dict[str, Any], unread: tuple[Unread, ...]) -> Memcg:
    stat: dict[str, int] = answers.get("memory.stat", {})
    control: dict[str, int] = answers.get("memory.oom_control", {})
    kill_disable, under_oom = control.get("oom_kill_disable"), control.get("under_oom")
    usage = answers.get("memory.usage_in_bytes")
    limit = _v1_limit(answers.get("memory.limit_in_bytes"))
    both_limit = _v1_limit(answers.get("memory.memsw.limit_in_bytes"))
    hierarchy = answers.get("memory.use_hierarchy")
    return Memcg(
        path=found.path,
        version=1,
        usage=usage,
        limit=limit,
        soft_limit=_v1_limit(answers.get("memory.soft_limit_in_bytes")),
        peak=answers.get("memory.max_usage_in_bytes"),
        swap_usage=_difference(answers.get("memory.memsw.usage_in_bytes"), usage),
        swap_limit=both_limit if both_limit is UNLIMITED else _difference(both_limit, limit),
        kernel=answers.get("memory.kmem.usage_in_bytes"),
        stat=stat,
        events={},
        events_local={},
        failcnt=answers.get("memory.failcnt"),
        memsw_failcnt=answers.get("memory.memsw.failcnt"),
        oom_kill_disable=None if kill_disable is None else bool(kill_disable),
        under_oom=None if under_oom is None else bool(under_oom),
        oom_kill=control.get("oom_kill"),
        hierarchical=not (hierarchy == 0 and found.has_children),
        unread=unread,
        **_fields(_subtree(stat, found), _V1_STAT),
    )


def _subtree(stat: Mapping[str, int], found: CgroupWalkResult) -> Mapping[str, int]:
    """``total_*`` values; with nothing below, the plain ones of a report that was cut."""
    whole = found.has_children or found.files is None or "total_cache" in stat
    return stat if whole else {f"total_{key}": value for key, value in stat.items()}


def _fields(stat: Mapping[str, int], keys: Mapping[str, str]) -> dict[str, Any]:
    return {field: stat.get(key) for field, key in keys.items()}


def _v1_limit(value: int | None) -> int | Unlimited | None:
    return UNLIMITED if value is not None and value >= _V1_UNLIMITED else value


def _difference(both: object, memory: object) -> int | None:
    """Memory and swap less memory; two reads a moment apart may disagree by a little."""
    if isinstance(both, int) and isinstance(memory, int):
        return max(0, both - memory)
    return None


def _flat(by_path: Mapping[str, Memcg], mount_point: str) -> tuple[Unread, ...]:
    """One line for all cgroups whose values do not hold what is below them."""
    flat = [memcg.path for memcg in by_path.values() if not memcg.hierarchical]
    if not flat:
        return ()
    words = f"use_hierarchy is 0: what lies below is not counted in {len(flat)} cgroups"
    return (Unread(file_path(mount_point, flat[0], "memory.use_hierarchy"), "absent", words),)
