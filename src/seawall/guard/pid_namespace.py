# SPDX-License-Identifier: Apache-2.0
"""Whether this process sees the machine's processes, or only those of its own pid namespace.

In a container without the host's (``docker run`` without ``--pid=host``) lists of cgroup v1 leave
all others out, and v2 shows 0 for each (Documentation/admin-guide/cgroup-v2.rst, cgroup.procs):
nobody of them can be signalled, and a cgroup full of them looks empty.
"""

import os
from typing import Final

_FIRST: Final = 0xEFFFFFFC
"""PROC_PID_INIT_INO of include/linux/proc_ns.h."""
_CURE: Final = "hostPID: true, docker --pid=host"
CANNOT_KILL: Final = f"it sees only the processes of its own pid namespace ({_CURE})"
UNSEEN: Final = (
    "processes of other pid namespaces are not seen: neither names, nor their uncounted memory, "
    f"and no SIGTERM reaches them ({_CURE})"
)


def is_own() -> bool:
    """It is another one than the machine's first; False too where that cannot be seen."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino != _FIRST
    except OSError:
        return False
