"""Processes of known sizes and oom_score_adj: ``planted_sizes.py MIB:ADJ...``.

Prints ``PID MIB ADJ`` for each when all of them hold their memory, and waits to be killed.
One whose adjustment is refused (below zero, without root) is left at 0 and says so.
"""

import mmap
import os
import signal
import sys


def hold(mib: int, adj: int, ready: int) -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(adj))
    except PermissionError:
        adj = 0
    area = mmap.mmap(-1, max(mib, 1) << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, mib << 20, mmap.PAGESIZE):
        area[at] = 1
    os.write(ready, f"{os.getpid()} {mib} {adj}\n".encode())
    signal.pause()


def main(words: list[str]) -> None:
    inner, ready = os.pipe()
    for word in words:
        mib, adj = map(int, word.split(":"))
        if not os.fork():
            hold(mib, adj, ready)
    os.close(ready)
    rows = b""
    while rows.count(b"\n") < len(words):
        rows += os.read(inner, 4096)
    os.write(1, rows + b"ready\n")
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
