# SPDX-License-Identifier: Apache-2.0
"""The code of a verb, once it was read, kept in memory for as long as the verb runs.

On a node that thrashes the kernel drops the pages of the interpreter between two uses: `why` took
3,500 major faults, most of them for code that it had read before, where its whole code is 6 MiB.
``mlockall(MCL_ONFAULT)`` (mlockall(2), since Linux 4.4) keeps a page from its first use on.
"""

import os
import resource
from contextlib import suppress
from typing import Final

_LEAST_BYTES: Final = 1 << 30
"""On a smaller machine these few MiB would be felt: there they once brought on the OOM killer."""
_CAP_IPC_LOCK: Final = 14  # include/uapi/linux/capability.h


def keep() -> None:
    """Of this process; a fork has to ask again.  Where it may not, all goes on as without."""
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >= _LEAST_BYTES and _is_unlimited():
        from seawall.own_process import lock  # noqa: PLC0415 - ctypes: files from the disk

        lock()


def _is_unlimited() -> bool:
    """Under a limit the locks of what is mapped later would make mapping itself fail."""
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    with suppress(OSError, ValueError), open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_IPC_LOCK & 1)
    return False
