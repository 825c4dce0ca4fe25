# SPDX-License-Identifier: Apache-2.0
"""Reversible changes, written down before they are made: /run/seawall/guard.undo.

A file of fixed size that is mapped into memory, so that a line costs no system call, no page and
no disk when the node has none to spare, and outlives a guard that is killed.  One line each:
``open`` while the change is in force, then ``done`` and a JSON object; what follows the lines is
NUL bytes.  Lines of another boot are not ours to undo.  Where somebody has removed the file, it is
made anew with what is in force: a map of a file that nobody finds would undo nothing.
"""

import json
import mmap
import os
from typing import Final, NamedTuple

SIZE: Final = 65_536
FOLDER_MODE: Final = 0o750
REMOVED: Final = "was removed under it: it is made anew"
NOT_ANEW: Final = "was removed under it, and cannot be made anew: nobody is frozen or clamped"
LINE_MOST: Final = 25_600
"""A cgroup path of 4,095 bytes, for each of which JSON takes six: control characters, or no UTF-8.
Two of them fit, and whoever finds no room is not frozen or clamped: a kill needs no line."""
NOTE_MOST: Final = 1_024
_OPEN: Final = b"open "
_DONE: Final = b"done "


class Change(NamedTuple):
    """One file of one cgroup that has another value for a while."""

    kind: str
    """``freeze1`` (freezer.state), ``freeze2`` (cgroup.freeze), ``clamp`` (memory.max), ``low``
    (memory.low); ``signal``: of no file, ``new`` is its name."""
    folder: str
    """Absolute."""
    inode: int
    old: str
    new: str
    """As it reads back."""
    decision: str


_LEAST: Final = 1 + len(Change._fields)
"""The boot and these; what a version adds stands behind them."""


