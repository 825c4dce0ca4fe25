# SPDX-License-Identifier: Apache-2.0
"""Which driver libraries a container has of its own: looked at, never loaded and never read.

Found below its root (openat2 RESOLVE_IN_ROOT), where platforms and images put them; the loader's
configuration in it is not read.  A version is what the name of the file tells.
"""

import os
import re
import stat
from typing import Final

from seawall.host.gpu_libraries import FOLDERS
from seawall.host.host import JSON
from seawall.host.rooted import Rooted

COMPATIBILITY: Final = "/usr/local/cuda/compat"
"""Where cuda-compat puts a libcuda that programs are told of by LD_LIBRARY_PATH."""
_NAMES: Final = {"nvml": "libnvidia-ml.so.1", "cuda": "libcuda.so.1"}
_FILE: Final = re.compile(r"lib[a-z-]{1,24}\.so(?:\.[0-9]{1,8}){1,4}\Z")


def own_libraries(root: str) -> JSON:
    """{"nvml": [[path, file, [device, inode]], ...], "cuda": ...}: each file once.

    ``file``: its own name once links are followed, or null where that is no library's.
    """
    rooted = Rooted(root)
    try:
        return {
            key: _files(rooted, name, (*FOLDERS, COMPATIBILITY)) for key, name in _NAMES.items()
        }
    finally:
        os.close(rooted.fd)


def _files(rooted: Rooted, name: str, folders: tuple[str, ...]) -> list[JSON]:
    found: dict[tuple[int, int], list[JSON]] = {}
    for folder in folders:
        path = f"{folder}/{name}"
        try:
            fd = rooted.open(path, os.O_PATH)
        except OSError:
            continue
        try:
            status = os.fstat(fd)
            target = os.readlink(f"/proc/self/fd/{fd}").rpartition("/")[2]
        finally:
            os.close(fd)
        if stat.S_ISREG(status.st_mode):
            number = (status.st_dev, status.st_ino)
            file = target if _FILE.match(target) else None
            found.setdefault(number, [path, file, list(number)])
    return list(found.values())
