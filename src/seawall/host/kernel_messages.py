# SPDX-License-Identifier: Apache-2.0
"""The kernel's own messages as they are now, and as they come: /dev/kmsg and the journal.

Kernel document: Documentation/ABI/testing/dev-kmsg, since 3.5.  Each read gives one record;
EAGAIN is the end, EPIPE means that records were overwritten before they were read.
"""

import errno
import io
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from seawall.host.kmsg import PATH, next_record

_PIPE_BYTES: Final = 64 << 10
JOURNAL: Final = ("journalctl", "-k", "-q", "--no-pager", "-o", "short-unix")
"""``-k``: of the kernel, since this boot."""
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_JOURNAL_MOST_BYTES: Final = 1 << 30


def kmsg_lines(path: str = PATH) -> Iterator[bytes]:
    """Every record that the kernel still holds, oldest first; OSError when it may not be read."""
    fd = os.open(path, _FLAGS)
    try:
        while (record := next_record(fd)) is not None:
            yield from io.BytesIO(record)
    finally:
        os.close(fd)


def follow_kmsg(quiet_seconds: float, path: str = PATH) -> Iterator[bytes | None]:
    """New records for ever; None whenever none came for ``quiet_seconds``."""
    fd = os.open(path, _FLAGS)
    try:
        os.lseek(fd, 0, os.SEEK_END)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            if not poll.poll(quiet_seconds * 1000):
                yield None
            while (record := next_record(fd)) is not None:
                yield from io.BytesIO(record)
    finally:
        os.close(fd)


def journal_lines(
    deadline_seconds: float,
    command: tuple[str, ...] = JOURNAL,
    environment: dict[str, str] | None = None,
) -> Iterator[bytes]:
    """What journalctl prints, line by line; OSError when it cannot be started, fails or does
    not end in time.

    environment: of the child; None gives it one's own.

    Its disk may be what is stuck: the child is killed at the deadline and not waited for.
    """
    until = time.monotonic() + deadline_seconds
    child = subprocess.Popen(  # noqa: S603 - a fixed command, found by PATH as a person's would
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment,
    )  # fmt: skip
    try:
        yield from _lines_until(child, until)
        if child.wait(max(0.1, until - time.monotonic())):
            raise OSError(errno.EIO, f"{command[0]} ended with status {child.returncode}")
    except subprocess.TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, f"{command[0]} did not end") from None
    finally:
        _let_go(child)


def follow_journal(quiet_seconds: float) -> Iterator[bytes | None]:
    """New lines of the journal; None whenever none came for ``quiet_seconds``."""
    child = subprocess.Popen(  # noqa: S603 - as above
        (*JOURNAL, "-f", "-n", "0"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdout is not None  # noqa: S101 - PIPE
    fd = child.stdout.fileno()
    rest = b""
    try:
        while True:
            if not select.select([fd], (), (), quiet_seconds)[0]:
                yield None
                continue
            data = os.read(fd, _PIPE_BYTES)
            if not data:
                raise OSError(errno.EIO, f"{JOURNAL[0]} ended with status {child.wait()}")
            *whole, rest = (rest + data).split(b"\n")
            yield from (line + b"\n" for line in whole)
    finally:
        _let_go(child)


def _lines_until(child: "subprocess.Popen[bytes]", until: float) -> Iterator[bytes]:
    assert child.stdout is not None  # noqa: S101 - PIPE
    fd = child.stdout.fileno()
    rest, total = b"", 0
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([fd], (), (), left)[0]:
            raise TimeoutError(errno.ETIMEDOUT, f"{JOURNAL[0]} did not answer in time")
        data = os.read(fd, _PIPE_BYTES)
        total += len(data)
        if not data or total > _JOURNAL_MOST_BYTES:
            break
        *whole, rest = (rest + data).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _let_go(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.kill()
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.2)
    if child.stdout is not None:
        child.stdout.close()
