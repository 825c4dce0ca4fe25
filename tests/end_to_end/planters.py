"""What the planting tests plant: each holds BYTES of one kind of memory until SIGTERM.

Run as ``python planters.py KIND BYTES FOLDER``; prints ``ready``, or ``cannot: WHY``.  It
gives everything back by itself after two minutes.
"""

import ctypes
import fcntl
import mmap
import os
import resource
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Callable

MIB = 1 << 20
STOP = (signal.SIGTERM, signal.SIGINT)
held: list[object] = []


def anonymous(size: int, folder: str) -> None:
    area = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        area[at] = 1
    held.append(area)


def file_of(size: int, folder: str) -> None:
    """tmpfs or page cache, by where the folder is."""
    with open(os.path.join(folder, "planted"), "wb") as out:
        out.writelines(os.urandom(MIB) for _ in range(size // MIB))
        out.flush()
        os.fsync(out.fileno())


def slab(size: int, folder: str) -> None:
    """Empty files on a tmpfs: an inode and a dentry each."""
    for number in range(size // 900):
        os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))


def pipes(size: int, folder: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    for _ in range(size // MIB):
        _, end = os.pipe()
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, MIB)
        os.set_blocking(end, False)
        wrote = 0
        while wrote < MIB:
            wrote += os.write(end, b"x" * (MIB - wrote))


def packet_rings(size: int, folder: str) -> None:
    """PACKET_RX_RING: pages that no counter and no cgroup sees."""
    ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    block, frame = 16384, 2048
    request = struct.pack("IIII", block, size // block, frame, size // frame)
    ring.setsockopt(263, 5, request)  # SOL_PACKET, PACKET_RX_RING
    held.append(ring)


def vmalloc(size: int, folder: str) -> None:
    """A BPF array of one element is one vmalloc area."""
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(128)
    struct.pack_into("IIII", attributes, 0, 2, 4, 1 << 20, size >> 20)  # ARRAY, key, value, max
    if libc.syscall(number, 0, attributes, len(attributes)) < 0:
        raise OSError(ctypes.get_errno(), "bpf(BPF_MAP_CREATE)")


def hugetlb(size: int, folder: str) -> None:
    """Pages in the pool count, used or not."""
    page = 2 << 20
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    with open(path) as pool:
        before = int(pool.read())
    held.append((path, before))
    with open(path, "w") as pool:
        pool.write(str(before + size // page))
    with open(path) as pool:
        if int(pool.read()) != before + size // page:
            raise OSError("the kernel found no free huge pages")


KINDS: dict[str, Callable[[int, str], None]] = {
    "anonymous": anonymous,
    "tmpfs": file_of,
    "page cache": file_of,
    "slab": slab,
    "pipes": pipes,
    "packet rings": packet_rings,
    "vmalloc": vmalloc,
    "hugetlb": hugetlb,
}


def give_back(folder: str) -> None:
    for item in held:
        if isinstance(item, tuple):
            with open(item[0], "w") as pool:
                pool.write(str(item[1]))
    shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(kind: str, size: int, folder: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)  # never stopped half way
    os.makedirs(folder, exist_ok=True)
    try:
        try:
            if size:
                KINDS[kind](size, folder)
        except OSError as error:
            say(f"cannot: {error}")
            return
        say("ready")
        signal.sigtimedwait(STOP, 120)
    finally:
        give_back(folder)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
