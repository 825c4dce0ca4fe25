# SPDX-License-Identifier: Apache-2.0
"""/proc/vmallocinfo: every area of the kernel's virtual address space (root only)."""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class VmallocArea:
    size_bytes: int
    """Of address space, guard page included."""
    caller: str | None
    """Symbol without offset, e.g. ``dup_task_struct``; with ``[module]`` where printed."""
    module: str | None
    pages: int | None
    """Pages that back it; None for ioremap, vmap of foreign pages and the like."""
    kinds: frozenset[str]
    """Words such as vmalloc, ioremap, vmap, user, vpages, unpurged, dma-coherent."""
    node_pages: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Vmallocinfo:
    areas: tuple[VmallocArea, ...]


def parse(data: bytes) -> Vmallocinfo:
    raise NotImplementedError


def read(host: Host) -> Vmallocinfo | Unread:
    raise NotImplementedError
