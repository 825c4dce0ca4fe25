# SPDX-License-Identifier: Apache-2.0
"""Which files processes map or hold open, and how each can be reached.

/proc/PID/maps and the links in /proc/PID/fd.  A file is reached through /proc/PID/map_files
(4.3 for all, since 5.9 with CAP_CHECKPOINT_RESTORE) or /proc/PID/fd: these lead to the very
file in whatever mount namespace, deleted or not.  Several processes are kept for each, for
one of them may end before it is asked.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from seawall.host.host import Host, Unread
from seawall.readings.process_maps import read_maps

WAYS_MOST: Final = 3
_NO_FILES: Final = ("/dev/", "/proc/", "/sys/")
_NO_FILES_BUT: Final = ("/dev/shm/", "/dev/zero", "/dev/hugepages/")  # noqa: S108 - compared
_DELETED: Final = " (deleted)"


@dataclass(slots=True)
class FileUse:
    """One file as processes see it; several may turn out to be one inode."""

    name: str
    """Without `` (deleted)``."""
    pid: int
    """Whose view ``name`` is."""
    inode: int | None
    place: str
    """What it shares with its neighbours: a device, or a mount namespace."""
    ways: list[str] = field(default_factory=list)
    pids: set[int] = field(default_factory=set)
    code_of: set[int] = field(default_factory=set)
    """Processes that map it executable."""
    is_mapped: bool = False
    is_deleted: bool = False

    def item(self) -> dict[str, Any]:
        """As the probe takes it."""
        return {
            "open": self.ways, "pid": self.pid, "name": self.name, "place": self.place,
            "inode": None if self.is_deleted else self.inode,
        }  # fmt: skip


class FileUses:
    """Which processes use which files, gathered process by process."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[Any, ...], FileUse] = {}
        self.unread: list[Unread] = []

    @property
    def files(self) -> list[FileUse]:
        """Every file that was met."""
        return list(self._by_key.values())

    def look_at(self, host: Host, pid: int) -> None:
        """Add what one process maps and has open."""
        mapped = read_maps(host, pid)
        names: set[str] = set()
        if isinstance(mapped, Unread):
            self.unread.append(mapped)
            mapped = ()
        for file in mapped:
            if not _may_be_file(file.name):
                continue
            names.add(file.name)
            use = self._use(
                (file.device, file.inode, file.name), file.name, pid,
                (file.inode, file.device, f"/proc/{pid}/map_files/{file.span}"),
            )  # fmt: skip
            use.is_mapped = True
            if file.is_code:
                use.code_of.add(pid)
        self._open_ones(host, pid, names)

    def _open_ones(self, host: Host, pid: int, mapped: set[str]) -> None:
        folder = f"/proc/{pid}/fd"
        numbers = host.names(folder)
        if isinstance(numbers, Unread):
            self.unread.append(numbers)
            return
        namespace: str | None = None
        for number in numbers:
            way = f"{folder}/{number.rstrip('/')}"
            name = host.link(way)
            if isinstance(name, Unread) or name in mapped or not _may_be_file(name):
                continue
            if namespace is None:
                found = host.link(f"/proc/{pid}/ns/mnt")
                namespace = f"pid {pid}" if isinstance(found, Unread) else found
            # A deleted name may be that of many files.
            key = (namespace, way) if name.endswith(_DELETED) else (namespace, name)
            self._use(key, name, pid, (None, namespace, way))

    def _use(
        self, key: tuple[Any, ...], name: str, pid: int, where: tuple[int | None, str, str]
    ) -> FileUse:
        inode, place, way = where
        use = self._by_key.get(key)
        if use is None:
            use = FileUse(name.removesuffix(_DELETED), pid, inode, place)
            use.is_deleted = name.endswith(_DELETED)
            self._by_key[key] = use
        if len(use.ways) < WAYS_MOST and pid not in use.pids:
            use.ways.append(way)
        use.pids.add(pid)
        return use


def _may_be_file(name: str) -> bool:
    """Whether the link's text can be a regular file's: no socket, pipe, device or kernel file."""
    if not name.startswith("/"):
        return False
    return not name.startswith(_NO_FILES) or name.startswith(_NO_FILES_BUT)
