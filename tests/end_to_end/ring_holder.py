"""A process that does what it is told with packet rings: one JSON command a line on stdin.

``ring`` VERSION RX TX, ``map`` N, ``close`` N, ``fork`` COUNT, ``leave`` (for a network
namespace of its own), ``keep`` PATH (that namespace, by a bind mount), ``back`` (to the first),
``serve`` PATH, ``give`` PATH N, ``take``, ``go_on`` (in another thread: the first one ends).
Prints the inode of a socket, or 0.  ``rx`` and ``tx`` are [bytes of a block, blocks, bytes of
a frame].
"""

import array
import ctypes
import json
import mmap
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
FAILED = ctypes.c_void_p(-1).value
NEW_NET = 0x40000000
SOL_PACKET, RX_RING, VERSION, TX_RING = 263, 5, 10, 13
SYS_EXIT = {"x86_64": 60}.get(os.uname().machine, 93)


class Holder:
    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.sizes: list[int] = []
        self.server: socket.socket | None = None
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)

    def ring(self, version: int, rx: list[int] | None, tx: list[int] | None) -> int:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        made.setsockopt(SOL_PACKET, VERSION, struct.pack("I", version))
        for option, asked in ((RX_RING, rx), (TX_RING, tx)):
            if asked:
                size, blocks, frame = asked
                request = struct.pack("IIII", size, blocks, frame, size // frame * blocks)
                if version == 2:  # V3
                    request += struct.pack("III", 60 if option == RX_RING else 0, 0, 0)
                made.setsockopt(SOL_PACKET, option, request)
        self.sockets.append(made)
        self.sizes.append(sum(a[0] * a[1] for a in (rx, tx) if a))
        return os.fstat(made.fileno()).st_ino

    def map(self, number: int) -> int:
        """By mmap(2) itself: Python's own keeps a descriptor of its own."""
        fd = self.sockets[number].fileno()
        if LIBC.mmap(None, self.sizes[number], mmap.PROT_READ, mmap.MAP_SHARED, fd, 0) == FAILED:
            raise OSError(ctypes.get_errno(), "mmap")
        return os.fstat(fd).st_ino

    def close(self, number: int) -> int:
        self.sockets[number].close()
        return 0

    def fork(self, count: int) -> int:
        for _ in range(count):
            if not os.fork():
                LIBC.prctl(1, 9)
                os.close(0)
                time.sleep(120)
                os._exit(0)
        return 0

    def leave(self) -> int:
        if LIBC.unshare(NEW_NET):
            raise OSError(ctypes.get_errno(), "unshare")
        return os.stat("/proc/self/ns/net").st_ino

    def keep(self, path: str) -> int:
        open(path, "w").close()
        if LIBC.mount(b"/proc/self/ns/net", path.encode(), None, 0x1000, None):
            raise OSError(ctypes.get_errno(), "mount")
        return 0

    def back(self) -> int:
        if LIBC.setns(self.home, NEW_NET):
            raise OSError(ctypes.get_errno(), "setns")
        return 0

    def serve(self, path: str) -> int:
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen()
        return 0

    def give(self, path: str, number: int) -> int:
        with socket.socket(socket.AF_UNIX) as to:
            to.connect(path)
            rights = array.array("i", [self.sockets[number].fileno()])
            to.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            to.recv(1)
        return 0

    def take(self) -> int:
        assert self.server
        peer, _ = self.server.accept()
        _, ((_, _, data),), _, _ = peer.recvmsg(1, 64)
        (fd,) = struct.unpack("i", data)
        self.sockets.append(socket.socket(fileno=fd))
        peer.send(b"x")
        return os.fstat(fd).st_ino

    def go_on(self) -> int:
        threading.Thread(target=self._obey_alone).start()
        return int(LIBC.syscall(SYS_EXIT, 0))

    def _obey_alone(self) -> None:
        while ") Z " not in Path("/proc/self/stat").read_text():
            time.sleep(0.01)
        sys.stdout.write("0\n")
        sys.stdout.flush()
        obey(self)


def obey(holder: Holder) -> None:
    while line := sys.stdin.readline():
        name, *arguments = json.loads(line)
        sys.stdout.write(f"{getattr(holder, name)(*arguments)}\n")
        sys.stdout.flush()


def main() -> None:
    obey(Holder())


if __name__ == "__main__":
    main()
