"""Writes frames of real sizes, ten a second: ``power_cut_writer.py ring|direct|buffered FILE``.

Says each sequence number on the console once its write has returned.  ``ring`` is the black box's
own writer.  ``direct`` (O_DIRECT alone) and ``buffered`` are the controls: each frame in a slot
of its own in a file that was written and flushed once, and never flushed again.
"""

import ctypes
import mmap
import os
import random
import sys
import time
from collections.abc import Callable

from seawall.blackbox.frame import Frame, pack
from seawall.blackbox.ring import RingFile

RING_BYTES = 1 << 20
SLOT_BYTES = 24 << 10
SLOTS = 160
EVERY_SECONDS = 0.1
MCL_CURRENT_FUTURE = 3
NOISE = os.urandom(1 << 20).hex()


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def frame(sequence: int, boot: str) -> bytes:
    """2 to 20 KB, as a crowded node's are."""
    size, at = random.randrange(3_000, 36_000), random.randrange(1 << 20)
    body = {"n": sequence, "noise": NOISE[at : at + size]}
    return pack(
        Frame(sequence, "tick", time.time(), time.monotonic(), boot, sequence, body)  # type: ignore[arg-type]
    )


def ring(path: str) -> tuple[int, Callable[[int, bytes], object]]:
    box = RingFile.open(path, RING_BYTES)
    return box.next_sequence, lambda _, packed: box.write(packed)


def control(path: str, flags: int) -> tuple[int, Callable[[int, bytes], object]]:
    with open(path, "xb") as file:
        file.write(bytes(SLOT_BYTES * SLOTS))
        file.flush()
        os.fsync(file.fileno())
    fd = os.open(path, os.O_RDWR | flags)
    aligned = mmap.mmap(-1, SLOT_BYTES)

    def write(sequence: int, packed: bytes) -> None:
        aligned[:] = packed.ljust(SLOT_BYTES, b"\0")
        os.pwrite(fd, aligned, sequence % SLOTS * SLOT_BYTES)

    return 1, write


def main(kind: str, path: str) -> None:
    ctypes.CDLL(None).mlockall(MCL_CURRENT_FUTURE)  # as the recorder is
    flags = os.O_DIRECT if kind == "direct" else 0
    sequence, write = ring(path) if kind == "ring" else control(path, flags)
    boot = boot_id()
    os.write(1, b"made %s\n" % kind.encode())
    while True:
        began = time.monotonic()
        write(sequence, frame(sequence, boot))
        os.write(1, b"ack %s %d\n" % (kind.encode(), sequence))
        sequence += 1
        time.sleep(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))


if __name__ == "__main__":
    main(*sys.argv[1:])
