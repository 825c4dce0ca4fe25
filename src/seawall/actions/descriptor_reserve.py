# SPDX-License-Identifier: Apache-2.0
"""Descriptors held for a moment so that nothing else takes them: room for what comes after."""

import errno
import os
from typing import Final

SPARE: Final = 32
"""Kept back for an order, should the limit of open files be reached."""
READING: Final = 8
"""Enough to read the lists of a cgroup, however few are left."""

FULL: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def keep(count: int, into: list[int] | None = None) -> list[int]:
    """Up to so many; fewer where the limit is reached."""
    kept: list[int] = [] if into is None else into
    try:
        if not kept and count:
            kept.append(os.open("/", os.O_PATH | os.O_CLOEXEC))
        while len(kept) < count:
            kept.append(os.dup(kept[0]))
    except OSError:
        return kept
    return kept


def let_go(kept: list[int]) -> None:
    """Close every descriptor that was kept, and empty the list.  It is gone whatever close(2) says:
    before an order nobody may fail for it.
    """
    for fd in kept:
        try:  # noqa: SIM105 - contextlib and what it imports are 0.5 MB
            os.close(fd)
        except OSError:
            pass
    kept.clear()
