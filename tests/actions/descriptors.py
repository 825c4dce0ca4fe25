"""What is made to live as long as a process gives no descriptors back: here that is done for it.

Else a whole run has more than the 1,024 that select(2) takes and many a shell allows.
"""

import contextlib
import gc
import os
import resource
from collections.abc import Iterator

import pytest

_RAW = ("/sys/fs/cgroup", "/proc/", "/tmp/", "anon_inode:inotify", "anon_inode:[pidfd]")
"""Kept as plain numbers, which nothing else closes."""


def opened() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


@pytest.fixture(autouse=True)
def no_descriptors_left() -> Iterator[None]:
    before = opened()
    yield
    gc.collect()
    for number, path in opened().items():
        # The root itself: room that is kept for what comes.
        if before.get(number) != path and (path == "/" or path.startswith(_RAW)):
            os.close(number)


@contextlib.contextmanager
def few_free(count: int) -> Iterator[None]:
    """Just so many descriptors can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken = [os.open("/dev/null", os.O_RDONLY)]
    try:
        while taken[-1] < highest:
            taken.append(os.dup(taken[0]))
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + count, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)
