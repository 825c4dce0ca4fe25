# SPDX-License-Identifier: Apache-2.0
"""Where the cgroup trees are: /proc/self/mountinfo (filesystems/proc.rst 3.5, since 2.6.26).

Pure: text in, ``Mounts`` out.  The readings have a parser of the same file; this one is for the
guard, whose process holds no dataclasses.
"""

import re
from typing import Final, NamedTuple

from seawall.actions.orders import Mounts
from seawall.problems import UsageProblem

_OCTAL: Final = re.compile(r"\\([0-3][0-7]{2})")
_USUAL: Final = "/sys/fs/cgroup"


class _Mount(NamedTuple):
    number: int
    parent: int
    root: str
    point: str
    kind: str
    options: tuple[str, ...]


def find_mounts(mountinfo_text: str) -> Mounts:
    """The trees of version 1, version 2 or a hybrid host.

    The memory tree is v1's where that controller is mounted, else the v2 tree.  What a later
    mount hides, and what shows a part of a tree only, is passed over.  UsageProblem when no tree
    counts memory.
    """
    seen = _visible([_mount(line) for line in mountinfo_text.split("\n") if " - " in line])
    memory = _best([m for m in seen if m.kind == "cgroup" and "memory" in m.options])
    freezer = _best([m for m in seen if m.kind == "cgroup" and "freezer" in m.options])
    unified = _best([m for m in seen if m.kind == "cgroup2"])
    if memory:
        return Mounts(memory, 1, freezer, unified)
    if unified:
        return Mounts(unified, 2, None, unified)
    raise UsageProblem(
        "no cgroup tree that counts memory is mounted whole: in a container, mount the host's "
        f"{_USUAL}; on a host, mount -t cgroup2 cgroup2 {_USUAL}"
    )


def _mount(line: str) -> _Mount:
    # Optional fields (shared:N, master:N, ...) stand before the dash, any number of them.
    head, _, tail = line.partition(" - ")
    words, rest = head.split(" "), tail.split(" ")
    if len(words) < 6 or len(rest) < 2 or not (words[0] + words[1]).isdigit():
        return _Mount(0, 0, "", "", "", ())
    options = tuple(rest[2].split(",")) if len(rest) > 2 else ()
    return _Mount(
        int(words[0]), int(words[1]), _plain(words[3]), _plain(words[4]), rest[0], options
    )


def _plain(field: str) -> str:
    r"""Undo ``\040`` and the like, which stand for bytes of a name."""
    if "\\" not in field:
        return field
    raw = _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
    try:
        return raw.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # the rest of the name was no escape
        return raw


def _visible(mounts: list[_Mount]) -> list[_Mount]:
    """Without those that another mount lies over: at its place or above it, later, and not what
    it is mounted on itself (after pivot_root the root stands behind its children).
    """
    parents = {m.number: m.parent for m in mounts}
    shown = []
    for at, mount in enumerate(mounts):
        below, number = {mount.number}, mount.parent
        while number in parents and number not in below:
            below.add(number)
            number = parents[number]
        if not any(o.number not in below and _covers(o, mount) for o in mounts[at + 1 :]):
            shown.append(mount)
    return shown


def _covers(over: _Mount, mount: _Mount) -> bool:
    if over.point == "/":  # the root that we see, whose children may be listed before it
        return False
    return mount.point == over.point or mount.point.startswith(f"{over.point}/")


def _best(found: list[_Mount]) -> str | None:
    """The one that shows the whole tree; below /sys/fs/cgroup when there are several.

    In a cgroup namespace of its own a container's tree has root ``/`` and the host's ``/../..``:
    the more of them, the nearer to the top.  Any other root is a part of the tree.
    """
    whole = [m for m in found if not set(m.root.split("/")) - {"", ".."}]
    if not whole:
        return None
    best = max(whole, key=lambda m: (m.root.count(".."), m.point.startswith(_USUAL)))
    return best.point.rstrip("/") or "/"
