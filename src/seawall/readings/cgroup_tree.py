# SPDX-License-Identifier: Apache-2.0
"""Walking a cgroup tree, and the shapes of the files in it.

Kernel document: admin-guide/cgroup-v2.rst, "Interface File Formats".  The v1 memory and pids
controllers write the same shapes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.cgroup_paths import place_of
from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import UNLIMITED, Unlimited, decode_name, parse_number

CGROUPS_MOST: Final = 100_000
BELOW_MOST: Final = 1000
"""Of one container, user's manager or batch job, which may make as many as it likes: a node in a
container (kind) has about 500, a whole system 200.  The others' turn must come."""
DEPTH_MOST: Final = 64
FLAT_KEYED_BYTES_MOST: Final = 64 << 10  # memory.stat of 6.18 has 3 KB
_PLAIN: Final = re.compile(rb"(?:[\w.]{1,64} [0-9]{1,20}\n)*\Z")


@dataclass(frozen=True, slots=True)
class CgroupWalkResult:
    """One cgroup met by the walk."""

    path: str
    """Below the mount point; the root is ``/``."""
    files: frozenset[str] | None
    """The files in its folder; None when the folder could not be listed."""
    has_children: bool


class CgroupWalk:
    """One pass over the tree at ``mount_point``; ``unread`` fills while ``found`` is consumed.

    A cgroup that disappears meanwhile is not met.  One whose folder may not be listed is met,
    and what is below it is not.
    """

    def __init__(self, host: Host, mount_point: str) -> None:
        self._host = host
        self._mount_point = mount_point.rstrip("/")
        self.unread: list[Unread] = []

    def results(self) -> Iterator[CgroupWalkResult]:
        """Every cgroup, parents first, names in order."""
        todo = ["/"]
        count = 0
        owner, below_owner = "", 0
        while todo:
            path = todo.pop()
            if owner and path.startswith(owner + "/"):
                below_owner += 1
                if below_owner > BELOW_MOST:
                    self._leave(owner, todo)
                    continue
            else:
                owner = _delegated(path)
                below_owner = int(owner not in ("", path))
            count += 1
            if count > CGROUPS_MOST:
                words = f"more than {CGROUPS_MOST} cgroups; the others were not read"
                self.unread.append(Unread(self._mount_point, "too_big", words))
                return
            names = self._host.names(self._folder(path))
            if isinstance(names, Unread):
                if names.why in ("absent", "vanished"):
                    continue
                self.unread.append(names)
                if names.why == "not_reached":
                    return
                yield CgroupWalkResult(path, None, has_children=False)
                continue
            below = [name for name in names if name[-1:] == "/" and name != "/"]
            yield CgroupWalkResult(path, frozenset(names), has_children=bool(below))
            if below and path.count("/") >= DEPTH_MOST:
                words = f"cgroups nested deeper than {DEPTH_MOST} were not read"
                self.unread.append(Unread(self._folder(path), "too_big", words))
                continue
            parent = "" if path == "/" else path
            todo += [f"{parent}/{name[:-1]}" for name in reversed(below)]

    def _leave(self, owner: str, todo: list[str]) -> None:
        """What else is below it; parents come first, so it is the end of ``todo``."""
        while todo and todo[-1].startswith(owner + "/"):
            todo.pop()
        words = f"more than {BELOW_MOST} cgroups below it; the others were not read"
        self.unread.append(Unread(self._folder(owner), "too_big", words))

    def _folder(self, path: str) -> str:
        return self._mount_point + path if path != "/" else self._mount_point or "/"


def _delegated(path: str) -> str:
    """The cgroup below which somebody else makes as many as he likes, if it begins with ``path``;
    else empty.
    """
    place = place_of(path)
    if place.cgroup == path and (place.kind == "container" or place.job):
        return path
    return path.rpartition("/")[0] if place.is_delegated else ""


def file_path(mount_point: str, path: str, name: str) -> str:
    """Where a file of the cgroup ``path`` lies on the host."""
    return f"{mount_point.rstrip('/')}{path.rstrip('/')}/{name}"


def flat_keyed(data: bytes) -> dict[str, int]:
    """``KEY NUMBER`` lines; lines of any other shape than two words are skipped.

    ParseProblem when there are lines and not one of them is such a pair.
    """
    if len(data) > FLAT_KEYED_BYTES_MOST:
        raise ParseProblem(0, f"at most {FLAT_KEYED_BYTES_MOST} bytes", data)
    if _PLAIN.match(data):
        words = data.decode("ascii").split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))
    values: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        pair = line.split()
        if len(pair) == 2:
            values[decode_name(pair[0])] = parse_number(pair[1], number, decode_name(pair[0]))
    if not values and data.strip():
        raise ParseProblem(1, "lines of 'KEY NUMBER'", data)
    return values


def one_number(data: bytes) -> int:
    """A file that holds one number."""
    return parse_number(data.strip(), 1, "a value")


def one_limit(data: bytes) -> int | Unlimited:
    """A file that holds one number or ``max``."""
    text = data.strip()
    return UNLIMITED if text == b"max" else parse_number(text, 1, "a limit or 'max'")
