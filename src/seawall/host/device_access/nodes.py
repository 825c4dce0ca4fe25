# SPDX-License-Identifier: Apache-2.0
"""Device nodes below /dev: the host's, and those of processes' own mount namespaces.

A process's /dev is entered through its root (proc(5), /proc/PID/root; needs the right to ptrace)
and no link is followed, so it leads nowhere else.  It may be FUSE, or full of whatever a container
put there: a worker that may hang looks, and not at everything.  Numbers are the kernel's, owners
are ids of the host.  Listing opens no device.
"""

import errno
import json
import os
import stat
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.device_access.apart import ask_apart, problem
from seawall.host.device_access.process_handle import process_handle
from seawall.host.host import HERE_ONLY, JSON

NODES_MOST: Final = 4096
_DEPTH_MOST: Final = 3
_LOOKED_AT_MOST: Final = 16384
_FOLDERS_MOST: Final = 256  # open at once
_PIDS_MOST: Final = 8192
_EACH_SECONDS: Final = 0.2
_HOST_SECONDS: Final = 1.2  # nobody can hold the host's own up, but a starved CPU is slow
_ALL_SECONDS: Final = 1.6
_HOST: Final = 0  # no process has this pid
# Terminals come and go; the others hold memory, queues and pages, and hold them by the million.
_PASSED_OVER: Final = frozenset({"pts", "shm", "mqueue", "hugepages", "fd"})
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS: Final = {stat.S_IFCHR: "c", stat.S_IFBLK: "b"}


def device_nodes(argument: str) -> JSON:
    """{"host": {"nodes": [[path, kind, major, minor, mode, uid, gid], ...], "links":
    [["195:255", target], ...], "left_out", "changed": {path: seconds}}, "pids": {pid: {"nodes",
    "left_out"}}}.  ``changed``: the Unix second (ctime) at which it was made, or last had its
    mode or owner changed.

    argument: JSON, {"pids": [pid, ...]}.  ``{"problem": [why, words]}`` stands where somebody's
    /dev could not be listed.  ``left_out``: nodes over the limit, and at least one more for each
    folder that was not looked at to its end.  /dev/pts, shm, mqueue and hugepages are passed over.
    """
    pids = [int(pid) for pid in json.loads(argument)["pids"]][:_PIDS_MOST]
    each = _EACH_SECONDS if pids else _HOST_SECONDS
    host, *others = ask_apart(
        [_HOST, *pids], _nodes_of, each_seconds=each, all_seconds=_ALL_SECONDS
    )
    return {"host": host, "pids": {str(pid): told for pid, told in zip(pids, others, strict=True)}}


def nodes_of_tree(argument: str, opened: Callable[[str, int], int]) -> JSON:
    """The same of another root's /dev; nothing of processes, whose /dev is not below it.

    A copy that was made without device nodes has none at all: ENOENT, for that tells nothing.
    """
    told = nodes_below(opened("/dev", _FOLDER))
    if not told["nodes"]:
        raise OSError(errno.ENOENT, "no device node below it", "/dev")
    links: list[JSON] = []
    with suppress(FileNotFoundError):
        folder = opened("/dev/char", _FOLDER)
        try:
            links = _char_links(f"/proc/self/fd/{folder}")
        finally:
            os.close(folder)
    pids = [int(pid) for pid in json.loads(argument)["pids"]][:_PIDS_MOST]
    elsewhere = problem("absent", HERE_ONLY)
    host: JSON = {**told, "links": links, "changed": {}}
    return {"host": host, "pids": {str(pid): elsewhere for pid in pids}}


def _nodes_of(pid: int) -> JSON:
    """One /dev; OSError when the process is gone or may not be looked into."""
    if pid == _HOST:
        told = nodes_below(os.open("/dev", _FOLDER))
        return {**told, "links": _char_links("/dev/char"), "changed": _changed(told["nodes"])}
    with process_handle(pid) as process:
        ticks = process.start_ticks()
        root = os.open(process.inside(), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if stat.S_ISLNK(os.lstat("dev", dir_fd=root).st_mode):
                return problem("malformed", "its /dev is a link")
            told = nodes_below(os.open("dev", _FOLDER, dir_fd=root))
        finally:
            os.close(root)
        if process.start_ticks() != ticks:
            return problem("vanished", "another process has its number now")
    return told


class _Folder(NamedTuple):
    fd: int
    path: str
    depth: int


def nodes_below(fd: int) -> dict[str, JSON]:
    """{"nodes", "left_out"} of an open /dev, which is closed then."""
    rows: list[tuple[str, str, int, int, int, int, int]] = []
    folders = deque([_Folder(fd, "/dev", 1)])
    left = _LOOKED_AT_MOST
    left_out = 0
    try:
        while folders:
            folder = folders.popleft()
            try:
                with os.scandir(folder.fd) as entries:
                    for entry in entries:
                        if not left:
                            left_out += 1
                            break
                        left -= 1
                        left_out += _look(entry, folder, rows, folders)
            finally:
                os.close(folder.fd)
    finally:
        for folder in folders:
            os.close(folder.fd)
    rows.sort()
    told: list[JSON] = [list(row) for row in rows[:NODES_MOST]]
    return {"nodes": told, "left_out": left_out + max(0, len(rows) - NODES_MOST)}


def _look(
    entry: os.DirEntry[str],
    folder: _Folder,
    rows: list[tuple[str, str, int, int, int, int, int]],
    folders: deque[_Folder],
) -> int:
    """Note a node, or a folder to look into; how many could not be looked at."""
    path = f"{folder.path}/{entry.name}"
    try:
        if entry.is_symlink() or entry.is_file(follow_symlinks=False):
            return 0
        if entry.is_dir(follow_symlinks=False):
            if folder.depth >= _DEPTH_MOST or (folder.depth == 1 and entry.name in _PASSED_OVER):
                return 0
            if len(folders) >= _FOLDERS_MOST:
                return 1
            fd = os.open(entry.name, _FOLDER, dir_fd=folder.fd)
            folders.append(_Folder(fd, path, folder.depth + 1))
            return 0
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    except OSError:
        return 1
    if kind := _KINDS.get(stat.S_IFMT(status.st_mode)):
        number = status.st_rdev
        rows.append(
            (path, kind, os.major(number), os.minor(number), stat.S_IMODE(status.st_mode),
             status.st_uid, status.st_gid)
        )  # fmt: skip
    return 0


def _changed(rows: JSON) -> dict[str, JSON]:
    """Path -> second of its ctime."""
    found: dict[str, JSON] = {}
    for row in rows if isinstance(rows, list) else ():
        path = row[0] if isinstance(row, list) else None
        if isinstance(path, str):
            with suppress(OSError):
                found[path] = max(0, int(os.lstat(path).st_ctime))
    return found


def _char_links(folder: str) -> list[JSON]:
    """[[name, target], ...]: what udev or the toolkit made for those who look up by number."""
    found: list[tuple[str, str]] = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if len(found) >= NODES_MOST:
                break
            with suppress(OSError):
                if entry.is_symlink():
                    found.append((entry.name, os.readlink(entry.path)))
    return [list(pair) for pair in sorted(found)]
