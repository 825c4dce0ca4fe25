"""Makes a node thrash: ``thrash.py hold ROOM_MIB`` fills, ``thrash.py walk FILE`` runs text.

hold: takes anonymous memory until MemAvailable is down to ROOM_MIB, then sleeps on it.
walk: maps FILE executable, as the loader maps a program, and touches its pages in random
order for ever.  Together, with more text than room and no swap, every fault evicts a page
that is needed again soon: the node is short of program text, and nothing is OOM-killed.
"""

import mmap
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
        area = mmap.mmap(-1, min(STEP_BYTES, -(-left // mmap.PAGESIZE) * mmap.PAGESIZE))
        for at in range(0, len(area), mmap.PAGESIZE):
            area[at] = 1
        held.append(area)
    print(f"holding {sum(map(len, held)) >> 20} MiB", flush=True)
    time.sleep(3600)


def walk(path: str) -> None:
    with open(path, "rb") as file:
        text = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    pages = list(range(0, len(text), mmap.PAGESIZE))
    while True:
        random.shuffle(pages)
        for at in pages:
            text[at]


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(int(sys.argv[2]) << 20)
    walk(sys.argv[2])
