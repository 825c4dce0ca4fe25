# SPDX-License-Identifier: Apache-2.0
"""Where a cgroup of one's own can be made: below the one that this process was started in, or
below ``--parent``, in every tree whose controller is needed.

Kernel documents: admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst "Organizing
Processes and Threads", "Controlling Controllers".
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from seawall.lab.small_files import read_number, read_table, read_text
from seawall.problems import ParseProblem, UsageProblem
from seawall.readings.cgroup import parse_proc_cgroup
from seawall.readings.mountinfo import Mount, parse

V1_WANTED: Final = ("memory", "pids", "blkio")
V2_WANTED: Final = ("memory", "pids", "io")
_UNLIMITED: Final = 2**63 - (64 << 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupParent:
    """The parents of the lab's cgroup."""

    version: Literal[1, 2]
    parents: Mapping[str, str]
    """controller -> folder of the parent; ``memory`` is always there.  v2: one folder."""
    mount_point: str
    """Of the tree that counts memory."""
    unusable: Mapping[str, str] = field(default_factory=dict)
    """controller -> why it cannot be used here; the run goes on without it."""
    delegated: bool = False
    """v2: the parent holds this process alone, so the lab may step aside and hand memory on."""

    @property
    def memory(self) -> str:
        """The parent's folder in the tree that counts memory."""
        return self.parents["memory"]

    def path_of(self, folder: str) -> str:
        """A folder of the memory tree as the path that ``seawall pods`` shows."""
        return folder.removeprefix(self.mount_point.rstrip("/")) or "/"


@dataclass(frozen=True, slots=True)
class Tree:
    """One mounted cgroup tree."""

    version: Literal[1, 2]
    mount_point: str
    root: str
    controllers: tuple[str, ...]


def find_cgroup_parent(parent: str | None) -> CgroupParent:
    """Where the lab's cgroup goes; UsageProblem with what is missing and what provides it."""
    if parent is not None and not parent.strip():
        raise UsageProblem("--parent is empty: name a cgroup, or / for the root")
    trees = list(mounted_trees())
    own = _own_paths()
    found = {tree_controller: tree for tree in trees for tree_controller in tree.controllers}
    if "memory" in found and found["memory"].version == 1:
        return _v1_home(found, own, parent)
    v2 = next((tree for tree in trees if tree.version == 2), None)
    if v2 is None:
        raise UsageProblem(
            "no cgroup tree that counts memory is mounted here: mount -t cgroup2 cgroup2 "
            "/sys/fs/cgroup (or run where it is: on the host, or in a privileged container)"
        )
    return _v2_home(v2, own, parent)


def mounted_trees() -> Iterator[Tree]:
    """Those that this process sees; a whole tree before a part of it."""
    try:
        mounts = parse(read_text("/proc/self/mountinfo").encode("utf-8", "surrogateescape")).mounts
    except (OSError, ParseProblem) as error:
        raise UsageProblem(f"/proc/self/mountinfo: {error}") from error
    seen = {mount.mount_point: mount for mount in mounts}.values()
    for mount in sorted(seen, key=lambda m: m.root == "/"):  # a later one wins in a dict
        if mount.fs_type == "cgroup2":
            yield Tree(2, mount.mount_point, mount.root, ())
        elif mount.fs_type == "cgroup":
            yield Tree(1, mount.mount_point, mount.root, _controllers(mount))


def _controllers(mount: Mount) -> tuple[str, ...]:
    return tuple(name for name in V1_WANTED if name in mount.super_options)


def _own_paths() -> Mapping[str, str]:
    """The cgroup of this process by controller; "" for v2."""
    try:
        return parse_proc_cgroup(os.fsencode(read_text("/proc/self/cgroup")))
    except (OSError, ParseProblem) as error:
        raise UsageProblem(f"/proc/self/cgroup: {error}") from error


def _folder(tree: Tree, own_path: str | None, parent: str | None) -> str | None:
    """The parent's folder in this tree; None when it is not there."""
    if parent is not None:
        inside = parent.rstrip("/") + "/"
        if inside.startswith(tree.mount_point.rstrip("/") + "/"):
            path = inside[len(tree.mount_point.rstrip("/")) :]
        else:
            path = inside
    elif own_path is None:
        return None
    elif tree.root in ("/", own_path) or own_path.startswith(tree.root + "/"):
        path = own_path if tree.root == "/" else own_path[len(tree.root) :]
    else:
        return None
    folder = os.path.normpath(tree.mount_point + "/" + path.strip("/"))
    inside_tree = (folder + "/").startswith(tree.mount_point.rstrip("/") + "/")
    return folder if inside_tree and os.path.isfile(f"{folder}/cgroup.procs") else None


def _v1_home(found: Mapping[str, Tree], own: Mapping[str, str], parent: str | None) -> CgroupParent:
    memory = found["memory"]
    home = _needed(_folder(memory, own.get("memory"), parent), memory, own.get("memory"), parent)
    # --parent may be a folder of the memory tree: the same cgroup has another one elsewhere.
    if parent is not None:
        parent = home.removeprefix(memory.mount_point.rstrip("/")) or "/"
    parents, unusable = {"memory": home}, {}
    for name in V1_WANTED[1:]:
        if name not in found:
            mount = f"mount -t cgroup -o {name} {name} /sys/fs/cgroup/{name}"
            unusable[name] = f"no tree of it is mounted here: {mount}"
            continue
        folder = _folder(found[name], own.get(name), parent)
        if folder is None:
            unusable[name] = f"{parent or own.get(name)} is not in the tree of {name}"
        elif not os.access(folder, os.W_OK):
            unusable[name] = f"{folder} is not writable"
        else:
            parents[name] = folder
    return CgroupParent(
        version=1, parents=parents, mount_point=memory.mount_point.rstrip("/"), unusable=unusable
    )


