# SPDX-License-Identifier: Apache-2.0
"""Control files of the kernel: read and written in one call each, errors with their path."""

import os
from typing import Final

_MOST_BYTES: Final = 1 << 20


def read_text(path: str) -> str:
    """The whole file; OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while data := os.read(fd, _MOST_BYTES):
            parts.append(data)
        return b"".join(parts).decode("utf-8", "surrogateescape")
    finally:
        os.close(fd)


def read_number(path: str) -> int | None:
    """A file of one number; None when it is not there or says ``max``."""
    try:
        text = read_text(path).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def read_table(path: str) -> dict[str, int]:
    """``KEY NUMBER`` lines; empty when the file is not there."""
    try:
        rows = [line.split() for line in read_text(path).splitlines()]
    except OSError:
        return {}
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def write_text(path: str, text: str) -> None:
    """One write, as control files want it: a buffered one would hide their errors."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
