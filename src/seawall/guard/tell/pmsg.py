# SPDX-License-Identifier: Apache-2.0
"""A line to /dev/pmsg0 (Documentation/admin-guide/ramoops.rst, since 3.19): where firmware or
reserved memory keeps it, it is in /sys/fs/pstore/pmsg-* after a crash.
"""

from typing import Final

from seawall.guard.tell.plain import moment, plain

LINE_MOST: Final = 900


def record(words: str, unix_seconds: float, frame: int | None = None) -> bytes:
    """One line with its time, for pstore keeps none, and the frame of the black box."""
    at = f"{moment(unix_seconds)} seawall-guard"
    at += f" frame {frame}" if frame is not None else ""
    return f"{at}: {plain(words, LINE_MOST)}\n".encode()