def _v2_home(tree: Tree, own: Mapping[str, str], parent: str | None) -> CgroupParent:
    home = _needed(_folder(tree, own.get(""), parent), tree, own.get(""), parent)
    offered = _words(f"{home}/cgroup.controllers")
    handed_on = _words(f"{home}/cgroup.subtree_control")
    mount_point = tree.mount_point.rstrip("/")
    delegated = False
    if "memory" not in handed_on:
        if "memory" not in offered:
            raise UsageProblem(
                f"{home}: no memory controller there (cgroup.controllers: "
                f"{' '.join(offered) or 'empty'}); {_elsewhere(home, mount_point)}"
            )
        # With processes in it and a controller handed on (only pids and cpu can be), it is the
        # root of threads: nobody can step aside below it.
        is_free = _is_alone(home) and not handed_on
        delegated = is_free and os.access(f"{home}/cgroup.subtree_control", os.W_OK)
        if not delegated:
            raise UsageProblem(_not_handed_on(home, mount_point))
        handed_on = offered
    unusable = {
        name: f"{home}/cgroup.subtree_control does not hand it on: echo +{name} there"
        for name in V2_WANTED[1:] if name not in handed_on
    }  # fmt: skip
    parents = {name: home for name in V2_WANTED if name not in unusable}
    return CgroupParent(
        version=2, parents=parents, mount_point=mount_point, unusable=unusable, delegated=delegated
    )


def _needed(folder: str | None, tree: Tree, own: str | None, parent: str | None) -> str:
    """The folder, when something can be made in it."""
    if folder is None and parent is not None:
        raise UsageProblem(f"--parent {parent}: no such cgroup below {tree.mount_point}")
    if folder is None:
        raise UsageProblem(
            f"the cgroup of this process, {own}, is not below {tree.mount_point}, where {tree.root}"
            " is mounted; give a --parent that is, or run on the host"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        readonly = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
        way = (
            "it is mounted read-only: run on the host or in a privileged container"
            if readonly
            else "not writable for this user: run as root, or in a delegated unit "
            "(systemd-run --user --scope -p Delegate=yes seawall lab ...)"
        )
        raise UsageProblem(f"{folder}: {way}")
    return folder


def _words(path: str) -> Sequence[str]:
    try:
        return read_text(path).split()
    except OSError:
        return ()


def _is_alone(folder: str) -> bool:
    """Whether this process is the only one of the cgroup, and not in the root."""
    return _words(f"{folder}/cgroup.procs") == [str(os.getpid())] and os.path.exists(
        f"{folder}/cgroup.type"
    )


def _not_handed_on(home: str, mount_point: str) -> str:
    if home == mount_point or not _words(f"{home}/cgroup.procs"):
        way = f"write it there: echo +memory > {home}/cgroup.subtree_control"
    else:
        way = "processes in it forbid that"
    return (
        f"{home}/cgroup.subtree_control does not hand memory on, so no cgroup below could have a "
        f"limit; {way}; {_elsewhere(home, mount_point)}"
    )


def _elsewhere(home: str, mount_point: str) -> str:
    """The nearest cgroup above that would do, else systemd's way."""
    systemd = "with systemd: systemd-run --scope -p Delegate=yes seawall lab ..."
    while len(home) > len(mount_point):
        home = os.path.dirname(home)
        if "memory" in _words(f"{home}/cgroup.subtree_control"):
            return f"--parent {home[len(mount_point) :] or '/'} would do, or {systemd}"
    return systemd


def room_above(home: CgroupParent) -> tuple[int | None, str]:
    """What the limits of the parent and of those above it leave at least, in bytes, and the
    cgroup that leaves so little.  Page cache that can be dropped counts as left.
    """
    least, whose = None, ""
    folder = home.memory
    while folder.startswith(home.mount_point):
        room = _room(home.version, folder)
        if room is not None and (least is None or room < least):
            least, whose = room, home.path_of(folder)
        if folder == home.mount_point:
            break
        folder = os.path.dirname(folder)
    return least, whose


def _room(version: int, folder: str) -> int | None:
    v1 = (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_")
    # Above memory.high nobody is killed, but everybody in it is held up.
    v2 = (("memory.max", "memory.high"), "memory.current", "")
    limit_files, usage_file, total = v1 if version == 1 else v2
    found = [read_number(f"{folder}/{name}") for name in limit_files]
    limits = [limit for limit in found if limit is not None and limit < _UNLIMITED]
    usage = read_number(f"{folder}/{usage_file}")
    if not limits or usage is None:
        return None
    stat = read_table(f"{folder}/memory.stat")
    cache = stat.get(f"{total}active_file", 0) + stat.get(f"{total}inactive_file", 0)
    return min(limits) - usage + min(cache, usage)


def pids_left(home: CgroupParent) -> int | None:
    """How many processes may still be started here: the pids limits above and pid_max."""
    most = read_number("/proc/sys/kernel/pid_max")
    try:
        running = int(read_text("/proc/loadavg").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return None
    left = None if most is None else most - running
    folder = home.parents.get("pids", "")
    while folder.count("/") > 1:
        limit = read_number(f"{folder}/pids.max")
        current = read_number(f"{folder}/pids.current")
        if limit is not None and current is not None:
            left = limit - current if left is None else min(left, limit - current)
        folder = os.path.dirname(folder)
    return left
