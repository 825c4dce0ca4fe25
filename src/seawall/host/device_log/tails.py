# SPDX-License-Identifier: Apache-2.0
"""The ends of log files: which there are, and their lines that could matter.

Files are opened through the caller's ``open``, so that a tree (``--root``) is never left.  What
is no regular file is not read: a FIFO planted where a log is expected holds nobody.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Final, NamedTuple

from seawall.host.device_log.device_log_events import HINT, LINE_MOST_BYTES

Open = Callable[[str, int], int]
TAIL_BYTES: Final = 16 << 20
"""Of one file."""
PODS: Final = "/var/log/pods"
_SYSLOG: Final = (
    "/var/log/syslog.1", "/var/log/syslog", "/var/log/messages.1", "/var/log/messages",
)  # fmt: skip
KUBELET_FILES: Final = (
    "/var/log/kubelet.log", "/var/log/kubelet/kubelet.log",
    "/var/lib/rancher/rke2/agent/logs/kubelet.log", *_SYSLOG, "/var/log/daemon.log",
)  # fmt: skip
KERNEL_FILES: Final = ("/var/log/kern.log", *_SYSLOG)
FILES_MOST: Final = 16
FOLDERS_MOST: Final = 4096
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# namespace_pod_uid; plugins by the names that accounts/devices/classes.py knows.
_PLUGIN: Final = re.compile(
    r"[a-z0-9-]{1,63}_[a-z0-9.-]{0,200}(?:device-plugin|amdgpu-dp)[a-z0-9.-]{0,200}"
    r"_[0-9a-fA-F-]{8,64}\Z"
)
_NUMBERED: Final = re.compile(r"(\d{1,6})\.log(\.\d{8}-\d{6})?\Z")


class LogTail(NamedTuple):
    """The end of one file."""

    data: bytes
    mtime_seconds: float
    """Unix seconds."""
    is_cut: bool


def tail(path: str, open_: Open) -> LogTail:
    """OSError when it cannot be read, EIO for what is no regular file."""
    fd = open_(path, _FLAGS)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EIO, "not a regular file")
        start = max(0, status.st_size - TAIL_BYTES)
        parts = []
        left = TAIL_BYTES
        while left > 0 and (part := os.pread(fd, min(left, 1 << 20), start)):
            parts.append(part)
            start += len(part)
            left -= len(part)
    finally:
        os.close(fd)
    return LogTail(b"".join(parts), status.st_mtime, status.st_size > TAIL_BYTES)


def hinted_lines(data: bytes, until: float) -> Iterator[bytes]:
    """Lines with something of interest in their beginning; TimeoutError at the monotonic second
    ``until``.
    """
    position = number = 0
    while found := HINT.search(data, position):
        if number % 256 == 0 and time.monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, "it was not read to its end in time")
        number += 1
        start = max(position, data.rfind(b"\n", position, found.start()) + 1)
        end = data.find(b"\n", found.end())
        end = len(data) if end < 0 else end
        position = end + 1
        if found.end() - start < LINE_MOST_BYTES:
            yield data[start : min(end, start + LINE_MOST_BYTES)].rstrip(b"\r")


def first_line(data: bytes, *, is_cut: bool) -> bytes:
    """The first whole one: from when on a log was read."""
    if is_cut:
        _, _, data = data.partition(b"\n")
    return data[:LINE_MOST_BYTES].partition(b"\n")[0]


class PluginLogs(NamedTuple):
    """Paths of the device plugins' logs that are read, and in words which are left out."""

    paths: list[str]
    left_out: str
    """What is not, in words; empty: nothing."""


def plugin_logs(open_: Open) -> PluginLogs:
    """Logs of pods that are called device plugins, which anybody's may be: pods take turns, those
    that wrote last come first.  Of each container the eldest first; packed ones are left out.
    OSError where the folder of all pods cannot be listed.
    """
    names, is_cut = _listed(PODS, open_)
    pods = [_newest_first(pod, open_) for pod in sorted(names) if _PLUGIN.match(pod)]
    pods.sort(key=lambda files: _changed(files, open_), reverse=True)
    turns = [path for path in chain.from_iterable(zip_longest(*pods)) if path is not None]
    chosen = set(turns[:FILES_MOST])
    left_out = [f"{len(turns) - FILES_MOST} of {len(turns)} logs"] if turns[FILES_MOST:] else []
    left_out += [f"pods after the first {FOLDERS_MOST}"] if is_cut else []
    words = f"{' and '.join(left_out)} were left out" if left_out else ""
    return PluginLogs([path for files in pods for path in files[::-1] if path in chosen], words)


def _newest_first(pod: str, open_: Open) -> list[str]:
    """Of one pod: containers take turns too."""
    found = []
    for container in sorted(names_in(f"{PODS}/{pod}", open_)):
        folder = f"{PODS}/{pod}/{container}"
        names = [name for name in names_in(folder, open_) if _NUMBERED.match(name)]
        found.append([f"{folder}/{name}" for name in sorted(names, key=_age)[:-5:-1]])
    return [path for path in chain.from_iterable(zip_longest(*found)) if path is not None]


def _changed(paths: Sequence[str], open_: Open) -> float:
    """When the last of them was; 0 where that cannot be told."""
    moments = [0.0]
    for path in paths:
        try:
            fd = open_(path, _FLAGS)
        except OSError:
            continue
        moments.append(os.fstat(fd).st_mtime)
        os.close(fd)
    return max(moments)


def _age(name: str) -> tuple[int, bool, str]:
    """A rotated one is older than that of its number without a date."""
    found = _NUMBERED.match(name)
    assert found is not None  # noqa: S101 - those were chosen by it
    return int(found[1]), found[2] is None, name


def names_in(path: str, open_: Open) -> list[str]:
    """Nothing where it cannot be listed, or is no folder."""
    try:
        return _listed(path, open_)[0]
    except OSError:
        return []


def _listed(path: str, open_: Open) -> tuple[list[str], bool]:
    """Names, and whether there are more of them."""
    fd = open_(path, _FOLDER)
    try:
        with os.scandir(fd) as entries:
            names = [entry.name for entry in islice(entries, FOLDERS_MOST + 1)]
            return names[:FOLDERS_MOST], len(names) > FOLDERS_MOST
    finally:
        os.close(fd)
