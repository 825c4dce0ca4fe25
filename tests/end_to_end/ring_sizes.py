"""Packet rings by a second way: asked of the kernel (PACKET_DIAG) for these tests alone."""

import contextlib
import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _DUMP, _REQUEST = 4, 20, 0x300, 1
_AF_PACKET, _SHOW_RING_CFG, _RX_RING, _TX_RING = 17, 4, 2, 3
_DONE, _ERROR = 3, 2


_CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def inside(namespace: int | None) -> Iterator[None]:
    """This thread in another network namespace, by its fd, for a moment."""
    if namespace is None:
        yield
        return
    setns = ctypes.CDLL(None, use_errno=True).setns
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        assert setns(namespace, _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert setns(own, _CLONE_NEWNET) == 0
        os.close(own)


@contextlib.contextmanager
def namespace_of(pid: int) -> Iterator[int]:
    """The fd keeps it, also when the process is gone."""
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def rings(namespace: int | None = None) -> dict[int, int]:
    """Inode of each packet socket of a network namespace -> bytes of its rings."""
    with inside(namespace):
        ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
    found: dict[int, int] = {}
    with ask:
        body = struct.pack("=BBHIIII", _AF_PACKET, 0, 0, 0, _SHOW_RING_CFG, 0, 0)
        head = struct.pack(
            "=IHHII", 16 + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST | _DUMP, 1, 0
        )  # fmt: skip
        ask.sendto(head + body, (0, 0))
        while True:
            data = ask.recv(1 << 18)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == _DONE:
                    return found
                assert kind != _ERROR, os.strerror(-struct.unpack_from("=i", data, 16)[0])
                inode = struct.unpack_from("=I", data, 20)[0]
                found[inode] = _ring_bytes(data[32:length])
                data = data[(length + 3) & ~3 :]


def _ring_bytes(attributes: bytes) -> int:
    total = 0
    while len(attributes) >= 4:
        length, kind = struct.unpack_from("=HH", attributes)
        if kind in (_RX_RING, _TX_RING):
            block, number = struct.unpack_from("=II", attributes, 4)
            total += block * number
        attributes = attributes[(length + 3) & ~3 :]
    return total


def inodes_of(pid: int) -> set[int]:
    """Of the sockets that a process has open."""
    links = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except FileNotFoundError:
            continue
    return {int(link[8:-1]) for link in links if link.startswith("socket:[")}


def bytes_of(pid: int) -> int:
    """Rings that a process has open, in its own network namespace."""
    with namespace_of(pid) as namespace:
        known = rings(namespace)
    return sum(known.get(inode, 0) for inode in inodes_of(pid))
