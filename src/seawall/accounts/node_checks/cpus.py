# SPDX-License-Identifier: Apache-2.0
"""Processors that are gone, and hyperthreading that is not as it should be."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

FOLDER: Final = "/sys/devices/system/cpu"
_RANGES_BYTES: Final = 65_536
_CPUS_MOST: Final = 1 << 20


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Fewer online than wanted; without that, fewer than are there."""
    online, present = _count(host, "online"), _count(host, "present")
    if isinstance(online, Unread):
        yield unseen(online)
        return
    if wanted.cpus is not None:
        if online < wanted.cpus:
            yield NodeFault(f"{online} of {wanted.cpus} processors are online")
    elif not isinstance(present, Unread) and online < present and not _is_smt_off(host):
        yield NodeFault(f"{online} of {present} processors are online")


def look_at_threads(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Whether processors share cores, where the file says how it should be."""
    if wanted.smt is None:
        return
    data = host.read(f"{FOLDER}/smt/active", 64)
    if isinstance(data, Unread):
        yield unseen(data)
    elif (data.strip() == b"1") != wanted.smt:
        yield NodeFault(f"hyperthreading is {'off' if wanted.smt else 'on'}")


def _is_smt_off(host: Host) -> bool:
    data = host.read(f"{FOLDER}/smt/control", 64)
    return not isinstance(data, Unread) and data.strip() in (b"off", b"forceoff")


def _count(host: Host, name: str) -> int | Unread:
    """Of ``0-3,8-11``."""
    path = f"{FOLDER}/{name}"
    data = host.read(path, _RANGES_BYTES)
    if isinstance(data, Unread):
        return data
    count = 0
    for part in data.decode("ascii", "replace").strip().split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return Unread(path, "malformed", "expected ranges of numbers")
        count += min(int(last or first) - int(first) + 1, _CPUS_MOST)
    return count
