# SPDX-License-Identifier: Apache-2.0
"""Where a GPU driver's libraries lie, and loading them: dlopen(3) by name, then by folder.

The loader's own search comes first (LD_LIBRARY_PATH, /etc/ld.so.cache).  The folders after it are
those in which container platforms keep a driver that the host's loader does not know of.
"""

import ctypes
import glob
import os
from typing import Final, NamedTuple

_MACHINE: Final = os.uname().machine
FOLDERS: Final = (
    f"/usr/lib/{_MACHINE}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64",
    f"/run/nvidia/driver/usr/lib/{_MACHINE}-linux-gnu", "/run/nvidia/driver/usr/lib64",
    "/home/kubernetes/bin/nvidia/lib64", "/usr/lib/wsl/lib",
)  # fmt: skip
RUNTIME_FOLDERS: Final = ("/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64")
RUNTIME_NAMES: Final = (
    "libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so.10.2",
)  # fmt: skip
_FOLDERS_MOST: Final = 16
_LOADER: Final = "the loader's own search (LD_LIBRARY_PATH, /etc/ld.so.cache)"


class Loaded(NamedTuple):
    """One library, or where it was looked for."""

    name: str
    library: ctypes.CDLL | None
    path: str | None
    """The file itself, links resolved: its name ends with the driver's version."""
    attempts: tuple[tuple[str, str], ...]
    """(place, what the loader said) of each that had none."""


def load(names: tuple[str, ...], folders: tuple[str, ...] = FOLDERS) -> Loaded:
    """The first of ``names`` that can be loaded; the library stays loaded."""
    tried: list[tuple[str, str]] = []
    for name in names:
        try:
            return Loaded(name, ctypes.CDLL(name), _path_of(name), ())
        except OSError as error:
            tried.append((_LOADER if len(names) == 1 else name, str(error)))
    for folder in _there(folders):
        for name in names:
            path = f"{folder}/{name}"
            if not os.path.exists(path):
                continue
            try:
                return Loaded(name, ctypes.CDLL(path), os.path.realpath(path), ())
            except OSError as error:
                tried.append((folder, str(error)))
        if not any(place == folder for place, _ in tried):
            tried.append((folder, "not there"))
    return Loaded(names[0], None, None, tuple(tried))


def _there(folders: tuple[str, ...]) -> list[str]:
    """Each once, patterns filled in; newest version first."""
    found: list[str] = []
    for folder in folders:
        found += sorted(glob.glob(folder), reverse=True) if "*" in folder else [folder]
    return list(dict.fromkeys(found))[:_FOLDERS_MOST]


def _path_of(name: str) -> str | None:
    """Of a library that is loaded, as the kernel has it mapped: links are resolved in it."""
    stem = name.partition(".so")[0] + ".so"
    with open("/proc/self/maps", encoding="utf-8", errors="backslashreplace") as file:
        for line in file:
            path = line.rstrip("\n").partition("/")[2]
            if path.rpartition("/")[2].startswith(stem):
                return f"/{path}"
    return None
