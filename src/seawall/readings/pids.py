# SPDX-License-Identifier: Apache-2.0
"""pids.current, pids.max and pids.events of every cgroup (both versions).

Kernel documents: admin-guide/cgroup-v1/pids.rst, admin-guide/cgroup-v2.rst "PID"; since 4.3,
pids.events since 4.8.  Tasks are counted, so threads are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings import cgroup
from seawall.readings.cgroup_tree import CgroupWalk, file_path, flat_keyed, one_limit, one_number
from seawall.readings.reading import Unlimited

_FILES: Final = ("pids.max", "pids.events", "pids.current")


@dataclass(frozen=True, slots=True, kw_only=True)
class PidsCgroup:
    """One cgroup with the pids controller; the root has none."""

    path: str
    current: int
    limit: int | Unlimited
    max_events: int | None
    """How often a fork was refused here (pids.events ``max``)."""


@dataclass(frozen=True, slots=True)
class PidsCgroups:
    """The topic: number of tasks and its limit in each cgroup, by path; the root has none."""

    by_path: Mapping[str, PidsCgroup]
    unread: tuple[Unread, ...] = ()


def read(host: Host) -> PidsCgroups | Unread:
    """Walk the tree that has the pids controller."""
    layout = cgroup.read_layout(host)
    if isinstance(layout, Unread):
        return layout
    where = layout.controller("pids")
    if where is None:
        return Unread(layout.v2 or cgroup.USUAL_PLACE, "absent", "no pids controller is mounted")
    walk = CgroupWalk(host, where[1])
    paths = [
        found.path
        for found in walk.results()
        if found.files is None or "pids.current" in found.files
    ]
    if not paths and walk.unread:
        return walk.unread[0]
    files = [file_path(where[1], path, name) for path in paths for name in _FILES]
    answers = iter(list(zip(files, host.read_each(files), strict=True)))
    unread = walk.unread
    by_path: dict[str, PidsCgroup] = {}
    for path in paths:
        three = [next(answers) for _ in _FILES]
        found = _sum(path, three, unread)
        if found:
            by_path[path] = found
    return PidsCgroups(by_path, tuple(unread))


def _sum(
    path: str, answers: list[tuple[str, bytes | Unread]], unread: list[Unread]
) -> PidsCgroup | None:
    """One cgroup; None when it is gone or could not be read, which ``unread`` then tells."""
    values: list[bytes] = []
    for file, answer in answers:
        if isinstance(answer, bytes):
            values.append(answer)
        elif answer.why == "absent" and file.endswith("pids.events"):
            values.append(b"")  # before 4.8
        else:
            if answer.why not in ("absent", "vanished"):
                unread.append(answer)
            return None
    try:
        return PidsCgroup(
            path=path,
            limit=one_limit(values[0]),
            max_events=flat_keyed(values[1]).get("max"),
            current=one_number(values[2]),
        )
    except ParseProblem as problem:
        unread.append(Unread(answers[0][0].rpartition("/")[0], "malformed", str(problem)))
        return None
