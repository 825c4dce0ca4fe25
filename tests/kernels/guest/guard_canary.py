"""The canary: starts programs like a kubelet, and writes down when: ``guard_canary.py FILE``.

Twice in each slot of 200 ms it reads some pages of its own text (24 MiB mapped executable)
and starts a small static program from the disk that reads itself.  FILE is as large as it
will get from the beginning: pairs of doubles, begin and end of each start (CLOCK_MONOTONIC).
"""

import ctypes
import gc
import mmap
import os
import random
import struct
import sys
import time

PROGRAM, TEXT = "/opt/canary/program", "/opt/canary/text"
EVERY_SECONDS = 0.1
PAGES_EACH = 16
PAIR = struct.Struct("=dd")
PR_SET_NAME = 15


def main(path: str) -> None:
    gc.disable()
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"kubelet", 0, 0, 0)
    fd = os.open(path, os.O_RDWR)
    most = os.fstat(fd).st_size // PAIR.size
    with open(TEXT, "rb") as file:
        text = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    picked = random.Random(1)
    due = time.monotonic()
    for number in range(most):
        due = max(due + EVERY_SECONDS, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        began = time.monotonic()
        for _ in range(PAGES_EACH):
            text[picked.randrange(0, len(text), mmap.PAGESIZE)]
        child = os.posix_spawn(PROGRAM, ["cat", PROGRAM], {}, file_actions=quiet)
        os.waitpid(child, 0)
        os.pwrite(fd, PAIR.pack(began, time.monotonic()), number * PAIR.size)


if __name__ == "__main__":
    main(sys.argv[1])
