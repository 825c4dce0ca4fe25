"""Loads that look bad and are not: ``loads.py NAME ARGUMENT...``.

Each prints ``ready`` once it is at work and goes on until it is killed.
"""

import mmap
import os
import random
import socket
import sys
import threading
import time

CHUNK_BYTES = 16 << 20


def _ready() -> None:
    os.write(1, b"ready\n")


def stream(path: str) -> None:
    """Read a file from its disk over and over, as a backup or a loader of weights does."""
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    _ready()
    while True:
        for at in range(0, size, 1 << 20):
            os.pread(fd, 1 << 20, at)
        os.posix_fadvise(fd, 0, size, os.POSIX_FADV_DONTNEED)


def take(total_bytes: str, seconds: str) -> None:
    """Take memory steadily, as a model server does while it starts, and keep it."""
    steps = max(1, int(total_bytes) // CHUNK_BYTES)
    filler = b"\1" * CHUNK_BYTES
    held = []
    _ready()
    began = time.monotonic()
    for number in range(steps):
        area = mmap.mmap(-1, CHUNK_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.write(filler)
        held.append(area)
        due = began + float(seconds) * (number + 1) / steps
        time.sleep(max(0.0, due - time.monotonic()))
    time.sleep(3600)


def fork_storm(lanes: str) -> None:
    """Short-lived processes as fast as the machine starts them, ``lanes`` at a time."""
    for _ in range(int(lanes) - 1):
        if not os.fork():
            break
    else:
        _ready()
    while True:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)


def flood(connections: str) -> None:
    """TCP over loopback at full speed."""
    server = socket.create_server(("127.0.0.1", 0), backlog=int(connections))
    for _ in range(int(connections)):
        sender = socket.create_connection(server.getsockname())
        receiver = server.accept()[0]
        threading.Thread(target=_send, args=(sender,), daemon=True).start()
        threading.Thread(target=_receive, args=(receiver,), daemon=True).start()
    _ready()
    time.sleep(3600)


def _send(sender: socket.socket) -> None:
    block = bytes(256 << 10)
    while True:
        sender.sendall(block)


def _receive(receiver: socket.socket) -> None:
    block = bytearray(256 << 10)
    while True:
        receiver.recv_into(block)


def reread(path: str) -> None:
    """Touch a mapped file's pages at random for ever: thrashes in a group smaller than it."""
    with open(path, "rb") as file:
        text = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    text.madvise(mmap.MADV_RANDOM)
    _ready()
    while True:
        text[random.randrange(0, len(text), mmap.PAGESIZE)]


def hugepages(count: str, page_bytes: str) -> None:
    """Use ``count`` pages of the hugetlb pool."""
    size = int(page_bytes)
    area = mmap.mmap(-1, int(count) * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
    for at in range(0, len(area), size):
        area[at] = 1
    _ready()
    time.sleep(3600)


def enter(entry: str, name: str, *arguments: str) -> None:
    """Go into a cgroup first."""
    with open(entry, "w") as file:
        file.write(str(os.getpid()))
    LOADS[name](*arguments)


LOADS = {f.__name__: f for f in (stream, take, fork_storm, flood, reread, hugepages, enter)}

if __name__ == "__main__":
    LOADS[sys.argv[1]](*sys.argv[2:])
