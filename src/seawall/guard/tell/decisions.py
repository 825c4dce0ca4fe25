# SPDX-License-Identifier: Apache-2.0
"""decisions.jsonl: what was decided, why and what came of it, one line of JSON each.

Two files of bounded size are made at the start and their blocks taken (fallocate(2) with
FALLOC_FL_KEEP_SIZE, so the files are as long as what is in them and a line needs no memory any
more).  When one is full the two change names and the older half is forgotten.  What an earlier
guard wrote in this boot stays.  Where somebody has removed one of them, it is made anew by the
next line.  A file that begins anew begins with the last decision's id, for an id is given once in
a boot, however many lines without one have come since.
"""

import ctypes
import errno
import json
import os
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from seawall.guard.tell.fixed_page import FOLDER_MODE, MODE, REMOVED, Exchange, are_there
from seawall.guard.tell.paths import DECISIONS, OLDER_DECISIONS

FILE_MOST_BYTES: Final = 1 << 20
LINE_MOST_BYTES: Final = 256 << 10
"""A ranking of 250 pods with all its reasons takes 180 KB."""
LAST_WAS: Final = "the last decision was "
"""Before an id, at the end of the sentence of a file's first line."""
_KEY: Final = b'"decision":'
"""In no word of a container's: there JSON has a backslash before each quote."""
_ID_MOST: Final = 64
Heading: TypeAlias = Callable[[str], bytes]
"""The first line of a file that begins anew, of the last id; empty: none."""
_KEEP_SIZE: Final = 1
_CALM_SHARE: Final = 0.75


