# SPDX-License-Identifier: Apache-2.0
"""/proc/buddyinfo: free blocks of each order, per zone."""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True)
class FreeBlocks:
    """``blocks[n]`` counts free runs of 2**n pages."""

    node: int
    zone: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Buddyinfo:
    zones: tuple[FreeBlocks, ...]


def parse(data: bytes) -> Buddyinfo:
    raise NotImplementedError


def read(host: Host) -> Buddyinfo | Unread:
    raise NotImplementedError
