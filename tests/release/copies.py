"""Copies of what a release is made from, as another machine would have it."""

import shutil
import subprocess
import sys
from pathlib import Path

from release.shipped_files import REPOSITORY

PARTS = (
    "src", "packaging", "release", "docs", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml",
)  # fmt: skip
EPOCH = "1764300000"


def copy_of_the_tree(folder: Path, moment: float, mode: int) -> Path:
    """With other times and modes of files; without what was compiled."""
    import os

    for name in PARTS:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode | (path.stat().st_mode & 0o100))
            os.utime(path, (moment, moment))
    return folder


def make(folder: Path, *names: str, umask: str = "022", seed: str = "0") -> Path:
    """``python -m release NAMES`` of that tree; its dist/."""
    words = ["sh", "-c", f'umask {umask} && exec "$@"', "sh", sys.executable, "-m", "release"]
    environment = {
        "PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": EPOCH, "PYTHONHASHSEED": seed,
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "src",
    }  # fmt: skip
    subprocess.run([*words, *names], cwd=folder, env=environment, check=True, capture_output=True)
    return folder / "dist"
