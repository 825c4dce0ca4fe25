# SPDX-License-Identifier: Apache-2.0
"""Who writes to ``devices.allow`` and ``devices.deny`` of cgroup v1, told by fanotify(7).

kernfs tells of each successful write(2) as any file system does (fs/read_write.c,
fsnotify_modify): FAN_MODIFY with the pid of whoever did it, or FAN_OPEN | FAN_MODIFY as one event
where both are still waiting to be read.  Tried on 6.18: a write that the kernel refused gives no
FAN_MODIFY.  Needs CAP_SYS_ADMIN.  FAN_REPORT_PIDFD since 5.15: where the process is gone already
(FAN_NOPIDFD), its number is not looked up.

A runtime's process lives for milliseconds, so a child of our own listens and looks at each at
once: at its opening first.  Nobody is held up: events that wait for an answer are not asked for.
"""

import ctypes
import errno
import os
from collections.abc import Iterable
from typing import Final

from seawall.host.device_access.device_cgroup import Hierarchy, JoinError
from seawall.host.device_access.listening import FAN_MODIFY, FAN_OPEN, listen
from seawall.proc.forked_child import ForkedChild
from seawall.proc.parent_death import die_with_parent

FILES: Final = ("devices.allow", "devices.deny")
NEEDS: Final = "CAP_SYS_ADMIN and a kernel with CONFIG_FANOTIFY"
_FAN_CLOEXEC: Final = 0x01
_FAN_NONBLOCK: Final = 0x02  # and FAN_CLASS_NOTIF, which is 0
_FAN_REPORT_PIDFD: Final = 0x80
_FAN_MARK_ADD: Final = 0x01
_AT_FDCWD: Final = -100
_PART_BYTES: Final = 64 << 10
_LINES_BYTES_MOST: Final = 4 << 20
_BELOW_MOST: Final = 64  # levels of cgroups


class Writers:
    """Listens until it is closed.  Only for a process with one thread."""

    def __init__(self) -> None:
        """OSError where the kernel does not tell: EPERM, ENOSYS."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._group = self._open_group()
        self._marked: set[str] = set()
        self._data = b""
        parent = os.getpid()

        def live(to: int) -> None:
            die_with_parent(parent)
            listen(self._group, to)

        # Signals are for the parent, who has to say what it saw.
        self._child = ForkedChild(live, (self._group,), survives=True)
        os.set_blocking(self._child.fd, False)

    @property
    def fd(self) -> int:
        """Readable as soon as there is a line, or the listener ended."""
        return self._child.fd

    def _open_group(self) -> int:
        """The descriptor of a notification group."""
        for more in (_FAN_REPORT_PIDFD, 0):
            group: int = self._libc.fanotify_init(
                ctypes.c_uint(_FAN_CLOEXEC | _FAN_NONBLOCK | more),
                ctypes.c_uint(os.O_RDONLY | os.O_CLOEXEC),
            )
            if group >= 0:
                return group
            code = ctypes.get_errno()
            if code != errno.EINVAL:  # before 5.15
                break
        raise OSError(code, os.strerror(code))

    def watch(self, folders: Iterable[str]) -> dict[str, OSError]:
        """Listen to these cgroups too; which of them could not be.  A mark ends with its file."""
        failed = {}
        for folder in folders:
            if folder in self._marked:
                continue
            try:
                for name in FILES:
                    self._mark(f"{folder}/{name}")
                self._marked.add(folder)
            except OSError as error:
                failed[folder] = error
        return failed

    def _mark(self, path: str) -> None:
        done = self._libc.fanotify_mark(
            ctypes.c_int(self._group), ctypes.c_uint(_FAN_MARK_ADD),
            ctypes.c_uint64(FAN_OPEN | FAN_MODIFY), ctypes.c_int(_AT_FDCWD), os.fsencode(path),
        )  # fmt: skip
        if done:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def forget(self, kept: Iterable[str]) -> None:
        """Cgroups beside ``kept`` are gone: one of that name would be another."""
        self._marked &= set(kept)

    def lines(self) -> list[bytes] | None:
        """Those that have come; None when the listener ended."""
        while True:
            try:
                part = os.read(self.fd, _PART_BYTES)
            except BlockingIOError:
                break
            if not part:
                return None
            self._data += part
            if len(self._data) > _LINES_BYTES_MOST:
                break
        *found, self._data = self._data.split(b"\n")
        return found

    def close(self) -> None:
        """End the listener; safe to call twice."""
        if self._child.fd >= 0:
            os.close(self._group)
            self._child.give_up()


def folders_of(hierarchy: Hierarchy, pid: int) -> tuple[str, ...]:
    """The folders of a process's device cgroup and of those above it, its own first; empty when
    they cannot be told.
    """
    try:
        with open(f"/proc/{pid:d}/cgroup", "rb") as file:
            folder = hierarchy.folder_of(hierarchy.path_in(file.read()))
    except (OSError, JoinError):
        return ()
    return tuple(hierarchy.upwards(folder)[:_BELOW_MOST])
