# SPDX-License-Identifier: Apache-2.0
"""Which files of a cgroup are kept: of every one a few, of those that lead all of them.

A folder is kept with the names of just these files, so whoever reads the record asks for nothing
else and misses nothing.  The last file of a list is the one that tells that the cgroup was still
there (``readings/memcg.py``).  A cgroup that vanishes meanwhile leaves ``absent`` behind.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from seawall.actions.orders import Mounts
from seawall.host.host import Host, Unread
from seawall.host.recording import Round

EACH: Final = {
    1: ("cgroup.procs", "memory.failcnt", "memory.limit_in_bytes", "memory.oom_control",
        "memory.usage_in_bytes"),
    2: ("cgroup.events", "cgroup.procs", "memory.events", "memory.max", "memory.current"),
}  # fmt: skip
"""Who is in it, how near its limit it is, whether somebody was killed there."""
WHOLE: Final = {
    1: (*EACH[1][:-1], "memory.kmem.usage_in_bytes", "memory.max_usage_in_bytes",
        "memory.memsw.failcnt", "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes",
        "memory.soft_limit_in_bytes", "memory.stat", "memory.use_hierarchy", EACH[1][-1]),
    2: (*EACH[2][:-1], "cgroup.stat", "io.pressure", "memory.events.local", "memory.high",
        "memory.low", "memory.min", "memory.oom.group", "memory.peak", "memory.pressure",
        "memory.stat", "memory.swap.current", "memory.swap.max", EACH[2][-1]),
}  # fmt: skip
QUICK: Final = {
    1: ("memory.failcnt", "memory.oom_control", "memory.stat", "memory.usage_in_bytes"),
    2: ("memory.events", "memory.pressure", "memory.stat", "memory.swap.current",
        "memory.current"),
}  # fmt: skip
"""What moves."""
GROUPS_MOST: Final = 20_000
_NEAR_SHARE: Final = 0.9
_NEAR_MOST: Final = 24


def quick(host: Host, mounts: Mounts, paths: Collection[str], into: Round) -> None:
    """What moves in these cgroups."""
    for path in paths:
        _read(host, mounts.memory + path.rstrip("/"), QUICK[mounts.version], into)


def walk(host: Host, mounts: Mounts, leading: Collection[str], into: Round) -> Iterator[None]:
    """Every cgroup of the tree that counts memory, one a step, parents first."""
    few, whole = EACH[mounts.version], WHOLE[mounts.version]
    near_left = _NEAR_MOST
    todo = [""]
    for _ in range(GROUPS_MOST):
        if not todo:
            return
        path = todo.pop()
        folder = mounts.memory + path
        names = host.names(folder)
        if isinstance(names, Unread):
            into.names[folder] = names
            continue
        is_whole = not path or path in leading
        if not is_whole:
            _keep(host, folder, names, few, into)
            if near_left and _is_near(mounts, folder, into):
                is_whole, near_left = True, near_left - 1
        if is_whole:
            _keep(host, folder, names, whole, into)
        below = [name[:-1] for name in names if name.endswith("/")]
        todo += [f"{path}/{name}" for name in reversed(below)]
        yield


def _keep(
    host: Host, folder: str, names: tuple[str, ...], wanted: tuple[str, ...], into: Round
) -> None:
    there, kept = set(names), set(wanted)
    _read(host, folder, [name for name in wanted if name in there], into)
    into.names[folder] = tuple(name for name in names if name in kept or name.endswith("/"))


def _read(host: Host, folder: str, names: Sequence[str], into: Round) -> None:
    paths = [f"{folder}/{name}" for name in names]
    into.files.update(zip(paths, host.read_each(paths), strict=True))


def _is_near(mounts: Mounts, folder: str, known: Round) -> bool:
    """Whether it is about to hit its own limit: then all of it is of interest."""
    *_, use = EACH[mounts.version]
    limit = "memory.max" if mounts.version == 2 else "memory.limit_in_bytes"
    charge, most = known.files.get(f"{folder}/{use}"), known.files.get(f"{folder}/{limit}")
    if not isinstance(charge, bytes) or not isinstance(most, bytes):
        return False
    if not charge.strip().isdigit() or not most.strip().isdigit():
        return False  # max
    return int(charge) >= _NEAR_SHARE * int(most)
