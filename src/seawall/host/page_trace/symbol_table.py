# SPDX-License-Identifier: Apache-2.0
"""All functions of the kernel, read once: for whoever must not read 10 MB while memory is short.

/proc/kallsyms in three arrays, sorted by a child so that what sorting takes is given back; read
again only when other modules are loaded (``refresh``), which is asked in peace.
"""

import os
import struct
from array import array
from bisect import bisect_right
from contextlib import suppress
from typing import Final

from seawall.host.page_trace.symbols import SUFFIX, TEXT, Symbols

_CHUNK_BYTES: Final = 1 << 20
_SYMBOLS_MOST: Final = 1 << 19
_HEAD: Final = struct.Struct("=qqq")
_BYTES_MOST: Final = 64 << 20


class SymbolTable(Symbols):
    """Names of the kernel's functions by address, held in memory and read again by ``refresh``."""

    def __init__(self, path: str = "/proc/kallsyms", modules: str = "/proc/modules") -> None:
        super().__init__(path)
        self._modules_path = modules
        self._modules = b""
        self._addresses: array[int] = array("Q")
        self._at: array[int] = array("I")
        self._text = b""
        self.refresh()

    def refresh(self) -> bool:
        """Read it again when other modules are loaded than were; whether it was."""
        modules = self._loaded()
        if self._addresses and modules == self._modules:
            return False
        self._modules = modules
        parts = _from_child(self._path)
        self._addresses, self._at = array("Q", parts[0]), array("I", parts[1])
        self._text = parts[2]
        self.is_hidden = not self._addresses or self._addresses[-1] == 0
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
            place = bisect_right(self._addresses, address - 1) - 1
            if place >= 0:
                at = self._at[place]
                name = self._text[at : self._text.index(b"\n", at)]
                self._names[address] = SUFFIX.sub("", name.decode("utf-8", "replace"))


def _from_child(path: str) -> list[bytes]:
    """The three arrays; empty ones where the file cannot be read."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if not child:
        try:
            os.close(ours)
            with open(theirs, "wb") as out:
                out.writelines(_sorted(path))
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb", buffering=_CHUNK_BYTES) as told:
        head = told.read(_HEAD.size)
        sizes = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0, 0)
        parts = [told.read(size) for size in sizes if 0 <= size <= _BYTES_MOST]
    os.waitpid(child, 0)
    is_whole = [len(part) for part in parts] == list(sizes)
    return parts if is_whole else [b"", b"", b""]


def _sorted(path: str) -> list[bytes]:
    """A head, addresses, where each name begins, and the names."""
    addresses, at, text = array("Q"), array("I"), bytearray()
    with open(path, "rb", buffering=_CHUNK_BYTES) as file:
        for line in file:
            if line[17:18] in TEXT and len(addresses) < _SYMBOLS_MOST:
                addresses.append(int(line[:16], 16))
                at.append(len(text))
                text += line[19:].split(None, 1)[0] + b"\n"
    order = sorted(range(len(addresses)), key=addresses.__getitem__)
    parts = [
        array("Q", map(addresses.__getitem__, order)).tobytes(),
        array("I", map(at.__getitem__, order)).tobytes(),
        bytes(text),
    ]
    return [_HEAD.pack(*map(len, parts)), *parts]
