# SPDX-License-Identifier: Apache-2.0
"""Which files of src/seawall go into what is downloaded, the same for all, and when they are of.

The cases beside the rules stay behind: they are tests, and half of all files.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[1]
SOURCE: Final = REPOSITORY / "src"
DIST: Final = REPOSITORY / "dist"


def shipped_files() -> dict[str, Path]:
    """By the name below the package's home (``seawall/words.py``), sorted."""
    names = sorted(
        path.relative_to(SOURCE) for path in (SOURCE / "seawall").rglob("*") if path.is_file()
    )
    return {
        str(name): SOURCE / name
        for name in names
        if not any(_is_left_out(part) for part in name.parts)
    }


def _is_left_out(part: str) -> bool:
    return part == "__pycache__" or part.endswith(".cases")


def epoch_seconds() -> int:
    """The time that every file made here bears: SOURCE_DATE_EPOCH, else that of the commit; a tree
    that is no clone has the first day a zip archive can name.
    """
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "log", "-1", "--format=%ct"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 315_619_200
