"""A filesystem that is mounted and then never answers again: a disk that hangs.

Served by a child through /dev/fuse (include/uapi/linux/fuse.h).  A request that the server has
read waits without an end and cannot be killed: fs/fuse/dev.c, ``request_wait_answer``.
"""

import contextlib
import ctypes
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

_INIT = 26
_READ_MOST = 1 << 17
_MNT_DETACH = 2


def missing() -> str | None:
    """What is not here to make one."""
    if os.geteuid():
        return "needs root: sudo"
    if not os.path.exists("/dev/fuse"):
        return "no /dev/fuse here: modprobe fuse"
    return None


@contextlib.contextmanager
def hung_disk(point: Path) -> Iterator[int]:
    """At ``point``.  When the server, whose pid it gives, is killed, all that waits fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    data = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"hung", os.fsencode(point), b"fuse", 0, data):
        raise OSError(ctypes.get_errno(), "mount of FUSE")
    server = os.fork()
    if not server:
        _serve(fd)
    os.close(fd)
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(server, 0)
        libc.umount2(os.fsencode(point), _MNT_DETACH)


def _serve(fd: int) -> None:
    try:
        while True:
            request = os.read(fd, _READ_MOST)
            _, code, unique = struct.unpack_from("<IIQ", request)
            if code == _INIT:
                (ahead,) = struct.unpack_from("<I", request, 48)
                body = struct.pack("<IIIIHHIIHHI", 7, 31, ahead, 0, 12, 9, 65536, 1, 0, 0, 0)
                body += bytes(28)
                os.write(fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
    finally:
        os._exit(0)
