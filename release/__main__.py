# SPDX-License-Identifier: Apache-2.0
"""``python -m release [NAME...]``: what people download, into dist/; without a name all of it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from release import checksums, image, linux_packages, python_packages, pyz, selfcontained
from release.shipped_files import DIST, REPOSITORY

BUILDERS: dict[str, Callable[[Path], list[Path]]] = {
    "pyz": lambda folder: [pyz.build(folder)],
    "python": python_packages.build,
    "linux": linux_packages.build,
    "image": image.build,
    "selfcontained": selfcontained.build,
    "sums": checksums.build,
}


def main(names: list[str]) -> int:
    """Each file with its size and how long it took."""
    if unknown := [name for name in names if name not in BUILDERS]:
        sys.stderr.write(f"no such file: {unknown[0]}; there are: {', '.join(BUILDERS)}\n")
        return 2
    for name in names or BUILDERS:
        began = time.monotonic()
        try:
            made = BUILDERS[name](DIST)
        except image.NoSuchPackage as gone:
            print(f"{name}: left out: {gone}")
            continue
        for path in made:
            size, seconds = path.stat().st_size, time.monotonic() - began
            print(f"{path.relative_to(REPOSITORY)}  {size / 1e6:.2f} MB  {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
