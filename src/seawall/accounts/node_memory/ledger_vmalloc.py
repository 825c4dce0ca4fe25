# SPDX-License-Identifier: Apache-2.0
"""vmalloc and kernel stacks, which overlap on most kernels and are told badly by many.

``VmallocUsed`` is address space before 4.4 (ioremap included), 0 from 4.4 to 5.2, and pages
since 5.3.  Only kernels that print ``KReclaimable`` (4.20) print it as pages when it is not 0.
Where the kernel maps its stacks (CONFIG_VMAP_STACK), they are inside the vmalloc pages.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from seawall.accounts.node_memory.ledger_parts import LedgerDraft
from seawall.host.host import Unread
from seawall.readings import vmallocinfo as vmallocinfo_file
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.vmallocinfo import VmallocArea, Vmallocinfo

# Into which the allocation of a stack is inlined, by kernel.
STACK_CALLERS: Final = frozenset(
    {"alloc_thread_stack_node", "dup_task_struct", "copy_process", "_do_fork", "do_fork",
     "kernel_clone", "fork_idle", "create_io_thread"}
)  # fmt: skip
_MAPS_STACKS_SINCE: Final = {"x86_64": (4, 9), "aarch64": (4, 14), "s390x": (4, 20)}
# Of MemTotal; an assumption, said where it is made: hosts have far less.
_UNKNOWN_SHARE: Final = 64
_UNKNOWN_LEAST: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class _Pages:
    """Bytes of vmalloc's own pages, and where that was read."""

    bytes: int
    source: str


def add_vmalloc(
    draft: LedgerDraft, meminfo: Meminfo, kernel: Kernel, vmallocinfo: Vmallocinfo | Unread
) -> None:
    """Lines ``vmalloc`` and ``kernel stacks``; an unknown line where nothing counts pages."""
    stacks = meminfo.kernel_stack
    used = _vmalloc_pages(meminfo, kernel, vmallocinfo)
    if used is None:
        draft.add("kernel stacks", stacks, "/proc/meminfo KernelStack")
        _miss(draft, meminfo, vmallocinfo)
        return
    if stacks is None:
        draft.add("vmalloc", used.bytes, used.source, node_counters=0)
        return
    mapped = _are_mapped(draft, stacks, used.bytes, kernel, vmallocinfo)
    draft.add("kernel stacks", stacks, "/proc/meminfo KernelStack")
    if mapped:
        # Stacks of ended threads stay mapped for reuse, so the difference is never exact.
        rest, source = max(0, used.bytes - stacks), f"{used.source} less KernelStack"
    else:
        rest, source = used.bytes, used.source
    draft.add("vmalloc", rest, source, node_counters=0)


def is_pages(meminfo: Meminfo) -> bool:
    """Whether VmallocUsed counts pages on this kernel."""
    return bool(meminfo.vmalloc_used) and meminfo.k_reclaimable is not None


def node_vmalloc(vmallocinfo: Vmallocinfo | Unread, node: int, page_size: int) -> int | None:
    """Bytes of vmalloc pages on one node, stacks included; None where it is not told."""
    if isinstance(vmallocinfo, Unread):
        return None
    areas = [area for area in vmallocinfo.areas if "vmalloc" in area.kinds]
    if not any(area.node_pages for area in areas):
        return None
    return sum(area.node_pages.get(node, 0) for area in areas) * page_size


def stacks_are_seen(
    vmallocinfo: Vmallocinfo | Unread, stacks: int, page_size: int, least_bytes: int = 0
) -> bool | None:
    """Whether areas look like the kernel's stacks; None where that cannot be told.

    Known callers tell by name; an unknown one by holding about as much as all stacks do.
    A file that holds less than ``least_bytes`` was cut and tells nothing.
    """
    if isinstance(vmallocinfo, Unread) or not stacks:
        return None
    by_caller: Counter[str] = Counter()
    for area in vmallocinfo.areas:
        if area.pages and "vmalloc" in area.kinds and area.caller:
            by_caller[area.caller] += area.pages * page_size
    if by_caller.total() < least_bytes:
        return None
    named = sum(size for caller, size in by_caller.items() if caller in STACK_CALLERS)
    return named >= stacks // 2 or any(
        stacks * 3 // 4 <= size <= stacks * 3 // 2 for size in by_caller.values()
    )


def _vmalloc_pages(
    meminfo: Meminfo, kernel: Kernel, vmallocinfo: Vmallocinfo | Unread
) -> _Pages | None:
    if is_pages(meminfo) and meminfo.vmalloc_used is not None:
        return _Pages(meminfo.vmalloc_used, "/proc/meminfo VmallocUsed")
    if isinstance(vmallocinfo, Unread):
        return None
    pages = sum(area.pages or 0 for area in filter(counts, vmallocinfo.areas))
    return _Pages(pages * kernel.page_size, f"{vmallocinfo_file.PATH} pages= of vmalloc areas")


def counts(area: VmallocArea) -> bool:
    """Its pages are its own: vmap maps pages that somebody else holds and counts."""
    return "vmalloc" in area.kinds and not {"vmap", "ioremap"} & area.kinds


def _are_mapped(
    draft: LedgerDraft, stacks: int, used: int, kernel: Kernel, vmallocinfo: Vmallocinfo | Unread
) -> bool:
    seen = stacks_are_seen(vmallocinfo, stacks, kernel.page_size, used // 2)
    if seen is not None:
        return seen
    if used < stacks:
        return False
    since = _MAPS_STACKS_SINCE.get(_machine(kernel))
    if since is None:
        # Either way is possible: take the usual one, and let the error hold the other.
        draft.bounded_bytes += stacks
        draft.notes.append("whether stacks are inside VmallocUsed is not known; taken as inside")
        return True
    if kernel.version != (0, 0) and kernel.version < since:
        return False
    draft.notes.append(
        "kernel stacks are taken as inside VmallocUsed (CONFIG_VMAP_STACK, the default of "
        f"{_machine(kernel)}); {vmallocinfo_file.PATH} would tell"
    )
    return True


def _machine(kernel: Kernel) -> str:
    """From uname, or from the release where distributions write it there."""
    if kernel.machine:
        return kernel.machine
    release = (kernel.release or "").replace("amd64", "x86_64").replace("arm64", "aarch64")
    return next((name for name in _MAPS_STACKS_SINCE if name in release), "")


def _miss(draft: LedgerDraft, meminfo: Meminfo, vmallocinfo: Vmallocinfo | Unread) -> None:
    if meminfo.vmalloc_used is None:
        fault = "/proc/meminfo has no VmallocUsed"
    elif meminfo.vmalloc_used:
        fault = "VmallocUsed is address space, not memory, before 4.4"
    else:
        fault = "this kernel prints VmallocUsed as 0"
    draft.notes.append(fault)
    at_most = max(meminfo.mem_total // _UNKNOWN_SHARE, _UNKNOWN_LEAST)
    reason = vmallocinfo.why.replace("_", " ") if isinstance(vmallocinfo, Unread) else "no pages"
    draft.miss(
        "vmalloc",
        f"{fault}, and {vmallocinfo_file.PATH} is {reason}; assumed to be at most "
        f"1/{_UNKNOWN_SHARE} of MemTotal",
        at_most,
    )
