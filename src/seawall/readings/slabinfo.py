# SPDX-License-Identifier: Apache-2.0
"""/proc/slabinfo: objects and pages of each slab cache (root only; format 2.x)."""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabCache:
    name: str
    active_objs: int
    num_objs: int
    objsize_bytes: int
    objperslab: int
    pagesperslab: int
    active_slabs: int
    num_slabs: int

    def bytes(self, page_size: int) -> int:
        """Memory of its slabs, used or not."""
        return self.num_slabs * self.pagesperslab * page_size


@dataclass(frozen=True, slots=True)
class Slabinfo:
    caches: tuple[SlabCache, ...]


def parse(data: bytes) -> Slabinfo:
    raise NotImplementedError


def read(host: Host) -> Slabinfo | Unread:
    raise NotImplementedError
