"""Makes a node thrash: ``thrash.py hold ROOM_MIB`` fills, ``thrash.py walk FILE COUNT`` runs.

hold: takes anonymous memory until MemAvailable is down to ROOM_MIB, then sleeps on it.
walk: COUNT processes map FILE executable, as the loader maps a program, and touch its pages
in random order for ever.  Together, with more text than room and no swap, every fault evicts
a page that is needed again soon: the node is short of program text and nothing is OOM-killed.

Pages are read one by one (MADV_RANDOM) and the walkers are nice: a fault costs an emulated
processor some twenty times what it costs a real one, and what everybody waits for must be
the disk and the memory, as on hardware, not the emulator.
"""

import mmap
import os
import random
import sys
import time

STEP_BYTES = 4 << 20


def available_bytes() -> int:
    with open("/proc/meminfo") as file:
        rows = dict(line.split(":") for line in file)
    return int(rows["MemAvailable"].split()[0]) << 10


def hold(room_bytes: int) -> None:
    held = []
    while (left := available_bytes() - room_bytes) > 0:
        size = min(STEP_BYTES, -(-left // mmap.PAGESIZE) * mmap.PAGESIZE)
        area = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(area), mmap.PAGESIZE):
            area[at] = 1
        held.append(area)
    os.write(1, b"holding %d MiB\n" % (sum(map(len, held)) >> 20))
    time.sleep(3600)


def walk(path: str, count: int) -> None:
    with open(path, "rb") as file:
        text = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    text.madvise(mmap.MADV_RANDOM)
    for _ in range(count - 1):
        if not os.fork():
            break
    os.nice(19)
    random.seed(os.getpid())
    while True:
        text[random.randrange(0, len(text), mmap.PAGESIZE)]


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(int(sys.argv[2]) << 20)
    walk(sys.argv[2], int(sys.argv[3]))