class Journal:
    """The file, open.  ``begin`` before a change, ``end`` after it was undone."""

    __slots__ = ("_at", "_boot", "_last", "_lines", "_map", "_said", "_stat", "news", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self._at = 0
        self._boot = ""
        self._last = 0
        self._lines: dict[int, tuple[int, Change]] = {}
        """Those in force, with the place of their line, which packing moves; their number stays."""
        self._stat: os.stat_result | None = None
        """Of the file: as long as it is mapped no other one gets its inode."""
        self.news = self._said = ""
        """That it was removed; for whoever says it, and empties it."""

    def open(self) -> None:
        """Make or take up the file; what it says of this boot is in ``changes``.  OSError."""
        if self._map:
            return
        self._boot = _boot_id()
        self._map, self._stat = _mapped(self.path)
        self._load(self._map)

    def keep(self) -> bool:
        """See to it that the file is at its path; False: there is none that anybody would find."""
        if self._map is None:
            return False
        if self._is_there():
            self._said = ""
            return True
        try:
            os.makedirs(os.path.dirname(self.path), FOLDER_MODE, exist_ok=True)
            made, self._stat = _mapped(self.path)
        except OSError as problem:
            self._say(f"{NOT_ANEW}: {problem.strerror}")
            return False
        self._say(REMOVED)
        self._map.close()
        self._map = made
        ours = [(number, change) for number, (_, change) in self._lines.items()]
        self._load(made)
        for number, change in ours:
            self._write_again(made, number, change)
        return True

    @property
    def is_open(self) -> bool:
        """Whether a change can be written down."""
        return self._map is not None

    def changes(self) -> list[tuple[int, Change]]:
        """In force, oldest first, with the number that ``end`` takes."""
        return [(number, change) for number, (_, change) in sorted(self._lines.items())]

    def begin(self, change: Change) -> int | None:
        """Write it down; its number, or None when there is no room or no file."""
        return self._begin(change) if self.keep() else None

    def note(self, change: Change) -> int | None:
        """As ``begin``, of what happens anyway: no file is made for it, and a path that is absurdly
        long takes nobody's room.
        """
        is_short = len(change.folder) <= NOTE_MOST
        return self._begin(change) if is_short and self._is_there() else None

    def end(self, number: int) -> None:
        """It is undone, or not ours any more."""
        found = self._lines.pop(number, None)
        if self._map is not None and found is not None:
            at = found[0]
            self._map[at : at + len(_DONE)] = _DONE

    def close(self) -> None:
        """Let go of the file; what is in force stays written down in it."""
        if self._map:
            self._map.close()
            self._map = None
        self._lines.clear()
        self._at = 0

    def _begin(self, change: Change) -> int | None:
        at = self._put(self._map, change) if self._map is not None else None
        return None if at is None else self._note(at, change)

    def _is_there(self) -> bool:
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        # Whoever touches a page behind the end of a file that was cut gets SIGBUS.
        is_whole = found.st_size >= SIZE
        return self._stat is not None and is_whole and os.path.samestat(found, self._stat)

    def _say(self, words: str) -> None:
        """Once, however often it is tried."""
        if words != self._said:
            self.news, self._said = f"{self.path} {words}", words

    def _put(self, held: mmap.mmap, change: Change) -> int | None:
        """Its line; where that is, or None when there is no room."""
        line = json.dumps([self._boot, *change]).encode("ascii") + b"\n"
        if not self._lines and self._at > SIZE // 2:
            self._at = 0
            held[:] = bytes(SIZE)
        if self._at + len(line) + len(_OPEN) > SIZE:
            self._pack(held)
        at, end = self._at, self._at + len(line) + len(_OPEN)
        if end > SIZE or len(line) > LINE_MOST:
            return None
        # The word that makes it count comes last.
        held[at + len(_OPEN) : end] = line
        held[at : at + len(_OPEN)] = _OPEN
        self._at = end
        return at

    def _write_again(self, held: mmap.mmap, number: int, change: Change) -> None:
        """In another file, under its number; of one that was copied the line is there."""
        for same, (at, there) in list(self._lines.items()):
            if there == change:
                del self._lines[same]
                self._lines[number] = at, change
                return
        at_ = self._put(held, change)
        if at_ is not None:
            self._lines[number] = at_, change

    def _load(self, held: mmap.mmap) -> None:
        self._lines.clear()
        self._at = 0
        text = held[:].rstrip(b"\0")
        while self._at < len(text):
            end = text.find(b"\n", self._at)
            if end < 0:  # torn: what comes next begins a line
                end = min(len(text), SIZE - 1)
                held[end : end + 1] = b"\n"
            change = _change(text[self._at : end], self._boot)
            if change:
                self._note(self._at, change)
            self._at = end + 1

    def _pack(self, held: mmap.mmap) -> None:
        """Only what is in force, from the beginning."""
        text = b""
        for number, change in self.changes():
            self._lines[number] = len(text), change
            text += _OPEN + json.dumps([self._boot, *change]).encode("ascii") + b"\n"
        held[: len(text)] = text
        held[len(text) :] = bytes(SIZE - len(text))
        self._at = len(text)

    def _note(self, at: int, change: Change) -> int:
        self._last += 1
        self._lines[self._last] = at, change
        return self._last


def _mapped(path: str) -> tuple[mmap.mmap, os.stat_result]:
    """The file, made where there is none.  OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # Whole at once: a page that is missing later would have to be found then.
        os.posix_fallocate(fd, 0, SIZE)
        return mmap.mmap(fd, SIZE), os.fstat(fd)
    finally:
        os.close(fd)


def in_force(path: str) -> list[Change]:
    """What another process has changed by its journal, as it says now; only read.  OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return []
    try:
        lines = os.read(fd, SIZE).split(b"\n")
    finally:
        os.close(fd)
    boot = _boot_id()
    return [change for line in lines if (change := _change(line, boot))]


def strike_out(path: str, change: Change) -> None:
    """Ends what another process wrote down, which lives no more.  OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        at, boot = 0, _boot_id()
        for line in os.read(fd, SIZE).split(b"\n"):
            if _change(line, boot) == change:
                os.pwrite(fd, _DONE, at)
            at += len(line) + 1
    finally:
        os.close(fd)


def _change(line: bytes, boot: str) -> Change | None:
    """None for what is done, torn, of another boot, or not from us."""
    if not line.startswith(_OPEN):
        return None
    try:
        row = json.loads(line.removeprefix(_OPEN).replace(b"\0", b""))
    except ValueError:
        return None
    # A later version, in whose place this one is, may have written more behind these.
    is_row = isinstance(row, list) and len(row) >= _LEAST
    if not is_row or row[0] != boot or not isinstance(row[3], int):
        return None
    if not all(isinstance(row[at], str) for at in (1, 2, 4, 5, 6)):
        return None
    return Change(*row[1:_LEAST])


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
