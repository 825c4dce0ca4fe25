# SPDX-License-Identifier: Apache-2.0
"""Addresses of kernel stacks as names, by /proc/kallsyms.

The file is read when there are addresses that were not asked before: 10 MB, some 0.1 s.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final

SUFFIX: Final = re.compile(r"(_noprof|\.(constprop|isra|part|cold|llvm)(\.\d+)*)+$")
TEXT: Final = (b"t", b"T", b"w", b"W")
_HIDDEN: Final = b"0" * 16
_REST_EVERY: Final = 1 << 14
_CHUNK_BYTES: Final = 4 << 20
_ADDRESSES_MOST: Final = 1 << 16
FRAMES_MOST: Final = 32
_ALLOCATOR: Final = (
    "__alloc_pages", "__alloc_frozen_pages", "alloc_pages", "alloc_frozen_pages", "__folio_alloc",
    "folio_alloc", "get_free_pages", "__get_free_pages", "get_zeroed_page", "__get_free_page",
    "get_page_from_freelist", "trace_event_", "__traceiter_", "perf_trace_",
)  # fmt: skip


class Symbols:
    """Names for addresses; what has no name is told as a number."""

    def __init__(
        self, path: str = "/proc/kallsyms", rest: Callable[[], object] = lambda: None
    ) -> None:
        """``rest`` is called now and then while the file is read."""
        self._path = path
        self._rest = rest
        self._names: dict[int, str] = {}
        self.is_hidden = False
        """The kernel tells no addresses (kernel.kptr_restrict)."""

    def stacks(self, stacks: list[tuple[int, ...]]) -> list[list[str]]:
        """The names of each, innermost first, without the page allocator's own."""
        self.learn({address for stack in stacks for address in stack})
        return [self._named(stack) for stack in stacks]

    def _named(self, stack: tuple[int, ...]) -> list[str]:
        if self.is_hidden:
            return []
        names = [self._names.get(address, hex(address)) for address in stack]
        first = next(
            (at for at, name in enumerate(names) if not name.startswith(_ALLOCATOR)), len(names)
        )
        return names[first : first + FRAMES_MOST]

    def learn(self, addresses: Iterable[int]) -> None:
        """Look up those that are new; a file that cannot be read is taken for hidden."""
        wanted = sorted(set(addresses) - self._names.keys())[:_ADDRESSES_MOST]
        if not wanted or self.is_hidden:
            return
        try:
            with open(self._path, "rb", buffering=_CHUNK_BYTES) as file:
                found = self._scan(file, [b"%016x" % address for address in wanted])
        except OSError:
            found = []
        self.is_hidden = not found
        for address, (_, name) in zip(wanted, found, strict=False):
            if name:
                self._names[address] = SUFFIX.sub("", name.decode("utf-8", "replace"))

    def _scan(self, lines: Iterable[bytes], wanted: list[bytes]) -> list[tuple[bytes, bytes]]:
        """For each address the last function that begins below it; [] when all are hidden.

        Below, not at: a return address after a call that never returns lies behind its function.
        """
        nothing = (b"", b"")
        slots = [nothing] * (len(wanted) + 1)
        is_seen = False
        for number, line in enumerate(lines):
            address, kind, rest = line[:16], line[17:18], line[19:]
            if kind not in TEXT or len(rest) < 2:
                continue
            is_seen = is_seen or address != _HIDDEN
            slot = bisect_right(wanted, address)
            if address > slots[slot][0]:
                slots[slot] = (address, rest.split(None, 1)[0])
            if not number % _REST_EVERY:
                self._rest()
        # An address without a function right below it has the one of its neighbour.
        return list(accumulate(slots[:-1], max)) if is_seen else []


def module_symbols(module: str, path: str = "/proc/kallsyms") -> set[str]:
    """Names of one module's functions; of the kernel itself for an empty name."""
    tail = f"[{module}]".encode() if module else b""
    names = set()
    try:
        with open(path, "rb", buffering=_CHUNK_BYTES) as file:
            for line in file:
                _, _, rest = line.partition(b" ")
                name, _, where = rest[2:].rstrip().partition(b"\t")
                if rest[:1] in TEXT and where == tail:
                    names.add(name.decode("utf-8", "replace"))
    except OSError:
        return set()
    return names
