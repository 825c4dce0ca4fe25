# SPDX-License-Identifier: Apache-2.0
"""Whether the guard's folder lies in memory (statfs(2)): a disk that is stuck holds up whoever
writes to it.
"""

import ctypes
import os
from typing import Final

_TMPFS_MAGIC: Final = 0x01021994  # include/uapi/linux/magic.h
_RAMFS_MAGIC: Final = 0x858458F6
_STATFS_BYTES: Final = 256


def stands_in_memory(folder: str) -> str:
    """Empty when ``folder`` is on a tmpfs, else what follows from it, in words."""
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.statfs(os.fsencode(folder), buffer) != 0:
        return f"{folder}: {os.strerror(ctypes.get_errno())}"
    kind = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    if kind in (_TMPFS_MAGIC, _RAMFS_MAGIC):
        return ""
    return f"{folder} is on no tmpfs: a stuck disk can hold the guard up"
