# SPDX-License-Identifier: Apache-2.0
"""Where a bundle is written: whole or not at all, private, and over nothing but a plain file."""

import os
import stat
from contextlib import suppress
from typing import IO, Final

from seawall.problems import UsageProblem

FOLDER: Final = "/run/seawall"


def check_output(path: str | None, option: str = "-o") -> None:
    """UsageProblem, before anything is recorded, when ``path`` cannot be written; ``option``: the
    one by which it was given.
    """
    elsewhere = _elsewhere(option)
    if path is None:
        try:
            os.makedirs(FOLDER, mode=0o755, exist_ok=True)
        except OSError as error:
            raise UsageProblem(f"{FOLDER}: {error.strerror}; {elsewhere}") from error
    elif not path or path.endswith("/"):
        raise UsageProblem(f"{option} {path!r}: expected the name of a file; {elsewhere}")
    folder = FOLDER if path is None else os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise UsageProblem(f"{option} {path}: {folder} is not a folder; {elsewhere}")
    if path is not None and os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise UsageProblem(f"{option} {path}: is there and is no plain file; {elsewhere}")
    if not os.access(folder, os.W_OK | os.X_OK):
        name = f"{folder}:" if path is None else f"{option} {path}: {folder} is"
        raise UsageProblem(f"{name} not writable for this user; {elsewhere}")
    if path is not None and os.path.lexists(path) and _is_box(path):
        raise UsageProblem(f"{option} {path}: is a black box, and nothing writes over one")


def _elsewhere(option: str) -> str:
    return f"give {option} FILE, or {option} - for stdout"


def _is_box(path: str) -> bool:
    """What is written over is gone: never the evidence itself."""
    from seawall.blackbox.reader import is_box  # noqa: PLC0415 - only where a file is there

    with suppress(OSError):
        return is_box(path)
    return False


def write_whole(path: str, packed: IO[bytes], option: str = "-o") -> None:
    """All or nothing, readable by its owner only."""
    elsewhere = _elsewhere(option)
    part = f"{path}.part"
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError as error:
        raise UsageProblem(
            f"{part}: is there already; remove it or give another {option}"
        ) from error
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}; {elsewhere}") from error
    try:
        with open(fd, "wb") as out:
            os.fchmod(fd, 0o600)
            packed.seek(0)
            out.write(packed.read())
        os.rename(part, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(part)
        raise UsageProblem(f"{path}: {error.strerror}; {elsewhere}") from error
