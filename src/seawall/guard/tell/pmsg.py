# SPDX-License-Identifier: Apache-2.0
"""A line to /dev/pmsg0 (Documentation/admin-guide/ramoops.rst, since 3.19): where firmware or
reserved memory keeps it, it is in /sys/fs/pstore/pmsg-* after a crash.
"""

from typing import Final

from seawall.guard.tell.plain import moment, plain

LINE_MOST: Final = 900


def record(words: str, unix_seconds: float) -> bytes:
    """One line with its time: pstore keeps none."""
    return f"{moment(unix_seconds)} seawall-guard: {plain(words, LINE_MOST)}\n".encode()
