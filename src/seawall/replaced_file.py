# SPDX-License-Identifier: Apache-2.0
"""Files under /run/seawall that are replaced whole: readers see the old one or the new one.

Without ``contextlib``: the guard's aide holds it too.
"""

import os
from typing import Final

FILE_MODE: Final = 0o640
FOLDER_MODE: Final = 0o755
_PART: Final = ".part"


def make_folder(folder: str) -> None:
    """With FOLDER_MODE, whatever the umask is; OSError when it cannot be made."""
    if not os.path.isdir(folder):
        os.makedirs(folder, FOLDER_MODE, exist_ok=True)  # never open to others, not for a moment
        os.chmod(folder, FOLDER_MODE)


def replace_file(path: str, data: bytes) -> None:
    """All or nothing, FILE_MODE; OSError leaves no part of it behind."""
    make_folder(os.path.dirname(path))
    replace_there(path, data, FILE_MODE)


def replace_there(path: str, data: bytes, mode: int) -> None:
    """The same in a folder that is somebody's, and is not made."""
    part = f"{path}.{os.getpid()}{_PART}"
    remove(part)  # of one that was killed, and had this pid
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with open(fd, "wb") as out:
            os.fchmod(fd, mode)
            out.write(data)
        os.rename(part, path)
    except OSError:
        remove(part)
        raise


def parts_of(path: str) -> list[str]:
    """What is beside ``path`` until it is renamed: a killed process leaves its own.  Plain files
    only.
    """
    folder, _, name = path.rpartition("/")
    try:
        with os.scandir(folder or "/") as entries:
            return sorted(
                entry.path for entry in entries
                if _is_part(entry.name, name) and entry.is_file(follow_symlinks=False)
            )  # fmt: skip
    except OSError:
        return []


def remove(path: str) -> None:
    """If it is there, and it can be removed."""
    try:
        os.unlink(path)
    except OSError:
        return


def _is_part(found: str, name: str) -> bool:
    pid = found.removeprefix(f"{name}.").removesuffix(_PART)
    return found == f"{name}.{pid}{_PART}" and pid.isascii() and pid.isdigit()
