"""Takes kernel memory and hands it on: ``KIND MIB TAKER KEEPER``, both files ``cgroup.procs``.

The taker makes it, a child of it goes to the keeper's cgroup and keeps the descriptors, and the
taker closes its own and lives on.  KIND: ``pipe`` (data in pipes), ``vmsplice`` (pages given to
pipes and unmapped), ``rings`` (io_uring), ``buffers`` (registered with io_uring and unmapped),
``packet`` (rings of packet sockets), ``inflight`` (those, on their way to the taker itself).  It
begins at a line on stdin, and says ``held`` on stdout.
"""

import ctypes
import fcntl
import mmap
import os
import socket
import struct
import sys
import time
from collections.abc import Callable

MIB = 1 << 20
SET_PIPE_SIZE = 1031
SPLICE_GIFT = 8
IO_URING_SETUP, IO_URING_REGISTER, REGISTER_BUFFERS = 425, 427, 0
SOL_PACKET, PACKET_VERSION, PACKET_RX_RING = 263, 10, 5
LIBC = ctypes.CDLL(None, use_errno=True)
Vector = ctypes.c_size_t * 2


def checked(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def pipes(mib: int) -> list[int]:
    own = []
    for _ in range(mib):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, SET_PIPE_SIZE, MIB)
        os.write(writer, bytes(MIB))
        own += [reader, writer]
    return own


def gifts(mib: int) -> list[int]:
    own = []
    for _ in range(mib):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, SET_PIPE_SIZE, MIB)
        pages = mmap.mmap(-1, MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages[:] = b"x" * MIB
        vector = Vector(ctypes.addressof(ctypes.c_char.from_buffer(pages)), MIB)
        checked(LIBC.vmsplice(writer, ctypes.byref(vector), 1, SPLICE_GIFT))
        own += [reader, writer]
    return own  # the mappings go with their names


def ring_of(entries: int) -> int:
    parameters = ctypes.create_string_buffer(120)
    return checked(LIBC.syscall(IO_URING_SETUP, entries, ctypes.byref(parameters)))


def rings(mib: int) -> list[int]:
    """Of 4,096 entries each: 256 KiB for those, and 128 for the completions."""
    return [ring_of(4096) for _ in range(mib * 1024 // 400)]


def buffers(mib: int) -> list[int]:
    ring = ring_of(8)
    pages = mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages[:] = b"x" * (mib * MIB)
    vector = Vector(ctypes.addressof(ctypes.c_char.from_buffer(pages)), mib * MIB)
    checked(LIBC.syscall(IO_URING_REGISTER, ring, REGISTER_BUFFERS, ctypes.byref(vector), 1))
    return [ring]


def packets(mib: int) -> list[int]:
    own = []
    for _ in range(mib // 8):
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        one.setsockopt(SOL_PACKET, PACKET_VERSION, struct.pack("i", 0))
        one.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("IIII", MIB, 8, 2048, 4096))
        own.append(one.detach())
    return own


def in_flight(mib: int) -> list[int]:
    """The same in the queue of a socket that the taker keeps."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for one in packets(mib):
        socket.send_fds(here, [b"x"], [one])
        os.close(one)
    KEPT.extend((here, there))
    return []


KEPT: list[socket.socket] = []
KINDS: dict[str, Callable[[int], list[int]]] = {
    "pipe": pipes, "vmsplice": gifts, "rings": rings, "buffers": buffers, "packet": packets,
    "inflight": in_flight,
}  # fmt: skip


def join(procs: str) -> None:
    with open(procs, "w") as file:
        file.write(str(os.getpid()))


def main(kind: str, mib: int, taker: str, keeper: str) -> None:
    join(taker)
    sys.stdin.readline()
    own = KINDS[kind](mib)
    told, tell = os.pipe()
    if not os.fork():
        for one in KEPT:
            one.close()
        join(keeper)
        os.write(tell, b"x")
        time.sleep(600)
    os.read(told, 1)
    for one in own:
        os.close(one)
    sys.stdout.write("held\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
