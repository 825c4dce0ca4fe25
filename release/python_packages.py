# SPDX-License-Identifier: Apache-2.0
"""Wheel and sdist, by hatchling as ``pip`` would call it; the same byte for byte each time."""

import os
import subprocess
import sys
from pathlib import Path

from release.shipped_files import REPOSITORY, epoch_seconds


def build(folder: Path) -> list[Path]:
    """Both files, checked by twine."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("seawall-*.whl"), *folder.glob("seawall-*.tar.gz")):
        old.unlink()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_seconds())}
    # It takes modes as they are: a umask must not be in what people download.
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    subprocess.run(
        [*words, "-d", str(folder)], cwd=REPOSITORY, env=environment, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    made = [*folder.glob("seawall-*.whl"), *folder.glob("seawall-*.tar.gz")]
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, made)],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return made
