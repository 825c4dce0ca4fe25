# SPDX-License-Identifier: Apache-2.0
"""A forked child that reads one half of many small files while its parent reads the other.

Opening, reading and closing a file of procfs is nearly all of what a scan of thousands of
processes costs, and it is the kernel's time: two CPUs halve it.  The child is owed nothing: when
it does not come back, its half is read by the parent.
"""

import errno
import os
import re
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from seawall.proc.forked_child import ForkedChild
from seawall.proc.pipe_frames import FrameParts, packed, write_all

SILENCE_SECONDS: Final = 1.0
_OUR_SHARE: Final = 0.38  # the parent parses as well
_MANY: Final = 1024  # processes: below this a second one costs more than it brings
_CLOCK_EVERY: Final = 64  # files between two looks at the clock
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC
_STAT_MOST: Final = 4096  # 52 numbers and a name
_STATS: Final = re.compile(r"(?:/proc/[0-9]{1,10}/stat\n)+")
_PIPE_BYTES: Final = 1 << 20  # fs.pipe-max-size as it comes: an ordinary user may ask for it
_PART_BYTES: Final = 128 << 10
_SET_PIPE_SIZE: Final = 1031  # F_SETPIPE_SZ

Answer = bytes | int
"""The content of a file, or the errno that came instead."""


def are_stats(paths: Sequence[str]) -> bool:
    """Whether all are /proc/PID/stat: they neither block nor are they sieved."""
    return _STATS.fullmatch("\n".join(paths) + "\n") is not None


def read_stats(paths: Sequence[str], is_over: Callable[[], bool]) -> Iterator[Answer]:
    """In order; none without a second CPU, fewer when ``is_over`` or the child did not answer."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    cut = int(len(paths) * _OUR_SHARE)
    try:
        other = SecondReader(paths[cut:], _read_stat)
    except OSError:  # no memory or no pid for it
        return
    try:
        for number in range(cut):
            if number % _CLOCK_EVERY == 0 and is_over():
                return
            try:
                yield _read_stat(paths[number])
            except OSError as error:
                yield error.errno or errno.EIO
        yield from other.answers()
    finally:
        other.close()


def _read_stat(path: str) -> bytes:
    """A single record, which one read takes whole (fs/seq_file.c)."""
    fd = os.open(path, _FLAGS)
    try:
        return os.read(fd, _STAT_MOST)
    finally:
        os.close(fd)


def read_halves(names: Sequence[str], read_one: Callable[[str], bytes]) -> Iterator[Answer]:
    """In order; half of them by a second process where there are many.  Fewer when that one did
    not answer.
    """
    other = None
    cut = len(names)
    if cut > _MANY and len(os.sched_getaffinity(0)) > 1:
        with suppress(OSError):  # no memory or no pid for it
            other = SecondReader(names[cut // 2 :], read_one)
            cut //= 2
    try:
        for name in names[:cut]:
            try:
                yield read_one(name)
            except OSError as error:
                yield error.errno or errno.EIO
        if other is not None:
            yield from other.answers()
    finally:
        if other is not None:
            other.close()


class SecondReader:
    """Reads ``paths`` with ``read_one`` from the moment it is made; OSError when none can be."""

    def __init__(self, paths: Sequence[str], read_one: Callable[[str], bytes]) -> None:
        self._child = ForkedChild(lambda to: _serve(to, paths, read_one))
        self._has_ended = False

    def answers(self) -> Iterator[Answer]:
        """In order; fewer than were asked when the child fell silent or died."""
        parts = FrameParts()
        poll = select.poll()
        poll.register(self._child.fd, select.POLLIN)
        while poll.poll(SILENCE_SECONDS * 1000):
            if not parts.read(self._child.fd, _PIPE_BYTES):
                self._has_ended = True
                return
            while (frame := parts.take()) is not None:
                yield frame.code or frame.body

    def close(self) -> None:
        """End the child and let go of it; safe to call twice."""
        if self._has_ended:
            self._child.wait()
        else:  # it may be stuck in the kernel
            self._child.give_up()


def _serve(to: int, paths: Sequence[str], read_one: Callable[[str], bytes]) -> None:
    """The child's whole life."""
    import fcntl  # noqa: PLC0415 - the child's alone

    with suppress(OSError):
        fcntl.fcntl(to, _SET_PIPE_SIZE, _PIPE_BYTES)
    parts: list[bytes] = []
    size = 0
    for path in paths:
        try:
            code, data = 0, read_one(path)
        except OSError as error:
            code, data = error.errno or errno.EIO, b""
        except ValueError:  # a NUL in a name
            code, data = errno.EINVAL, b""
        parts.append(packed(data, code))
        size += len(data)
        if size > _PART_BYTES:
            write_all(to, b"".join(parts))
            parts, size = [], 0
    write_all(to, b"".join(parts))
