# SPDX-License-Identifier: Apache-2.0
"""The buffers of one instance, CPU by CPU, read without waiting; what they lost is counted."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.page_trace.instances import Instance

_LOST: Final = re.compile(r"^(?:overrun|commit overrun|dropped events): (\d{1,19})$", re.MULTILINE)
_ROUNDS_MOST: Final = 1 << 16
PIECE_PAGES: Final = 1 << 9  # as happenings some 15 MB, seven times what they are as pages
_TIME_BYTES: Final = 8


class Raw(NamedTuple):
    """One page as it was read."""

    stream: int
    cpu: int
    page: bytes

    @property
    def began(self) -> int:
        """Nothing in it is older."""
        return int.from_bytes(self.page[:_TIME_BYTES], "little")


def in_time(pages: list[Raw], until: int) -> Iterator[tuple[list[Raw], int]]:
    """Pieces of bounded size in the order of time, each with the time up to which all is known.

    What is read of a CPU is in order, so nothing older than the next piece's first page is left.
    """
    ordered = sorted(pages, key=lambda raw: raw.began)
    for at in range(0, max(1, len(ordered)), PIECE_PAGES):
        rest = ordered[at + PIECE_PAGES : at + PIECE_PAGES + 1]
        yield ordered[at : at + PIECE_PAGES], min([until, *(raw.began - 1 for raw in rest)])


class Streams:
    """Open raw pages of every CPU of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._page_bytes = _page_bytes(instance)
        self._raw: dict[int, int] = {}
        for cpu in instance.cpus():
            with suppress(FileNotFoundError, PermissionError):  # a CPU that is gone
                self._raw[cpu] = instance.open_raw(cpu)

    def descriptors(self) -> list[int]:
        """The open descriptors of the raw buffers, one for each CPU, to be polled."""
        return list(self._raw.values())

    def drain(self) -> list[tuple[int, bytes]]:
        """(CPU, page) of all that is there now, in order for each CPU."""
        pages = []
        for cpu, fd in self._raw.items():
            for _ in range(_ROUNDS_MOST):
                try:
                    page = os.read(fd, self._page_bytes)
                except BlockingIOError:
                    break
                if not page:
                    break
                pages.append((cpu, page))
        return pages

    def lost_events(self) -> int:
        """Events that were overwritten or refused since the instance was made."""
        total = 0
        for cpu in self._raw:
            with suppress(OSError):
                told = self._instance.read(f"per_cpu/cpu{cpu}/stats")
                total += sum(map(int, _LOST.findall(told)))
        return total

    def close(self) -> None:
        """Let go: an instance with open files cannot be removed."""
        for fd in self._raw.values():
            os.close(fd)
        self._raw = {}


def _page_bytes(instance: Instance) -> int:
    """Of one sub-buffer: a page, unless somebody set another size (6.8)."""
    size = os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        size = max(size, int(instance.read("buffer_subbuf_size_kb")) << 10)
    return size
