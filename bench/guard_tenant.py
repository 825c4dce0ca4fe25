"""What a guard in peace costs a tenant on the same processor: p99 of a page fault and of a fork.

Turns without and with the guard, one after the other, on this very machine; how far the turns of
a kind lie apart is the noise.  ``python -m bench.guard_tenant [TURNS]``.
"""

import mmap
import os
import sys
import time
from collections.abc import Callable

from bench.guard_peace import guard

TURNS = 3
SECONDS = 5.0
FAULT_BYTES = 4 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def faults() -> list[int]:
    """Nanoseconds of each first touch of a page."""
    found = []
    with mmap.mmap(-1, FAULT_BYTES) as memory:
        for at in range(0, FAULT_BYTES, PAGE):
            began = time.perf_counter_ns()
            memory[at] = 1
            found.append(time.perf_counter_ns() - began)
    return found


def forks() -> list[int]:
    """Nanoseconds of one fork, until the child is reaped."""
    began = time.perf_counter_ns()
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return [time.perf_counter_ns() - began]


def p99_us(what: Callable[[], list[int]]) -> float:
    """Of some seconds."""
    found: list[int] = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found += what()
    found.sort()
    return found[int(len(found) * 0.99)] / 1000


def turn(name: str) -> None:
    """One line."""
    print(f"{name}: fault {p99_us(faults):.2f} us, fork {p99_us(forks):.0f} us", flush=True)


def main(argv: list[str]) -> int:
    """Print the turns."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for _ in range(int(argv[0]) if argv else TURNS):
        turn("without")
        with guard(20.0):
            turn("with")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
