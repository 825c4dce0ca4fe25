"""Processes whose /dev is their own: filled by a script, or a FUSE that never answers."""

import contextlib
import os
import sys
from collections.abc import Iterator

from tests.ready import ready

FUSE = """
import ctypes, os, sys
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"silent", b"/dev", b"fuse.silent", 0, options):
    sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
sys.stdin.read()
"""


def no_fuse() -> str | None:
    """Why no FUSE can be mounted, and what would help."""
    return None if os.path.exists("/dev/fuse") else "no /dev/fuse: modprobe fuse"


@contextlib.contextmanager
def with_own_dev(script: str) -> Iterator[int]:
    """A process whose /dev is its own, after ``script`` has filled it."""
    made = f"mount -t tmpfs tmpfs /dev && {script} && echo ready && exec sleep 1000"
    with ready(["unshare", "-m", "sh", "-ec", made]) as process:
        yield process.pid


@contextlib.contextmanager
def with_silent_dev() -> Iterator[int]:
    """A process whose /dev is served by nobody: whoever looks in waits."""
    with ready(["unshare", "-m", sys.executable, "-c", FUSE]) as silent:
        yield silent.pid
