"""Innocents at full load and culprits, as plain programs: ``kernel_loads.py NAME ARGUMENT...``.

They need nothing but Python, so they run on the machine, in a container and in a VM.  Each
prints ``ready`` once it is at work and goes on until it is killed, or by itself for
``LIFE_SECONDS``.  An innocent counts what it did in the file ``$PROGRESS``, if there is one.

Every name may be preceded by ``enter ENTRY...``: files ``cgroup.procs`` to go into first.
"""

import ctypes
import fcntl
import mmap
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress

LIFE_SECONDS = 300
MIB = 1 << 20
BLOCK, FRAME = 16384, 2048
SOL_PACKET, PACKET_RX_RING = 263, 5
RING_MOST = 1 << 30
SW_TAKE = 0x40105301
ACK_EVERY_SECONDS = 0.05


class Progress:
    """How much was done, in ``$PROGRESS``: 8 bytes for each lane."""

    def __init__(self, lane: int = 0) -> None:
        self._at = 8 * lane
        path = os.environ.get("PROGRESS")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600) if path else -1
        self._total, self._next = 0, 0.0

    def add(self, amount: int) -> None:
        self._total += amount
        if self._fd >= 0 and time.monotonic() >= self._next:
            os.pwrite(self._fd, struct.pack("=Q", self._total), self._at)
            self._next = time.monotonic() + ACK_EVERY_SECONDS


def die_with_parent() -> None:
    """Killed when whoever forked it is."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)


def say(text: str) -> None:
    with suppress(BrokenPipeError):
        os.write(1, text.encode() + b"\n")


def rest() -> None:
    """Keep what is held until killed; whoever tests may have died."""
    time.sleep(LIFE_SECONDS)


# --- innocents ---------------------------------------------------------------------------


def receive(port: str) -> None:
    """TCP at full rate: reads and forgets."""
    server = socket.create_server(("127.0.0.1", int(port)), backlog=16)
    say(f"ready {server.getsockname()[1]}")
    block, progress = bytearray(256 << 10), Progress()
    while True:
        peer = server.accept()[0]
        while size := peer.recv_into(block):
            progress.add(size)


def send(port: str) -> None:
    """TCP at full rate over loopback: its pages are freed at every acknowledgement."""
    until = time.monotonic() + 20
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", int(port)), timeout=5)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            break
    peer.settimeout(None)
    block, progress = bytes(256 << 10), Progress()
    say("ready")
    while True:
        peer.sendall(block)
        progress.add(len(block))


def forks(a_second: str) -> None:
    """Short-lived processes, so many a second, or as many as the machine can; in two lanes."""
    lane = int(os.fork() == 0)
    progress, rate = Progress(lane), float(a_second) / 2
    if lane:
        die_with_parent()
    else:
        say("ready")
    began, done = time.monotonic(), 0
    while True:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        done += 1
        progress.add(1)
        ahead = done / rate - (time.monotonic() - began)
        if ahead > 0:
            time.sleep(ahead)
        elif ahead < -1:  # too slow for it: no burst later
            began, done = time.monotonic(), 0


def load_model(path: str, size: str, rate: str) -> None:
    """Read a model of ``size`` bytes at ``rate`` MiB/s over and over, and let its cache go.

    The file is sparse: reading it costs the same pages, and no disk.
    """
    progress, length = Progress(), int(size)
    with open(path, "wb") as file:
        file.truncate(length)
    fd = os.open(path, os.O_RDONLY)
    os.unlink(path)
    block = bytearray(4 * MIB)
    say("ready")
    began, done = time.monotonic(), 0
    while True:
        for at in range(0, length, len(block)):
            got = os.preadv(fd, [block], at)
            done += got
            progress.add(got)
            ahead = done / (float(rate) * MIB) - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
        os.posix_fadvise(fd, 0, length, os.POSIX_FADV_DONTNEED)
        began, done = time.monotonic(), 0


# --- culprits ----------------------------------------------------------------------------


def ring(size: int) -> socket.socket:
    """A packet socket whose receive ring takes ``size`` bytes that no cgroup counts."""
    taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    request = struct.pack("IIII", BLOCK, size // BLOCK, FRAME, size // FRAME)
    taken.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
    return taken


def wait_for(start: str) -> None:
    """``now``, ``stdin`` (a line), seconds, or a path that appears."""
    say("waiting")
    if start == "stdin":
        sys.stdin.readline()
    elif start.startswith("/"):
        until = time.monotonic() + LIFE_SECONDS
        while not os.path.exists(start) and time.monotonic() < until:
            time.sleep(0.02)
    elif start != "now":
        time.sleep(float(start))


def pieces(size: int, piece: int) -> list[int]:
    whole, rest_bytes = divmod(size, piece)
    return [piece] * whole + ([rest_bytes] if rest_bytes else [])


def rings(size: str, rate: str, start: str) -> None:
    """Take rings of ``size`` bytes in all, ``rate`` MiB each second (0: at once), and hold them."""
    wait_for(start)
    total, speed = int(size), float(rate)
    piece = max(4, int(speed) // 8) * MIB if speed else RING_MOST
    held, began, done = [], time.monotonic(), 0
    for part in pieces(total, piece):
        held.append(ring(part))
        done += part
        if speed:
            time.sleep(max(0.0, done / (speed * MIB) - (time.monotonic() - began)))
    say(f"ready {total}")
    rest()


def rings_forked(size: str, count: str, start: str) -> None:
    """Each ring is taken by a child of its own that sends the socket to its parent by
    SCM_RIGHTS and exits; then the parent hands all of them to a last child by fork, and exits.
    """
    wait_for(start)
    held = []
    for part in pieces(int(size), int(size) // int(count)):
        ours, theirs = socket.socketpair()
        child = os.fork()
        if not child:
            own = ring(part)
            socket.send_fds(theirs, [b"."], [own.fileno()])
            os._exit(0)
        theirs.close()
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        ours.close()
        if os.waitpid(child, 0)[1] or len(fds) != 1:
            raise OSError("a child could not take or hand on its ring")
        held += fds
    if os.fork():
        os._exit(0)
    os.setsid()
    say(f"ready {size} {os.getpid()}")
    rest()


def keep(path: str) -> None:
    """Another workload: takes descriptors from a socket at ``path`` and holds them."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(8)
    say("ready")
    held = []
    signal.alarm(LIFE_SECONDS)
    while True:
        peer = server.accept()[0]
        _, fds, _, _ = socket.recv_fds(peer, 1, 16)
        held += fds
        peer.sendall(b"k")
        say(f"kept {len(held)}")


