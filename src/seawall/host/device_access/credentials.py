# SPDX-License-Identifier: Apache-2.0
"""As whom a container's process asks: faccessat(2) checks the *real* ids (fs/open.c).

Only those are changed, and only in the worker: its effective ids stay root's, so that it can go
on to the next.  Whoever has CAP_DAC_OVERRIDE is asked for as root: modes do not hold it.
"""

import os
from contextlib import suppress
from typing import Final, NamedTuple

_DAC_OVERRIDE: Final = 1 << 1  # uapi/linux/capability.h
_GROUPS_MOST: Final = 1024
_ROOT: Final = 0


class Credentials(NamedTuple):
    """Of /proc/PID/status, as this host numbers them."""

    uid: int
    gid: int
    groups: tuple[int, ...]


ROOT: Final = Credentials(_ROOT, _ROOT, ())


def owner_of(status: bytes) -> Credentials:
    """Root where it may pass by any mode, or where its lines cannot be understood."""
    lines = dict(line.partition(b":")[::2] for line in status.split(b"\n"))
    try:
        if int(lines[b"CapEff"], 16) & _DAC_OVERRIDE:
            return ROOT
        uid, gid = int(lines[b"Uid"].split()[0]), int(lines[b"Gid"].split()[0])
        groups = tuple(int(word) for word in lines.get(b"Groups", b"").split()[:_GROUPS_MOST])
    except (KeyError, ValueError, IndexError):
        return ROOT
    return Credentials(uid, gid, groups)


def become(owner: Credentials) -> None:
    """Without CAP_SETUID and CAP_SETGID the answer is that of whoever asks."""
    with suppress(OSError):
        os.setgroups(owner.groups)
        os.setresgid(owner.gid, -1, -1)
        os.setresuid(owner.uid, -1, -1)
