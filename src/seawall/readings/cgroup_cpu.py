# SPDX-License-Identifier: Apache-2.0
"""What each cgroup may have of the processors: cpu.max and cpu.weight; v1 quota and shares.

Kernel documents: admin-guide/cgroup-v2.rst "CPU", scheduler/sched-bwc.rst.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings import cgroup
from seawall.readings.cgroup_tree import CgroupWalk, file_path, one_number
from seawall.readings.reading import UNLIMITED, Unlimited, parse_number, parse_signed

_V2_FILES: Final = ("cpu.max", "cpu.weight")
_V1_FILES: Final = ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCgroup:
    """One cgroup; ``None``: the other version has it, or it could not be read."""

    path: str
    limit_cores: float | Unlimited | None
    """Quota / period; null: none."""
    shares: int | None
    """v1; 1024 is the default, and what a container of Kubernetes gets for each core asked."""
    weight: int | None
    """v2; 100 is the default.  Runtimes disagree how shares become weights."""


@dataclass(frozen=True, slots=True)
class CpuCgroups:
    """The topic: what each cgroup may have of the processors, by its path."""

    by_path: Mapping[str, CpuCgroup]
    unread: tuple[Unread, ...] = ()


def parse_max(data: bytes) -> float | Unlimited:
    """cpu.max: ``QUOTA PERIOD`` in microseconds, or ``max PERIOD``; cores."""
    words = data.split()
    if len(words) != 2:
        raise ParseProblem(1, "'QUOTA PERIOD'", data)
    period = parse_number(words[1], 1, "the period")
    if words[0] == b"max":
        return UNLIMITED
    return _cores(parse_number(words[0], 1, "the quota"), period)


def parse_quota(quota: bytes, period: bytes) -> float | Unlimited:
    """v1: a quota of -1 is none."""
    microseconds = parse_signed(quota.strip(), 1, "the quota")
    return UNLIMITED if microseconds < 0 else _cores(microseconds, one_number(period))


def _cores(quota: int, period: int) -> float:
    if period == 0:
        raise ParseProblem(1, "a period above 0", b"0")
    return quota / period


def read(host: Host) -> CpuCgroups | Unread:
    """Walk the tree that has the cpu controller."""
    layout = cgroup.read_layout(host)
    if isinstance(layout, Unread):
        return layout
    where = layout.controller("cpu")
    if where is None:
        return Unread(layout.v2 or cgroup.USUAL_PLACE, "absent", "no cpu controller is mounted")
    version, mount_point = where
    names = _V1_FILES if version == 1 else _V2_FILES
    walk = CgroupWalk(host, mount_point)
    paths = [
        found.path for found in walk.results() if found.files is None or names[-1] in found.files
    ]
    files = [file_path(mount_point, path, name) for path in paths for name in names]
    answers = host.read_each(files)
    by_path: dict[str, CpuCgroup] = {}
    for path in paths:
        told = [next(answers) for _ in names]
        for problem in _sum(path, told, by_path):
            walk.unread.append(problem)
    return CpuCgroups(by_path, tuple(walk.unread))


def _sum(path: str, told: list[bytes | Unread], by_path: dict[str, CpuCgroup]) -> Iterator[Unread]:
    """Put one cgroup down; what was refused or malformed is given back."""
    data = [answer for answer in told if isinstance(answer, bytes)]
    if len(data) < len(told):
        missing = (answer for answer in told if isinstance(answer, Unread))
        yield from (answer for answer in missing if answer.why not in ("absent", "vanished"))
        return
    is_v1 = len(data) == len(_V1_FILES)
    try:
        limit = parse_quota(data[0], data[1]) if is_v1 else parse_max(data[0])
        rate = one_number(data[-1])
    except ParseProblem as problem:
        yield Unread(path, "malformed", str(problem))
        return
    by_path[path] = CpuCgroup(
        path=path, limit_cores=limit,
        shares=rate if is_v1 else None, weight=None if is_v1 else rate,
    )  # fmt: skip