def rings_passed(size: str, path: str, start: str) -> None:
    """Take a ring, pass it to whoever listens at ``path`` (``keep``), close it, and stay."""
    wait_for(start)
    taken = ring(int(size))
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(path)
    socket.send_fds(peer, [b"."], [taken.fileno()])
    peer.recv(1)
    taken.close()
    say(f"ready {size}")
    rest()


def device(path: str, size: str, order: str, mode: str, start: str) -> None:
    """Take pages from the test driver (``tests/kernels/module``) and hold them: ``keep``,
    ``forget`` (never given back) or ``churn`` (twenty times as much is taken and freed).
    """
    wait_for(start)
    fd = os.open(path, os.O_RDWR)
    modes = ("keep", "forget", "churn")
    fcntl.ioctl(fd, SW_TAKE, struct.pack("=QII", int(size), int(order), modes.index(mode)))
    say(f"ready {size}")
    rest()
    os.close(fd)


def hold(size: str) -> None:
    """Anonymous memory, counted as it should be."""
    area = mmap.mmap(-1, int(size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, int(size), mmap.PAGESIZE):
        area[at] = 1
    say("ready")
    rest()


def enter(*words: str) -> None:
    """Go into these cgroups, then be what follows."""
    for number, word in enumerate(words):
        if word in PROGRAMS:
            PROGRAMS[word](*words[number + 1 :])
            return
        with open(word, "w") as entry:
            entry.write("0")


PROGRAMS = {
    f.__name__: f
    for f in (
        receive, send, forks, load_model, rings, rings_forked, keep, rings_passed, device, hold,
        enter,
    )
}  # fmt: skip

if __name__ == "__main__":
    signal.alarm(LIFE_SECONDS)
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
