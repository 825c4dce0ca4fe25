# SPDX-License-Identifier: Apache-2.0
"""SHA256SUMS of all that lies in dist/, as sha256sum(1) reads it."""

import hashlib
from pathlib import Path
from typing import Final

NAME: Final = "SHA256SUMS"


def build(folder: Path) -> list[Path]:
    """The file; signatures are not in it."""
    names = sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file() and path.name != NAME and path.suffix not in (".asc", ".sig")
    )
    lines = [f"{_sum(folder / name)}  {name}\n" for name in names]
    (folder / NAME).write_text("".join(lines))
    return [folder / NAME]


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
