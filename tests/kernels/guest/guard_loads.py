"""Culprits and innocents that kernel_loads.py has not: ``guard_loads.py NAME ARGUMENT...``.

Each prints ``ready`` once it is at work, and goes on until it is killed.
"""

import ctypes
import fcntl
import gc
import mmap
import os
import random
import struct
import sys
import time

# It runs isolated: its own folder is not in the path.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel_loads

MIB = 1 << 20
PIECE = 4 * MIB
BLOCK = 65536
MADV_PAGEOUT = 21
PAGE = mmap.PAGESIZE
CLONE_NEWNS, MS_PRIVATE, MS_REC = 0x20000, 1 << 18, 1 << 14


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def wait_for(path: str) -> None:
    say("waiting")
    while not os.path.exists(path):
        time.sleep(0.02)


class Pace:
    """Not faster than so many MiB a second."""

    def __init__(self, rate: float) -> None:
        self.speed, self.began, self.done = rate * MIB, time.monotonic(), 0

    def did(self, size: int) -> None:
        self.done += size
        ahead = self.done / self.speed - (time.monotonic() - self.began)
        if ahead > 0:
            time.sleep(ahead)


def take(size: int) -> mmap.mmap:
    area = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area[::PAGE] = b"x" * (len(area) // PAGE)
    return area


def service(size: str) -> None:
    """Holds its memory and uses all of it, once every two seconds."""
    area = take(int(size))
    say("ready")
    while True:
        area[::PAGE] = b"y" * (len(area) // PAGE)
        time.sleep(2)


def anonymous(size: str, rate: str, start: str) -> None:
    """Takes counted memory, ``rate`` MiB each second."""
    wait_for(start)
    held, pace = [], Pace(float(rate))
    for _ in range(int(size) // PIECE):
        held.append(take(PIECE))
        pace.did(PIECE)
    say("ready")
    time.sleep(3600)


def tmpfs(size: str, rate: str, start: str) -> None:
    """Fills the /dev/shm of its own, as a container has one: gone when the last process is."""
    wait_for(start)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace of its own")
    if libc.mount(b"shm", b"/tmp", b"tmpfs", 0, b"size=4g"):
        raise OSError(ctypes.get_errno(), "no tmpfs")
    block, pace = os.urandom(PIECE), Pace(float(rate))
    with open("/tmp/filled", "wb", buffering=0) as file:
        for _ in range(int(size) // PIECE):
            file.write(block)
            pace.did(PIECE)
    say("ready")
    time.sleep(3600)


def small(count: str, each_kib: str, start: str) -> None:
    """Many small processes; once all are there, each takes its own memory, page by page: against
    a limit, none of them is large.
    """
    wait_for(start)
    gc.freeze()  # what is shared with the children stays shared
    all_there, go = os.pipe()
    for _ in range(int(count)):
        if not os.fork():
            os.close(go)
            os.read(all_there, 1)
            with mmap.mmap(-1, int(each_kib) << 10, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
                while True:
                    for at in range(0, len(area), PAGE):
                        area[at] = 1
                        time.sleep(0.05)
    say("ready")
    os.close(go)
    time.sleep(3600)


def text(path: str, programs: str) -> None:
    """So many programs that run the text in ``path``, a page here and a page there."""
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    area.madvise(mmap.MADV_RANDOM)
    say("ready")
    for _ in range(int(programs) - 1):
        if not os.fork():
            break
    random.seed(os.getpid())
    while True:
        for _ in range(8):
            area[random.randrange(0, len(area), PAGE)]
        time.sleep(0.01)


def read_for_ever(fd: int) -> None:
    block = bytearray(MIB)
    while True:
        at = 0
        while got := os.preadv(fd, [block], at):
            at += got


def reread(path: str, start: str) -> None:
    """Reads a file larger than its limit over and over: thrashes inside its own limit."""
    wait_for(start)
    say("ready")
    read_for_ever(os.open(path, os.O_RDONLY))


def stream(path: str, size: str) -> None:
    """Reads a file larger than the node over and over: all that is free becomes page cache."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.unlink(path)
    os.truncate(fd, int(size))  # it is sparse: no disk is needed
    say("ready")
    read_for_ever(fd)


def available() -> int:
    with open("/proc/meminfo") as file:
        rows = dict(line.split(":") for line in file)
    return int(rows["MemAvailable"].split()[0]) << 10


def fill(kind: str, room_mib: str, rate: str, start: str) -> None:
    """Takes memory of a kind until so much is left on the node, then holds it."""
    device = os.open("/dev/seawall_pages", os.O_RDWR) if kind in ("keep", "forget") else -1
    wait_for(start)
    held: list[object] = []
    pace, room = Pace(float(rate)), int(room_mib) * MIB
    while (left := available()) > room:
        size = min(PIECE, -(-(left - room) // BLOCK) * BLOCK)
        if kind == "rings":
            held.append(kernel_loads.ring(size))
        elif kind == "anonymous":
            held.append(take(size))
        elif kind == "both":
            half = -(-size // 2 // BLOCK) * BLOCK
            held += [take(half), kernel_loads.ring(half)]
        else:
            held.append(pages(device, size, kind))
        pace.did(size)
    say("ready")
    time.sleep(3600)


def pages(device: int, size: int, mode: str) -> int:
    """From the test driver."""
    request = struct.pack("=QII", size, 0, ("keep", "forget", "churn").index(mode))
    fcntl.ioctl(device, kernel_loads.SW_TAKE, request)
    return size


def stuck(path: str, *rest: str) -> None:
    """One of its processes waits for a file server that never answers; the other goes on."""
    if not os.fork():
        take(8 * MIB)
        with open(path, "rb", buffering=0) as file:
            file.read(1)
        os._exit(0)
    time.sleep(0.5)
    kernel_loads.PROGRAMS[rest[0]](*rest[1:])


def cold(size: str) -> None:
    """Memory that nobody uses any more, pushed out to swap; a quarter of it is random."""
    area = mmap.mmap(-1, int(size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(area), PAGE):
        area[at : at + PAGE // 4] = os.urandom(PAGE // 4)
    area.madvise(MADV_PAGEOUT)
    say("ready")
    time.sleep(3600)


def handing(size: str, lives: str, start: str) -> None:
    """Takes rings for ever; every second it hands all of them to a child and ends."""
    wait_for(start)
    held: list[object] = []
    for _ in range(int(lives)):
        pace = Pace(float(size))
        for _ in range(int(size) // 4):
            held.append(kernel_loads.ring(PIECE))
            pace.did(PIECE)
        if os.fork():
            os._exit(0)
        os.setsid()
    time.sleep(3600)


def later(seconds: str, rate: str, start: str) -> None:
    """Takes rings, so many seconds after the others have begun."""
    wait_for(start)
    time.sleep(float(seconds))
    kernel_loads.rings(str(4096 * MIB), rate, start)


def leak(size: str, rate: str) -> None:
    """An innocent that grows slowly, within what it may have."""
    say("ready")
    held, pace = [], Pace(float(rate))
    for _ in range(int(size) // PIECE):
        held.append(take(PIECE))
        pace.did(PIECE)
    time.sleep(3600)


_ALL = (service, anonymous, tmpfs, small, text, reread, stream, fill, stuck, cold, handing, later,
        leak)  # fmt: skip
PROGRAMS = {f.__name__: f for f in _ALL}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
