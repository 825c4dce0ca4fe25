# SPDX-License-Identifier: Apache-2.0
"""Packet sockets of one network namespace, asked of the kernel through NETLINK_SOCK_DIAG.

Kernel headers: uapi/linux/packet_diag.h, sock_diag.h, netlink.h; handler net/packet/diag.c, since
3.6, in the module af_packet_diag.  A ring is told as it was asked for: the kernel takes each
block as a power of two of pages (af_packet.c alloc_pg_vec).  No right is needed.
"""

import os
import socket
import struct
from collections.abc import Iterator
from errno import EIO
from typing import Final, NamedTuple

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_AF_PACKET: Final = 17
_REQUEST_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_SHOW: Final = 0x5  # PACKET_SHOW_INFO (also the user), PACKET_SHOW_RING_CFG
_ERROR, _DONE = 2, 3
_RX_RING, _TX_RING, _UID = 2, 3, 5
_HEAD: Final = struct.Struct("=IHHII")
_MESSAGE: Final = struct.Struct("=BBHIII")
_ERRNO_MOST: Final = 4095  # include/linux/err.h MAX_ERRNO
_ATTRIBUTE: Final = struct.Struct("=HH")
_REQUEST: Final = struct.Struct("=BBHIIII")
_TYPE_MASK: Final = 0x3FFF  # the two upper bits are flags
_WAIT_SECONDS: Final = 0.2
_BUFFER_BYTES: Final = 256 << 10
SOCKETS_MOST: Final = 50_000


class DiagSocket(NamedTuple):
    """One socket; a ring is (bytes of a block, blocks), or None where there is none."""

    inode: int
    uid: int | None
    """Of who made it, as the asker's user namespace calls him."""
    rx: tuple[int, int] | None
    tx: tuple[int, int] | None


def packet_sockets() -> list[DiagSocket]:
    """Those of the asking thread's network namespace.

    OSError with ENOENT where the kernel has no af_packet_diag, TimeoutError where it is silent.
    """
    found: list[DiagSocket] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as asked:
        asked.settimeout(_WAIT_SECONDS)
        body = _REQUEST.pack(_AF_PACKET, 0, 0, 0, _SHOW, 0, 0)
        head = _HEAD.pack(_HEAD.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
        asked.send(head + body)
        while len(found) < SOCKETS_MOST:
            sockets, is_last = parse_replies(asked.recv(_BUFFER_BYTES))
            found += sockets
            if is_last:
                break
    return found


def parse_replies(data: bytes) -> tuple[list[DiagSocket], bool]:
    """The sockets of one datagram, and whether it ends the answer; OSError that it carries."""
    found: list[DiagSocket] = []
    at = 0
    while at + _HEAD.size <= len(data):
        length, kind, *_ = _HEAD.unpack_from(data, at)
        if length < _HEAD.size or at + length > len(data):
            break
        body = data[at + _HEAD.size : at + length]
        at += length + 3 & ~3
        if kind in (_ERROR, _DONE):
            code = -int.from_bytes(body[:4], "little" if _is_little() else "big", signed=True)
            if code > 0:
                code = code if code <= _ERRNO_MOST else EIO
                raise OSError(code, os.strerror(code))
            return found, True
        if kind == _SOCK_DIAG_BY_FAMILY and len(body) >= _MESSAGE.size:
            found.append(_socket(body))
    return found, not data


def _is_little() -> bool:
    return struct.pack("=H", 1) == b"\1\0"


def _socket(body: bytes) -> DiagSocket:
    inode = _MESSAGE.unpack_from(body)[3]
    told = dict(_attributes(body[_MESSAGE.size :]))
    uid = told.get(_UID, b"")
    return DiagSocket(
        inode=inode,
        uid=struct.unpack("=I", uid)[0] if len(uid) == 4 else None,
        rx=_ring(told.get(_RX_RING, b"")),
        tx=_ring(told.get(_TX_RING, b"")),
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > len(data):
            return
        yield kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + length]
        at += length + 3 & ~3


def _ring(data: bytes) -> tuple[int, int] | None:
    """What ``struct packet_diag_ring`` begins with: the size and the number of the blocks."""
    if len(data) < 8:
        return None
    size, blocks = struct.unpack_from("=II", data)
    return (size, blocks) if size and blocks else None
