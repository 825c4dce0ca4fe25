# SPDX-License-Identifier: Apache-2.0
"""The cgroup trees: where they are mounted, which cgroups exist, which processes are in them.

Kernel documents: admin-guide/cgroup-v1/cgroups.rst, admin-guide/cgroup-v2.rst.  A host may
have v1, v2, or both (systemd's hybrid layout).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings import mountinfo
from seawall.readings.cgroup_tree import CgroupWalk, CgroupWalkResult, file_path
from seawall.readings.mountinfo import Mount
from seawall.readings.reading import decode_name

USUAL_PLACE: Final = "/sys/fs/cgroup"
# Words among the super options of a v1 mount that are no controllers.
_NO_CONTROLLERS: Final = frozenset(
    {"rw", "ro", "none", "all", "xattr", "noprefix", "clone_children", "cpuset_v2_mode",
     "favordynmods", "seclabel", "nosuid", "nodev", "noexec", "relatime"}
)  # fmt: skip
_PROCS: Final = re.compile(rb"(?:[0-9]{1,10}\n)*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLayout:
    """Mount points, as on the host."""

    v1: Mapping[str, str]
    """controller -> mount point (``memory``, ``pids``, ``devices``, ``name=systemd``)."""
    v2: str | None
    v2_controllers: tuple[str, ...]
    """cgroup.controllers of the v2 root."""
    roots: Mapping[str, str] = field(default_factory=dict)
    """mount point -> the cgroup that is mounted there, where that is not ``/``: in a
    container only a part of the tree is seen, and paths are below that part."""

    @property
    def memory_version(self) -> Literal[1, 2] | None:
        """Which tree counts memory; None when neither does."""
        if "memory" in self.v1:
            return 1
        return 2 if "memory" in self.v2_controllers else None

    @property
    def memory_tree(self) -> str | None:
        """Mount point of the tree that counts memory; of v2 or name=systemd when none does."""
        if self.memory_version == 1:
            return self.v1["memory"]
        return self.v2 or self.v1.get("name=systemd")

    def controller(self, name: str) -> tuple[Literal[1, 2], str] | None:
        """Version and mount point of the tree in which a controller works; None: nowhere."""
        if name in self.v1:
            return 1, self.v1[name]
        return (2, self.v2) if self.v2 and name in self.v2_controllers else None


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The topic: the tree that counts memory, or v2 or name=systemd when none does."""

    layout: CgroupLayout
    paths: tuple[str, ...]
    """Every cgroup below the mount point, parents first; the root is ``/``."""
    mount_point: str
    pids: Mapping[str, tuple[int, ...]]
    """path -> cgroup.procs; cgroups without processes are not in it.  A process is in exactly
    one cgroup of a tree.  Processes of another pid namespace, which the kernel prints as 0,
    are left out."""
    unread: tuple[Unread, ...]


def parse_proc_cgroup(data: bytes) -> Mapping[str, str]:
    """/proc/PID/cgroup: controller (or "" for v2) -> path.  co-mounted ones each."""
    paths: dict[str, str] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line:
            continue
        words = line.split(b":", 2)  # a path may hold colons
        if len(words) < 3 or not words[0].isdigit() or words[2][:1] != b"/":
            raise ParseProblem(number, "'NUMBER:CONTROLLERS:/PATH'", line)
        for name in decode_name(words[1]).split(","):
            paths[name] = decode_name(words[2])
    return paths


def read_layout(host: Host) -> CgroupLayout | Unread:
    """Where the trees are, by pid 1's mounts; by their usual places in a tree without any."""
    mounts = mountinfo.read(host)
    if isinstance(mounts, Unread):
        return _usual_layout(host) or mounts
    # Of mounts on one point only the last is seen.
    seen = {mount.mount_point: mount for mount in mounts.mounts}.values()
    v1: dict[str, Mount] = {}
    v2: Mount | None = None
    for mount in sorted(seen, key=_is_copy):
        if mount.fs_type == "cgroup2":
            v2 = v2 or mount
        elif mount.fs_type == "cgroup":
            for name in _controllers(mount):
                v1.setdefault(name, mount)
    if v2 is None and not v1:
        return Unread(mountinfo.PATHS[0], "absent", "no cgroup tree is mounted")
    used = [*v1.values(), *([v2] if v2 else [])]
    return CgroupLayout(
        v1={name: mount.mount_point for name, mount in v1.items()},
        v2=v2.mount_point if v2 else None,
        v2_controllers=_v2_controllers(host, v2.mount_point if v2 else None),
        roots={mount.mount_point: mount.root for mount in used if mount.root != "/"},
    )


