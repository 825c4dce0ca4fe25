# SPDX-License-Identifier: Apache-2.0
"""seawall.pyz: one file that any Python from 3.10 on runs, the same byte for byte from the same
sources.

Source and not bytecode: that of the four Pythons would be six times as large, and an archive with
the bytecode of one is slow on the three others.
"""

import time
import zipfile
from pathlib import Path
from typing import BinaryIO, Final

from release.shipped_files import DIST, REPOSITORY, epoch_seconds, shipped_files

NAME: Final = "seawall.pyz"
MOST_BYTES: Final = 2_800_000
_FIRST_LINE: Final = b"#!/usr/bin/python3 -IS\n"
_UNIX: Final = 3


def build(folder: Path = DIST) -> Path:
    """The file; ValueError: it is larger than it may be."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.unlink(missing_ok=True)
    files = {"__main__.py": REPOSITORY / "packaging/seawall", "LICENSE": REPOSITORY / "LICENSE"}
    with path.open("wb") as out:
        out.write(_FIRST_LINE)
        write_archive(out, files | shipped_files())
    return finished(path, MOST_BYTES)


def finished(path: Path, most_bytes: int) -> Path:
    """A program; ValueError: larger than it may be."""
    path.chmod(0o755)
    if path.stat().st_size > most_bytes:
        raise ValueError(f"{path.name}: {path.stat().st_size} bytes, over {most_bytes}")
    return path


def write_archive(out: BinaryIO, files: dict[str, Path]) -> None:
    """Behind what was written: sorted, of one time and one mode."""
    moment = time.gmtime(epoch_seconds())[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, source in sorted(files.items()):
            entry = zipfile.ZipInfo(name, moment)
            entry.create_system, entry.external_attr = _UNIX, 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
