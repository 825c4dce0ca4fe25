# SPDX-License-Identifier: Apache-2.0
"""Whether a path still leads to what was opened there: somebody may have removed or replaced it."""

import os


def is_at(path: str | bytes, fd: int) -> bool:
    """OSError: that cannot be seen."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False
