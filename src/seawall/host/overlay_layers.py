# SPDX-License-Identifier: Apache-2.0
"""The file of a layer behind a file of overlayfs: the one whose pages are in the page cache.

Kernel document: filesystems/overlayfs.rst.  The layers' paths are options in mountinfo, valid
in the mount namespace of whoever mounted it: for containers the host's.  The topmost layer
that has the path holds the file.  Renamed folders (redirect_dir) can lead astray, so what is
found counts only when size and mtime agree; otherwise there is no answer.
"""

import ctypes
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

OVERLAYFS: Final = 0x794C7630
_FOLDERS_HELD_MOST: Final = 256
_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")
_COLON: Final = re.compile(rb"(?<!\\):")
# Where runtimes chdir to before they mount, when the options would be longer than a page.
_BASES: Final = (
    b"/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots",
    b"/var/lib/docker/overlay2",
    b"/var/lib/containers/storage/overlay",
)
_OPENAT2: Final = 437
_RESOLVE_BENEATH_PLAIN: Final = 0x08 | 0x04 | 0x02  # beneath, no symlinks, no magic links
_LAYERS_MOST: Final = 600  # the kernel allows 500 lower ones

Opener = Callable[[str, int], int]
"""Opens ``(path, flags)`` as written on the host."""


class OverlayMount(NamedTuple):
    """One overlay mount: where it is seen, which part of it, and its layers, topmost first."""

    point: bytes
    root: bytes
    layers: tuple[bytes, ...]


class Layers:
    """Finds layers' files; keeps the mounts it has read and some open folders."""

    def __init__(self, open_path: Opener) -> None:
        self._open_path = open_path
        self._mounts: dict[int, OverlayMount] = {}
        self._learned: set[int | None] = set()
        self._folders: dict[bytes, int] = {}
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall

    def real(self, held: int, status: os.stat_result, pid: int | None) -> int | None:
        """An O_PATH descriptor of the layer's file behind ``held``; None where none is sure.

        ``pid`` sees the mount; None for one in the reader's own namespace.
        """
        mount = self._mount_of(held, pid)
        if mount is None or not status.st_nlink:
            return None
        path = os.fsencode(os.readlink(f"/proc/self/fd/{held}"))
        point = mount.point.rstrip(b"/") + b"/"
        if not path.startswith(point):
            return None
        inner = (mount.root.rstrip(b"/") + b"/" + path[len(point) :]).lstrip(b"/")
        for layer in mount.layers[:_LAYERS_MOST]:
            fd = self._beneath(layer, inner)
            if fd is None:
                continue
            found = os.fstat(fd)
            if stat.S_ISREG(found.st_mode) and not _is_only_metadata(fd, found):
                if _is_same(found, status):
                    return fd
                os.close(fd)
                return None
            os.close(fd)
            if stat.S_ISCHR(found.st_mode):
                return None  # a whiteout: the path means another file now
        return None

    def _mount_of(self, held: int, pid: int | None) -> OverlayMount | None:
        with open(f"/proc/self/fdinfo/{held}", "rb") as info:
            ids = [int(line[7:]) for line in info if line.startswith(b"mnt_id:")]
        if ids and ids[0] not in self._mounts and pid not in self._learned:
            self._learned.add(pid)
            self._learn(pid)
        return self._mounts.get(ids[0]) if ids else None

    def _learn(self, pid: int | None) -> None:
        """All overlay mounts that ``pid`` sees."""
        path = f"/proc/{pid}/mountinfo" if pid else "/proc/self/mountinfo"
        fd = self._open_path(path, os.O_RDONLY) if pid else os.open(path, os.O_RDONLY)
        with open(fd, "rb") as lines:
            for line in lines:
                head, _, tail = line.rstrip(b"\n").partition(b" - ")
                words, rest = head.split(b" "), tail.split(b" ", 2)
                if rest[0] == b"overlay" and len(rest) > 2:
                    layers = tuple(self._layers(rest[2]))
                    self._mounts[int(words[0])] = OverlayMount(
                        _text(words[4]), _text(words[3]), layers
                    )

    def _layers(self, options: bytes) -> Iterator[bytes]:
        """Upperdir first, then the lower ones; relative ones where they can be placed."""
        upper: list[bytes] = []
        lower: list[bytes] = []
        for option in options.split(b","):
            name, _, value = option.partition(b"=")
            if name == b"upperdir":
                upper.append(_text(value))
            elif name in (b"lowerdir", b"lowerdir+", b"datadir+"):
                parts = _COLON.split(_text(value)) if name == b"lowerdir" else [_text(value)]
                lower += [part.replace(b"\\:", b":") for part in parts if part]
        for layer in upper + lower:
            placed = layer if layer.startswith(b"/") else self._placed(layer, upper)
            if placed:
                yield placed

    def _placed(self, layer: bytes, upper: list[bytes]) -> bytes | None:
        """A relative layer below the folder that the runtime stood in when it mounted."""
        near = [u.rsplit(b"/", depth)[0] for u in upper for depth in (1, 2, 3)]
        for base in (*near, *_BASES):
            if base.startswith(b"/") and self._folder(base + b"/" + layer) is not None:
                return base + b"/" + layer
        return None

    def _folder(self, path: bytes) -> int | None:
        if path not in self._folders:
            if len(self._folders) >= _FOLDERS_HELD_MOST:
                for fd in self._folders.values():
                    os.close(fd)
                self._folders.clear()
            try:
                flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
                self._folders[path] = self._open_path(os.fsdecode(path), flags)
            except OSError:
                return None
        return self._folders[path]

    def _beneath(self, layer: bytes, inner: bytes) -> int | None:
        """``inner`` in ``layer`` as O_PATH, through no link at all; None when it is not there."""
        folder = self._folder(layer)
        if folder is None:
            return None
        how = (ctypes.c_uint64 * 3)(
            os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_BENEATH_PLAIN
        )
        fd: int = self._syscall(_OPENAT2, folder, inner, ctypes.byref(how), ctypes.sizeof(how))
        return fd if fd >= 0 else None


def _is_same(found: os.stat_result, status: os.stat_result) -> bool:
    """Whether overlayfs showed this very file: it passes size and mtime through."""
    return (found.st_size, found.st_mtime_ns) == (status.st_size, status.st_mtime_ns)


def _is_only_metadata(fd: int, found: os.stat_result) -> bool:
    """An upper file without data of its own (metacopy=on): its pages are a lower file's."""
    if not found.st_size or found.st_blocks:
        return False
    for name in ("trusted.overlay.metacopy", "user.overlay.metacopy"):
        with suppress(OSError):
            os.getxattr(f"/proc/self/fd/{fd}", name)
            return True
    return False


def _text(raw: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), raw)
