# SPDX-License-Identifier: Apache-2.0
"""/proc/swaps: swap areas, with zram recognised by its device name."""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapArea:
    filename: str
    type: str
    size_bytes: int
    used_bytes: int
    priority: int


@dataclass(frozen=True, slots=True)
class Swaps:
    areas: tuple[SwapArea, ...]


def parse(data: bytes) -> Swaps:
    raise NotImplementedError


def read(host: Host) -> Swaps | Unread:
    raise NotImplementedError
