# SPDX-License-Identifier: Apache-2.0
"""Whether a cgroup of version 2 can take two processes more without harm: admin-guide/cgroup-v2.

Whoever is in it is charged to it, memory too: where its limit is near, an OOM kill would be ours to
answer for, and with memory.oom.group (the kubelet's default since 1.28) it takes everybody.
Whoever is throttled there may be stopped while it holds a lock of the driver's.  Version 1 has a
hierarchy of devices alone, in which nothing else is counted.
"""

import time
from typing import Final

from seawall.host.device_access.device_cgroup import Hierarchy, JoinError

ROOM_LEAST_BYTES: Final = 256 << 20
"""Generous: libcuda takes some tens of MiB of the host's memory before it has a context."""
_PERIODS_SECONDS: Final = 0.25  # two of the usual 100 ms
_PERIODS_LEAST: Final = 2
_BYTES_MOST: Final = 16 << 10


def refuse_without_room(hierarchy: Hierarchy, cgroups: bytes) -> None:
    """JoinError that names the file which tells it, of the cgroup or of one above it."""
    if hierarchy.version != 2:
        return
    folders = hierarchy.upwards(hierarchy.folder_of(hierarchy.path_in(cgroups)))
    for folder in folders:
        _refuse_full(folder)
    _refuse_throttled([folder for folder in folders if _limit(f"{folder}/cpu.max") is not None])


def _refuse_full(folder: str) -> None:
    for name in ("memory.max", "memory.high"):
        most = _limit(f"{folder}/{name}")
        if most is None:
            continue
        cache = _rows(f"{folder}/memory.stat")
        used = _limit(f"{folder}/memory.current") or 0
        used -= cache.get(b"active_file", 0) + cache.get(b"inactive_file", 0)
        if most - used < ROOM_LEAST_BYTES:
            left = max(0, most - used) >> 20
            raise JoinError(
                "failed",
                f"{left} MiB are left below its limit ({folder}/{name}), and whoever joins it "
                f"is charged to it: asked only with {ROOM_LEAST_BYTES >> 20}",
            )


def _refuse_throttled(folders: list[str]) -> None:
    before = [_rows(f"{folder}/cpu.stat") for folder in folders]
    if not before:
        return
    time.sleep(_PERIODS_SECONDS)
    for folder, then in zip(folders, before, strict=True):
        now = _rows(f"{folder}/cpu.stat")
        passed, stopped = (
            now.get(name, 0) - then.get(name, 0) for name in (b"nr_periods", b"nr_throttled")
        )
        if passed >= _PERIODS_LEAST and stopped >= passed:
            words = f"its CPU quota is used up in every period ({folder}/cpu.stat)"
            raise JoinError("failed", f"{words}: whoever joins it stands still")


def _limit(path: str) -> int | None:
    """The first number of a file; None for ``max``, and without the controller."""
    try:
        with open(path, "rb") as file:
            word = file.read(_BYTES_MOST).split(None, 1)[0]
    except (FileNotFoundError, IndexError):
        return None
    return int(word) if word.isdigit() else None


def _rows(path: str) -> dict[bytes, int]:
    """Of a flat keyed file; empty without the controller."""
    try:
        with open(path, "rb") as file:
            words = [line.split() for line in file.read(_BYTES_MOST).splitlines()]
    except FileNotFoundError:
        return {}
    return {row[0]: int(row[1]) for row in words if len(row) == 2 and row[1].isdigit()}
