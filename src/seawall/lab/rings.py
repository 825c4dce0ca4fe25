# SPDX-License-Identifier: Apache-2.0
"""Packet rings: pages of the kernel that a program gets by CAP_NET_RAW alone.

packet(7), kernel document networking/packet_mmap.rst; since 2.4.  The pages are allocated
without __GFP_ACCOUNT, so they are in no cgroup's charge.  A socket that is bound to no protocol
sees no packet; closing it, or the end of the process, gives its ring back.

The rings are taken in a network namespace of their own, as a pod's are: in one that is shared
with others the kernel has no proof of whose a socket is.
"""

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Callable
from typing import Final

from seawall.lab.plan import Plan

_SOL_PACKET: Final = 263
_PACKET_RX_RING: Final = 5
_CLONE_NEWNET: Final = 0x40000000
_BLOCK_BYTES: Final = max(16 << 10, mmap.PAGESIZE)
_FRAME_BYTES: Final = 2048


def why_not() -> str | None:
    """Why no ring can be had here, and what would help."""
    family = getattr(socket, "AF_PACKET", None)
    if family is None:
        return "this Python knows no packet sockets"
    try:
        socket.socket(family, socket.SOCK_RAW, 0).close()
    except PermissionError:
        return "packet sockets need CAP_NET_RAW: run as root, or in a container that has it"
    except OSError as error:
        return f"this kernel makes no packet sockets (CONFIG_PACKET): {error.strerror}"
    return None


def be_alone() -> str | None:
    """Into an empty network namespace, unshare(2); why not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        return os.strerror(ctypes.get_errno())
    return None


def taker(_plan: Plan, note: Callable[[str], None]) -> Callable[[int], int]:
    """A socket with a ring for each piece; they are kept as long as the function is."""
    held: list[socket.socket] = []
    if why := be_alone():
        note(
            f"no network namespace of its own ({why}; it needs CAP_SYS_ADMIN): the kernel cannot "
            "tell whose these sockets are, so only `seawall memory --who` names the cgroup"
        )

    def take(piece: int) -> int:
        blocks = max(1, piece // _BLOCK_BYTES)
        done = blocks * _BLOCK_BYTES
        frames = done // _FRAME_BYTES
        ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        held.append(ring)
        request = struct.pack("=IIII", _BLOCK_BYTES, blocks, _FRAME_BYTES, frames)
        ring.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        return done

    return take
