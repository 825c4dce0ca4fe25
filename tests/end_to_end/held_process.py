"""A process held inside a page fault with its address space locked: ``held_process.py FILE``.

FILE lies on a filesystem that never answers reads.  One thread touches it through a mapping
and stays in the fault.  A second process reads the same page through /proc/PID/mem: that
takes mmap_lock for reading and waits with it held.  A second thread then maps something and
queues for writing, and from there on every reader of this address space waits: cmdline,
maps, smaps, what a dying node's monitoring hangs on.
"""

import ctypes
import mmap
import os
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)  # its calls release the interpreter's lock
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
HELD_BYTES = 256 << 20


def touch(address: int) -> None:
    LIBC.memcpy(ctypes.create_string_buffer(1), ctypes.c_void_p(address), 1)


def read_through_mem(pid: int, address: int) -> None:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    os.pread(fd, 1, address)


def main(path: str) -> None:
    # Large, so that it is among those that any tool looks at first.
    held = mmap.mmap(-1, HELD_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, HELD_BYTES, mmap.PAGESIZE):
        held[at] = 1
    fd = os.open(path, os.O_RDONLY)
    address = LIBC.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    owner = os.getpid()
    if not os.fork():
        time.sleep(0.5)
        read_through_mem(owner, address)
        os._exit(0)
    threading.Thread(target=touch, args=(address,)).start()
    os.write(1, b"held\n")
    time.sleep(1.0)
    LIBC.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)


if __name__ == "__main__":
    main(sys.argv[1])
