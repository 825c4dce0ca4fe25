# SPDX-License-Identifier: Apache-2.0
"""What each tool calls the node's memory, and how far the kubelet's idea is from the kernel's.

``free``: procps 3.3.10 takes all of Slab for cache, 3.3.12 only SReclaimable, and since 4.0.1
"used" is MemTotal - MemAvailable; busybox has its own idea.  The node exporter prints
/proc/meminfo as it is (collector/meminfo_linux.go).  The kubelet's signal is in
``kubelet_view.py``.  Inside a container all of these show the node, not the container, for
/proc/meminfo knows no cgroup (unless lxcfs is mounted over it).
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_memory.kubelet_view import KubeletView
from seawall.accounts.numbers.tool_numbers import PROMETHEUS, Input, ToolNumber, number_of
from seawall.host.host import Unread
from seawall.readings import meminfo as meminfo_file
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.meminfo import Meminfo

EXPORTER: Final = "node exporter"
KUBELET: Final = "kubelet"
SIGNAL: Final = "memory.available"
_EXPORTED: Final = (
    ("MemTotal", "mem_total"), ("MemFree", "mem_free"), ("MemAvailable", "mem_available"),
    ("Buffers", "buffers"), ("Cached", "cached"), ("SReclaimable", "s_reclaimable"),
    ("Shmem", "shmem"), ("AnonPages", "anon_pages"), ("Slab", "slab"),
    ("Active_file", "active_file"), ("Inactive_file", "inactive_file"),
    ("Dirty", "dirty"), ("Writeback", "writeback"),
)  # fmt: skip


def free_numbers(meminfo: Meminfo) -> Iterator[ToolNumber]:
    """The columns of ``free``, which shows the same inside a container."""
    total, free = _input("MemTotal", meminfo.mem_total), _input("MemFree", meminfo.mem_free)
    files = [("Buffers", meminfo.buffers), ("Cached", meminfo.cached)]
    cache = _known(*files, ("SReclaimable", meminfo.s_reclaimable))
    older = _known(*files, ("Slab", meminfo.slab))
    if meminfo.mem_available is not None:
        left = _input("MemAvailable", meminfo.mem_available)
        yield number_of("free", "used (procps 4.0.1 and later)", [total, _minus(left)])
        yield number_of("free", "available", [left])
    for versions, parts in (("3.3.12 to 4.0.0", cache), ("3.3.10 to 3.3.11", older)):
        taken = [_minus(part) for part in (free, *parts)]
        if len(parts) == 3:
            yield number_of("free", f"used (procps {versions})", [total, *taken])
    yield number_of("free", "buff/cache", cache)
    yield number_of("free", "free", [free])
    if meminfo.shmem is not None:
        yield number_of("free", "shared", [_input("Shmem", meminfo.shmem)])


def node_numbers(
    meminfo: Meminfo, view: KubeletView | Unread, memcgs: Memcgs | Unread
) -> tuple[ToolNumber, ...]:
    """Every tool's numbers for the node."""
    return (
        *free_numbers(meminfo),
        *_exported(meminfo),
        *_kubelet(meminfo, view, is_v1=not isinstance(memcgs, Unread) and memcgs.version == 1),
        *_root(None if isinstance(memcgs, Unread) else memcgs.by_path.get("/"), memcgs),
    )


def kubelet_gap(meminfo: Meminfo, view: KubeletView | Unread) -> int | None:
    """How much more the kubelet thinks available than the kernel does; may be negative."""
    if isinstance(view, Unread) or meminfo.mem_available is None:
        return None
    return view.available_bytes - meminfo.mem_available


def _exported(meminfo: Meminfo) -> Iterator[ToolNumber]:
    for name, field in _EXPORTED:
        count: int | None = getattr(meminfo, field)
        if count is not None:
            yield number_of(EXPORTER, f"node_memory_{name}_bytes", [_input(name, count)])


def _kubelet(meminfo: Meminfo, view: KubeletView | Unread, *, is_v1: bool) -> Iterator[ToolNumber]:
    if isinstance(view, Unread):
        return
    total = Input("MemTotal", meminfo.mem_total, f"{meminfo_file.PATH} MemTotal")
    used = max(meminfo.mem_total - view.available_bytes, 0)
    working_set = Input("root working set", used, view.source)
    inputs = (total, _minus(working_set))
    yield ToolNumber(tool=KUBELET, name=SIGNAL, bytes=view.available_bytes,
                     formula=view.formula, inputs=inputs)  # fmt: skip
    words = view.formula.removeprefix("MemTotal - (").removesuffix(")")
    yield ToolNumber(tool="kubectl top node", name="MEMORY", bytes=used, inputs=(working_set,),
                     formula=words)  # fmt: skip
    # A kernel without MemAvailable (3.14) has no cgroup v2 (4.5) either.
    if is_v1 or meminfo.mem_available is None or view.older_available_bytes is None:
        return
    if meminfo.inactive_file is not None:
        yield number_of(
            KUBELET, f"{SIGNAL}, cgroup v2 and runc's library before 1.2",
            [_input("MemFree", meminfo.mem_free), _input("Inactive(file)", meminfo.inactive_file)],
            shown=view.older_available_bytes,
        )  # fmt: skip


def _root(root: Memcg | None, memcgs: Memcgs | Unread) -> Iterator[ToolNumber]:
    """What cAdvisor prints for ``id="/"``."""
    if root is None or isinstance(memcgs, Unread):
        return
    place = memcgs.mount_point.rstrip("/")
    name = 'container_memory_usage_bytes{id="/"}'
    if root.version == 1 and root.usage is not None:
        file = "memory.usage_in_bytes"
        yield number_of(PROMETHEUS, name, [Input(file, root.usage, f"{place}/{file}")])
    elif root.version == 2 and root.anon is not None and root.file is not None:
        stat = f"{place}/memory.stat"
        parts = [Input("anon", root.anon, f"{stat} anon"), Input("file", root.file, f"{stat} file")]
        yield number_of(PROMETHEUS, name, parts)


def _known(*parts: tuple[str, int | None]) -> list[Input]:
    return [_input(name, count) for name, count in parts if count is not None]


def _input(name: str, count: int) -> Input:
    return Input(name, count, f"{meminfo_file.PATH} {name}")


def _minus(part: Input) -> Input:
    return Input(part.name, part.bytes, part.source, sign=-1)