class Decisions:
    """``add`` never raises: what went wrong stands in ``problem``."""

    __slots__ = (
        "_fallocate", "_fds", "_heading", "_is_open", "_is_short", "_latest", "_names", "_swap",
        "_used", "_was_there", "last_id", "news", "path", "problem", "size",
    )  # fmt: skip

    def __init__(
        self, folder: str, size: int = FILE_MOST_BYTES, heading: Heading | None = None
    ) -> None:
        self.path = f"{folder}/{DECISIONS}"
        self.size = size
        self.problem = ""
        """Why the last line is not there; empty: it is."""
        self.news = ""
        """That one was removed; for whoever says it, and empties it."""
        self.last_id = ""
        """Of the last decision in the file, also an earlier guard's: ids go on from it."""
        self._latest = ""
        """Of the last decision by now."""
        self._heading = heading
        self._names = (os.fsencode(self.path), os.fsencode(f"{folder}/{OLDER_DECISIONS}"))
        self._fds: list[int] = []
        self._used = 0
        self._is_open = self._is_short = self._was_there = False
        """Of blocks; they are asked for again in peace."""
        self._swap = Exchange()
        self._fallocate = _fallocate()

    def open(self) -> None:
        """Make both files, find the last id and where to go on, and take blocks: on a full disk
        there are none, and lines are written as soon as there is room.
        """
        self._is_open = True
        try:
            self._take_up()
            self.last_id = self._latest = highest([one for fd in self._fds for one in _ids(fd)])
            for fd in self._fds:
                self._take_blocks(fd)
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"

    def know(self, decision: str) -> None:
        """Note the id of a decision that was taken, whether or not its line is written."""
        self._latest = highest([decision, self._latest])

    def add(self, line: bytes) -> bool:
        """``line`` ends with a newline; one that is too long is refused."""
        if len(line) > min(LINE_MOST_BYTES, self.size):
            self.problem = f"{self.path}: a line of {len(line)} bytes is too long"
            return False
        if not self._is_open:
            return False
        try:
            if not are_there(self._names, self._fds):
                self._make_anew()
            if self._used + len(line) > self.size:
                self._turn()
            written = os.pwrite(self._fds[0], line, self._used)
            if written != len(line):  # the file keeps whole lines only
                os.ftruncate(self._fds[0], self._used)
                self.problem = f"{self.path}: no space left"
                return False
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"
            return False
        self._used += written
        self.problem = ""
        return True

    def tend(self) -> None:
        """In peace: make room, so that no file has to be turned in a bad moment."""
        if not self._is_open:
            return
        try:
            if not are_there(self._names, self._fds):
                self._make_anew()
            if self._is_short:
                self._is_short = False
                for fd in self._fds:
                    self._take_blocks(fd)
                self.problem = ""
            if self._used > self.size * _CALM_SHARE:
                self._turn()
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"

    def close(self) -> None:
        """Close both files, which stay on the disk; no line is taken any more."""
        self._is_open = False
        self._let_go()

    def _take_up(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        for name in self._names:
            fd = os.open(name, flags, MODE)
            self._fds.append(fd)
            os.fchmod(fd, MODE)
            if os.fstat(fd).st_size > self.size:
                os.ftruncate(fd, 0)
        self._was_there = True
        self._used = os.fstat(self._fds[0]).st_size
        self._mend()

    def _make_anew(self) -> None:
        """Blocks come in peace: now the node may have none to spare."""
        if len(self._fds) == len(self._names):  # else it was said
            self.news = f"{self.path} {REMOVED}"
        self._let_go()
        if self._was_there:
            os.makedirs(os.path.dirname(self.path), FOLDER_MODE, exist_ok=True)
        self._is_short = True
        self._take_up()
        self._head()

    def _let_go(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def _turn(self) -> None:
        """The older file becomes the one that is written, and is empty."""
        if self._swap.exchange(*self._names):
            self._fds.reverse()
        os.ftruncate(self._fds[0], 0)
        self._used = 0
        self._head()
        self._take_blocks(self._fds[0])

    def _head(self) -> None:
        """Of a file that has just begun anew.  Where there is no room, ids are not the worst."""
        line = b"" if self._heading is None or self._used else self._heading(self._latest)
        if os.pwrite(self._fds[0], line, 0) != len(line):
            os.ftruncate(self._fds[0], 0)
            return
        self._used += len(line)

    def _take_blocks(self, fd: int) -> None:
        """OSError when there is no room; a filesystem without fallocate gives blocks later."""
        if self._fallocate is None or self._fallocate(fd, _KEEP_SIZE, 0, self.size) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EOPNOTSUPP, errno.ENOSYS):
            self._is_short = True
            raise OSError(code, os.strerror(code))

    def _mend(self) -> None:
        """A line that the guard before did not finish gets its end."""
        if self._used and os.pread(self._fds[0], 1, self._used - 1) != b"\n":
            if self._used < self.size:
                os.pwrite(self._fds[0], b"\n", self._used)
            self._used += 1


def _fallocate() -> Any:
    """fallocate(2), or None.  Looked up once: every CDLL leaves a cycle for a gc that is off."""
    found = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    return found


def highest(ids: list[str]) -> str:
    """Of the first one's boot: what came of a decision may stand behind the next one."""
    boots = [one.rpartition("-")[0] for one in ids]
    same = [one for one, boot in zip(ids, boots, strict=True) if boot == boots[0]]
    return max(same, key=_number, default="")


def _number(one: str) -> int:
    number = one.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _ids(fd: int) -> list[str]:
    """Of all its lines, the last first; of the first line also the one before it."""
    text = os.pread(fd, os.fstat(fd).st_size, 0)
    ids, at = _before(text[: text.find(b"\n") + 1]), text.find(_KEY)
    while at >= 0:
        at += len(_KEY)
        value = text[at : at + _ID_MOST].lstrip(b" ")
        if value.startswith(b'"') and (end := value.find(b'"', 1)) > 0:  # else null, or torn
            ids.append(value[1:end].decode("ascii", "replace"))
        at = text.find(_KEY, at)
    ids.reverse()
    return ids


def _before(line: bytes) -> list[str]:
    """The id of the decision before, where a heading names one."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return []
    words = document.get("sentence") if isinstance(document, dict) else None
    found = words.rpartition(LAST_WAS) if isinstance(words, str) else ("", "", "")
    return [found[2][:_ID_MOST]] if found[1] else []
