# SPDX-License-Identifier: Apache-2.0
"""Tracing instances of our own: made, owned by a lock, removed; dead ones of others swept.

Kernel document: trace/ftrace.rst, "Instances".  The owner holds flock(2) on the instance's folder:
the kernel lets go of it when the owner dies, however it dies and in whatever pid namespace, so
who gets the lock knows that the instance is a leftover.  ``free_buffer`` with ``disable_on_free``
makes the kernel itself stop the recording and free the buffers at that moment.
"""

import errno
import os
import re
import time
from contextlib import suppress
from typing import Final

from seawall.host.host import Why
from seawall.host.page_trace.tracefs import FOLDER, has, read_text, write_text
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.proc.file_lock import try_lock

PREFIX: Final = "seawall-"
_NAME: Final = re.compile(r"^seawall-\d{1,10}-\d{1,20}-[a-z]{1,12}(-\d{1,4})?$")
_REMOVE_TRIES: Final = 20
_REMOVE_WAIT_SECONDS: Final = 0.05
_CREATE_TRIES: Final = 10
SMALLEST_KIB: Final = 1
_NOT_INHERITED: Final = ("stacktrace", "userstacktrace")


class Instance:
    """One instance that we own, from ``create`` to ``close``."""

    def __init__(self, root: int, name: str, folder: int) -> None:
        self.root = root
        self.name = name
        self.folder = folder
        self._free_buffer = -1

    @classmethod
    def create(cls, root: int, name: str) -> "Instance":
        """Make it and lock it; OSError (ENOMEM, EPERM, ENOSPC) as the kernel says."""
        for number in range(_CREATE_TRIES):
            tried = f"{name}-{number}" if number else name
            path = f"instances/{tried}"
            try:
                os.mkdir(path, 0o700, dir_fd=root)
            except FileExistsError:
                continue
            folder = -1
            try:
                folder = os.open(path, FOLDER, dir_fd=root)
                if try_lock(folder) and has(path, root):
                    made = cls(root, tried, folder)
                    made.prepare()
                    return made
            except FileNotFoundError:
                pass  # somebody sweeps it, or did, for it had no lock yet
            except BaseException:
                _close(folder)
                remove(root, tried)
                raise
            _close(folder)
        raise OSError(errno.EEXIST, f"no instance {name} could be made")

    def prepare(self) -> None:
        """Times that all CPUs share, and an end with ours."""
        self.write("buffer_size_kb", str(SMALLEST_KIB))
        self.write("trace_clock", "mono")
        for option in _NOT_INHERITED:  # from whoever traces at the top
            with suppress(OSError):
                self.write(f"options/{option}", "0")
        with suppress(OSError):
            self.write("options/disable_on_free", "1")
            self._free_buffer = os.open(
                "free_buffer", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self.folder
            )

    def write(self, path: str, text: str) -> None:
        """One control file of this instance."""
        write_text(path, text, self.folder)

    def read(self, path: str) -> str:
        """One control file of this instance."""
        return read_text(path, self.folder)

    def has(self, path: str) -> bool:
        """Whether this instance has such a file."""
        return has(path, self.folder)

    def open_raw(self, cpu: int) -> int:
        """The binary pages of one CPU, without waiting."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(f"per_cpu/cpu{cpu}/trace_pipe_raw", flags, dir_fd=self.folder)

    def cpus(self) -> list[int]:
        """Those that have a buffer."""
        names = self.names("per_cpu")
        return sorted(int(name[3:]) for name in names if name[3:].isdecimal())

    def names(self, path: str) -> list[str]:
        """The files in a folder of this instance."""
        fd = os.open(path, FOLDER, dir_fd=self.folder)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def give_over(self) -> None:
        """Close our descriptors of it, so that it can be removed."""
        for fd in (self._free_buffer, self.folder):
            _close(fd)
        self._free_buffer = self.folder = -1

    def close(self) -> bool:
        """Remove it; False when the kernel would not."""
        if self.folder < 0:
            return True
        disarm(self.folder)
        fd, self._free_buffer = self._free_buffer, -1
        _close(fd)
        gone = remove(self.root, self.name)
        self.give_over()
        return gone


def disarm(folder: int) -> None:
    """Nothing is recorded any more, and no event of this instance costs anything."""
    clear_triggers(folder)
    for path, text in (("events/enable", "0"), ("tracing_on", "0")):
        with suppress(OSError):
            write_text(path, text, folder)


def remove(root: int, name: str) -> bool:
    """Remove an instance; readers that are just ending are waited for, a second at most."""
    for _ in range(_REMOVE_TRIES):
        try:
            os.rmdir(f"instances/{name}", dir_fd=root)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                return False
            time.sleep(_REMOVE_WAIT_SECONDS)
        else:
            return True
    return False


def sweep(root: int) -> list[str]:
    """Remove what killed runs of ours left; the names of what was removed.

    An instance whose owner lives is locked; one of somebody else's has another name.
    """
    removed = []
    for name in names_of_ours(root):
        with suppress(OSError):
            if _sweep_one(root, name):
                removed.append(name)
    return removed


def names_of_ours(root: int) -> list[str]:
    """Of all instances that a run of ours made, this one or another."""
    folder = os.open("instances", FOLDER, dir_fd=root)
    try:
        return [name for name in os.listdir(folder) if _NAME.match(name)]
    finally:
        os.close(folder)


def _sweep_one(root: int, name: str) -> bool:
    fd = os.open(f"instances/{name}", FOLDER, dir_fd=root)
    try:
        if not try_lock(fd):
            return False
        disarm(fd)
        return remove(root, name)
    finally:
        os.close(fd)


def clear_triggers(folder: int) -> None:
    """A trigger keeps its event at work, also one that is off; truncating removes them all."""
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
        os.close(os.open("events/kmem/mm_page_alloc/trigger", flags, dir_fd=folder))


def make(root: int, name: str) -> Instance:
    """``create``, with the reason in words."""
    try:
        return Instance.create(root, name)
    except OSError as error:
        words = f"no tracing instance can be made: {error.strerror}"
        why: Why = "refused" if error.errno in (errno.EPERM, errno.EACCES) else "failed"
        raise TracingProblem(why, words) from error


def _close(fd: int) -> None:
    if fd >= 0:
        with suppress(OSError):
            os.close(fd)
