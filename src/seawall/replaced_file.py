# SPDX-License-Identifier: Apache-2.0
"""Files under /run/seawall that are replaced whole: readers see the old one or the new one."""

import os
from contextlib import suppress
from typing import Final

FILE_MODE: Final = 0o640
FOLDER_MODE: Final = 0o755


def make_folder(folder: str) -> None:
    """With FOLDER_MODE, whatever the umask is; OSError when it cannot be made."""
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, FOLDER_MODE)


def replace_file(path: str, data: bytes) -> None:
    """All or nothing, FILE_MODE; OSError leaves no part of it behind."""
    make_folder(os.path.dirname(path))
    part = f"{path}.{os.getpid()}.part"
    with suppress(FileNotFoundError):  # of one that was killed, and had this pid
        os.unlink(part)
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    try:
        with open(fd, "wb") as out:
            os.fchmod(fd, FILE_MODE)
            out.write(data)
        os.rename(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise
