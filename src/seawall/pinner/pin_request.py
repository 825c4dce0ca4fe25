# SPDX-License-Identifier: Apache-2.0
"""What the pinner is asked for: of the guard's settings, as one JSON text from its launcher."""

import json
import os
from typing import Any, Final, NamedTuple

FILE: Final = "pins"
"""In the guard's folder: what is pinned, for ``seawall guard pins``."""
LOCK: Final = "pins.lock"
UNDO: Final = "pins.undo"
FILES: Final = (FILE, LOCK, UNDO)


class PinRequest(NamedTuple):
    """Settings, and where things are."""

    pin: tuple[str, ...]
    pin_at_most_bytes: int
    pin_slices: tuple[str, ...]
    folder: str = "/run/seawall"
    config_path: str = ""
    config_argv: tuple[str, ...] = ()
    """A command that prints the settings as JSON."""
    memory: str = "/sys/fs/cgroup"
    """Mount point of the tree that counts memory."""
    version: int = 2

    def with_settings(self, settings: dict[str, Any]) -> "PinRequest":
        """The same with what ``settings`` (of the guard) say; KeyError, TypeError."""
        return self._replace(
            pin=tuple(map(str, settings["pin"])),
            pin_at_most_bytes=int(settings["pin_at_most_bytes"]),
            pin_slices=tuple(map(str, settings["pin_slices"])),
        )


def take(fd: int) -> PinRequest:
    """From the descriptor that the launcher left open, a JSON object; it is closed."""
    with os.fdopen(fd, "rb") as file:
        row = json.loads(file.read())
    for name in ("pin", "pin_slices", "config_argv"):
        row[name] = tuple(row[name])
    return PinRequest(**row)


def memory_total_bytes() -> int:
    """MemTotal of this machine in bytes, from /proc/meminfo."""
    with open("/proc/meminfo", "rb") as file:
        return int(file.readline().split()[1]) << 10
