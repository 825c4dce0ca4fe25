# SPDX-License-Identifier: Apache-2.0
"""All functions of the kernel, read once: for whoever must not read 10 MB while memory is short.

/proc/kallsyms as sorted addresses, four bytes each where the kernel's text lies within 4 GiB, and
their names compressed in blocks: 1.2 MB for 122,000 functions, where plain names and offsets take
4.6.  A child sorts and compresses, so that what that takes is given back; the file is read again
only when other modules are loaded (``refresh``), which is asked in peace.
"""

import struct
import zlib
from array import array
from bisect import bisect_right
from contextlib import suppress
from typing import Final

from seawall.host.page_trace.symbols import SUFFIX, TEXT, Symbols
from seawall.proc.forked_child import ForkedChild

_CHUNK_BYTES: Final = 1 << 20
_SYMBOLS_MOST: Final = 1 << 19
_BLOCK_NAMES: Final = 256
"""To be unpacked for one name: 6 KB, 0.1 ms; names that are known are not looked up again."""
_LEVEL: Final = 3
_HEAD: Final = struct.Struct("=Qcqq")
"""First address, type of the offsets, then how long offsets and ends of the blocks are in bytes."""
_BYTES_MOST: Final = 64 << 20


class SymbolTable(Symbols):
    """Names of the kernel's functions by address, held in memory and read again by ``refresh``."""

    def __init__(self, path: str = "/proc/kallsyms", modules: str = "/proc/modules") -> None:
        super().__init__(path)
        self._modules_path = modules
        self._modules = b""
        self._base = 0
        self._offsets: array[int] = array("I")
        """Of each function from the first one, in ascending order."""
        self._ends: array[int] = array("I")
        """Where each block of names ends."""
        self._blocks = b""
        self.refresh()

    def refresh(self) -> bool:
        """Read it again when other modules are loaded than were; whether it was."""
        modules = self._loaded()
        if self._offsets and modules == self._modules:
            return False
        self._modules = modules
        self._base, self._offsets, self._ends, self._blocks = _from_child(self._path)
        self.is_hidden = not self._offsets or self._base + self._offsets[-1] == 0
        self._names.clear()
        return True

    def _loaded(self) -> bytes:
        """The names of the modules."""
        with suppress(OSError), open(self._modules_path, "rb") as file:
            return b" ".join(line.split(None, 1)[0] for line in file)
        return b""

    def learn(self, addresses: "set[int]") -> None:  # type: ignore[override]
        """Look up those that are new."""
        if self.is_hidden:
            return
        for address in addresses - self._names.keys():
            # Below, not at: a return address may lie right behind its function.
            place = bisect_right(self._offsets, address - 1 - self._base) - 1
            if place >= 0:
                name = self._name(place).decode("utf-8", "replace")
                self._names[address] = SUFFIX.sub("", name)

    def _name(self, place: int) -> bytes:
        number, line = divmod(place, _BLOCK_NAMES)
        start = self._ends[number - 1] if number else 0
        return zlib.decompress(self._blocks[start : self._ends[number]]).split(b"\n")[line]


def _from_child(path: str) -> "tuple[int, array[int], array[int], bytes]":
    """First address, offsets, ends, blocks; nothing where the file cannot be read."""
    child = ForkedChild(lambda to: _write(to, path))
    with open(child.fd, "rb", buffering=_CHUNK_BYTES, closefd=False) as told:
        head = told.read(_HEAD.size)
        is_headed = len(head) == _HEAD.size
        base, kind, *sizes = _HEAD.unpack(head) if is_headed else (0, b"I", 0, 0)
        parts = [told.read(size) for size in sizes if 0 <= size <= _BYTES_MOST]
        blocks = told.read(_BYTES_MOST)
    child.wait()
    is_whole = [len(part) for part in parts] == list(sizes)
    if is_whole:
        offsets, ends = array(kind.decode(), parts[0]), array("I", parts[1])
        if len(blocks) == (ends[-1] if ends else 0):
            return base, offsets, ends, blocks
    return 0, array("I"), array("I"), b""


def _write(to: int, path: str) -> None:
    with open(to, "wb") as out:
        out.writelines(_packed(path))


def _packed(path: str) -> list[bytes]:
    """Functions of a kallsyms file, packed as ``_from_child`` reads them."""
    functions: list[tuple[int, bytes]] = []
    with open(path, "rb", buffering=_CHUNK_BYTES) as file:
        for line in file:
            if line[17:18] in TEXT and len(functions) < _SYMBOLS_MOST:
                functions.append((int(line[:16], 16), line[19:].split(None, 1)[0]))
    functions.sort(key=lambda function: function[0])
    base = functions[0][0] if functions else 0
    kind = "Q" if functions and functions[-1][0] - base >= 1 << 32 else "I"
    offsets = array(kind, (address - base for address, _ in functions))
    ends, blocks, size = array("I"), [], 0
    for first in range(0, len(functions), _BLOCK_NAMES):
        names = (name for _, name in functions[first : first + _BLOCK_NAMES])
        blocks.append(zlib.compress(b"\n".join(names), _LEVEL))
        size += len(blocks[-1])
        ends.append(size)
    parts = [offsets.tobytes(), ends.tobytes()]
    return [_HEAD.pack(base, kind.encode(), *map(len, parts)), *parts, *blocks]
