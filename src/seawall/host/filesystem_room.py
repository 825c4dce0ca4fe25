# SPDX-License-Identifier: Apache-2.0
"""How full a file system is; asked in a child of its own, for a dead server holds it for good.

A child that no signal ends stays until the server is back.  It holds a lock in /run meanwhile, so
that the looks after it do not leave one more behind every five minutes.
"""

import os
import time
from contextlib import suppress
from errno import EBUSY
from typing import Final
from zlib import crc32

from seawall.host.host import JSON
from seawall.proc.file_lock import try_lock
from seawall.replaced_file import make_folder

LOCKS: Final = "/run/seawall"
_WAIT_SECONDS: Final = 2.0
"""For a look of somebody else's that is just at work."""


def filesystem_room(path: str, locks: str = LOCKS) -> JSON:
    """{"blocks", "blocks_free", "files", "files_free"}: free for whoever is not root.

    OSError; EBUSY while an earlier look has not come back.
    """
    lock = _lock(f"{locks}/mount-{crc32(path.encode()):08x}.lock")
    try:
        found = os.statvfs(path)
    finally:
        if lock >= 0:
            os.close(lock)
    return {
        "blocks": found.f_blocks, "blocks_free": found.f_bavail,
        "files": found.f_files, "files_free": found.f_favail,
    }  # fmt: skip


def _lock(path: str) -> int:
    """Held; -1 where none can be made, as by an ordinary user."""
    fd = -1
    with suppress(OSError):
        make_folder(os.path.dirname(path))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + _WAIT_SECONDS
    while fd >= 0 and not try_lock(fd):
        if time.monotonic() > until:
            raise OSError(EBUSY, "an earlier look has not come back", path)
        time.sleep(0.05)
    return fd
