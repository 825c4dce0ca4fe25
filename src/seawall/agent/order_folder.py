# SPDX-License-Identifier: Apache-2.0
"""Files that the agent brings to the guard: whole or not at all, root's alone.

The folder is the guard's to make (``guard/order_files.py``); the agent may write there and nowhere
else.
"""

import json
import os
from typing import Any, Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class OrderFolder:
    """One folder; ``problem`` says why the last write failed, empty: it did not."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problem = ""

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        try:
            os.stat(f"{self.path}/{name}", follow_symlinks=False)
        except OSError:
            return False
        return True

    def put(self, name: str, document: dict[str, Any], *, is_kept: bool = False) -> bool:
        """In the place of what was there; ``is_kept``: it is on the disk when this returns."""
        data = json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            folder = os.open(self.path, _FOLDER)
            try:
                _write_whole(folder, name, data, is_kept=is_kept)
            finally:
                os.close(folder)
        except OSError as error:
            self.problem = f"{self.path}/{name}: {error.strerror}"
            return False
        self.problem = ""
        return True

    def remove(self, name: str) -> bool:
        """Whether it is gone now."""
        try:
            os.unlink(f"{self.path}/{name}")
        except FileNotFoundError:
            return True
        except OSError as error:
            self.problem = f"{self.path}/{name}: {error.strerror}"
            return False
        return True


def _write_whole(folder: int, name: str, data: bytes, *, is_kept: bool) -> None:
    part = f".{name}.new"
    try:  # noqa: SIM105 - contextlib and what it imports are 0.5 MB
        os.unlink(part, dir_fd=folder)  # of an agent that was killed
    except FileNotFoundError:
        pass
    fd = os.open(part, _NEW, 0o600, dir_fd=folder)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(fd, left) :]
        if is_kept:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    if is_kept:
        os.fsync(folder)