def _is_copy(mount: Mount) -> tuple[bool, bool]:
    """Sorts a whole tree at its usual place before parts of it and copies elsewhere."""
    return mount.root != "/", not mount.mount_point.startswith(USUAL_PLACE)


def _controllers(mount: Mount) -> Iterable[str]:
    for word in mount.super_options:
        name, equals, _ = word.partition("=")
        if name == "name" if equals else name not in _NO_CONTROLLERS:
            yield word


def _v2_controllers(host: Host, mount_point: str | None) -> tuple[str, ...]:
    if mount_point is None:
        return ()
    data = host.read(file_path(mount_point, "/", "cgroup.controllers"))
    return () if isinstance(data, Unread) else tuple(decode_name(data[:4096]).split())


def _usual_layout(host: Host) -> CgroupLayout | None:
    """What a tree of copied files tells by its folders alone; None without any."""
    names = host.names(USUAL_PLACE)
    if isinstance(names, Unread):
        return None
    if "cgroup.controllers" in names or "cgroup.procs" in names:
        controllers = _v2_controllers(host, USUAL_PLACE)
        return CgroupLayout(v1={}, v2=USUAL_PLACE, v2_controllers=controllers)
    folders = [name[:-1] for name in names if name[-1:] == "/"]
    v1 = {
        "name=systemd" if name == "systemd" else name: f"{USUAL_PLACE}/{folder}"
        for folder in folders
        if folder != "unified"
        for name in folder.split(",")
    }
    v2 = f"{USUAL_PLACE}/unified" if "unified" in folders else None
    return CgroupLayout(v1=v1, v2=v2, v2_controllers=_v2_controllers(host, v2))


def read(host: Host) -> Cgroups | Unread:
    """Walk the tree and read every cgroup.procs of it."""
    layout = read_layout(host)
    if isinstance(layout, Unread):
        return layout
    mount_point = layout.memory_tree
    if mount_point is None:
        return Unread(USUAL_PLACE, "absent", "no cgroup tree that counts memory or units")
    walk = CgroupWalk(host, mount_point)
    found = list(walk.results())
    if not found:
        return walk.unread[0] if walk.unread else Unread(mount_point, "absent", "nothing there")
    pids, gone, unread = _read_procs(host, mount_point, found)
    return Cgroups(
        layout,
        tuple(cgroup.path for cgroup in found if cgroup.path not in gone),
        mount_point,
        pids,
        tuple(walk.unread + unread),
    )


def _read_procs(
    host: Host, mount_point: str, found: list[CgroupWalkResult]
) -> tuple[dict[str, tuple[int, ...]], set[str], list[Unread]]:
    """cgroup.procs by path; the cgroups that went away since they were listed; the unread."""
    pids: dict[str, tuple[int, ...]] = {}
    gone: set[str] = set()
    unread: list[Unread] = []
    files = [file_path(mount_point, cgroup.path, "cgroup.procs") for cgroup in found]
    for cgroup, file, data in zip(found, files, host.read_each(files), strict=True):
        if isinstance(data, bytes):
            if not _PROCS.match(data):
                unread.append(Unread(file, "malformed", "expected one pid a line"))
            elif members := tuple(pid for pid in map(int, data.split()) if pid):
                pids[cgroup.path] = members
        elif data.why in ("absent", "vanished"):
            if _is_gone(host, cgroup, file):
                gone.add(cgroup.path)
        else:
            unread.append(data)
    return pids, gone, unread


def _is_gone(host: Host, cgroup: CgroupWalkResult, file: str) -> bool:
    """Whether a cgroup without cgroup.procs was removed.

    A threaded cgroup is there and answers EOPNOTSUPP: its nearest domain lists its members.
    """
    if cgroup.files is None or "cgroup.procs" not in cgroup.files:
        return False
    return isinstance(host.names(file.removesuffix("/cgroup.procs")), Unread)
