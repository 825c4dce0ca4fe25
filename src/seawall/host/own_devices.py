# SPDX-License-Identifier: Apache-2.0
"""Device nodes as this very process may use them: no other process is looked at, no root needed.

faccessat(2) asks the device cgroup and the mode without touching the driver; open(2) is what a
program will do, and may wake a device.  Opening can wait for a driver that hangs: whoever calls
has a watchdog.  A node that nobody may write is only read: MIG's capabilities have mode 444.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from seawall.host.watchdog import Slot

_AT_FDCWD: Final = -100
# A FIFO in the place of a node opens at once in this way, and O_NOCTTY is for a terminal.
_FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_WRITABLE: Final = 0o222

Row = tuple[str, int, str | None, int | None, int | None, int | None, int | None]
"""path, errno of faccessat, kind, major, minor, mode, errno of open: as readings' ``Tried``."""


def try_each(paths: Iterable[str], *, opens: bool, slot: Slot | None = None) -> Iterator[Row]:
    """Ask for reading and writing; with ``opens`` open and close what is a device node."""
    library = ctypes.CDLL(None, use_errno=True)
    for path in paths:
        if slot is not None:
            slot.write(path)
        kind, major, minor, mode = _status(path)
        is_read_only = mode is not None and not mode & _WRITABLE
        wanted = os.R_OK if is_read_only else os.R_OK | os.W_OK
        code = library.faccessat(_AT_FDCWD, os.fsencode(path), wanted, 0)
        refused = ctypes.get_errno() if code else 0
        access = os.O_RDONLY if is_read_only else os.O_RDWR
        opened = _open(path, access) if opens and kind in ("c", "b") else None
        yield path, refused, kind, major, minor, mode, opened
    if slot is not None:
        slot.clear()


def _status(path: str) -> tuple[str | None, int | None, int | None, int | None]:
    """Through links: a program follows them too."""
    try:
        found = os.stat(path)
    except OSError:
        return None, None, None, None
    mode = stat.S_IMODE(found.st_mode)
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        return "other", None, None, mode
    kind = "c" if stat.S_ISCHR(found.st_mode) else "b"
    return kind, os.major(found.st_rdev), os.minor(found.st_rdev), mode


def _open(path: str, access: int) -> int:
    try:
        os.close(os.open(path, access | _FLAGS))
    except OSError as error:
        return error.errno or errno.EIO
    return 0
