# SPDX-License-Identifier: Apache-2.0
"""Which capabilities this process has: capabilities(7), CapEff in /proc/self/status."""

from typing import Final

KILL: Final = 5


def lacks(number: int, path: str = "/proc/self/status") -> bool:
    """For certain: False too where it cannot be read."""
    try:
        with open(path, "rb") as file:
            held = int(file.read().partition(b"\nCapEff:")[2].partition(b"\n")[0], 16)
    except (OSError, ValueError):
        return False
    return not held >> number & 1
