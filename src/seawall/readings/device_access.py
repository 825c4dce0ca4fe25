# SPDX-License-Identifier: Apache-2.0
"""The probe ``device_access``: whether a container may use a device, by trying.

A child joins the container's device cgroup and its mount namespace and asks faccessat(2) for
reading and writing: devcgroup_inode_permission runs inside inode_permission
(security/device_cgroup.c), so that the driver is not touched.  EPERM: the device cgroup.
ENOENT: no node.  EACCES: file mode.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.probe_answer import each, number, reason

PROBE = "device_access"
TOGETHER_MOST: Final = 200
"""Targets in one question."""
SILENCES_MOST: Final = 4
"""Each costs a deadline; after so many the others are not asked one by one."""
_NOT_ASKED: Final = "others did not answer, so this one was not asked"
_ERRNO_MOST: Final = 4095  # MAX_ERRNO, include/linux/err.h


class AccessTarget(NamedTuple):
    """One process of a container, and which paths to try as it would."""

    pid: int
    start_ticks: int
    """With the pid it identifies the process."""
    paths: tuple[str, ...]


class Tried(NamedTuple):
    """What the kernel answered for one path."""

    path: str
    errno: int
    """0: reading and writing are allowed; of a node that nobody may write, reading."""
    kind: str | None
    """``c``, ``b``, ``other`` (a file, FIFO, link to nowhere); None: not there."""
    major: int | None
    minor: int | None
    mode: int | None
    open_errno: int | None
    """Of open(2), only when that was asked for; None: not asked."""


@dataclass(frozen=True, slots=True)
class Access:
    """Of one target, or why it could not be tried."""

    tried: Mapping[str, Tried]
    problem: Unread | None


def ask(
    host: Host, targets: Sequence[AccessTarget], *, opens: bool = False
) -> Mapping[int, Access]:  # fmt: skip
    """By pid.  One question for all; a target that hangs spoils no other's answer."""
    found: dict[int, Access] = {}
    silences = 0
    for start in range(0, len(targets), TOGETHER_MOST):
        some = targets[start : start + TOGETHER_MOST]
        answer = host.ask(PROBE, _argument(some, opens=opens))
        if len(some) == 1 or not _is_silent(answer):
            found |= {target.pid: _access(answer, target) for target in some}
            continue
        for target in some:
            alone: JSON | Unread = Unread(PROBE, "not_reached", _NOT_ASKED)
            if silences < SILENCES_MOST:
                alone = host.ask(PROBE, _argument([target], opens=opens))
                silences += _is_silent(alone)
            found[target.pid] = _access(alone, target)
    return found


def _is_silent(answer: JSON | Unread) -> bool:
    return isinstance(answer, Unread) and answer.why == "no_answer"


def _argument(targets: Sequence[AccessTarget], *, opens: bool) -> str:
    rows = [[target.pid, target.start_ticks, list(target.paths)] for target in targets]
    return json.dumps({"targets": rows, "opens": opens})


def _access(answer: JSON | Unread, target: AccessTarget) -> Access:
    """What the answer says of one target; what was not asked for is not believed."""
    path = f"/proc/{target.pid}/root"
    if isinstance(answer, Unread):
        return Access({}, Unread(path, answer.why, answer.detail))
    rows = answer.get("targets") if isinstance(answer, dict) else None
    row = rows.get(str(target.pid)) if isinstance(rows, dict) else None
    values = row if isinstance(row, dict) else {}
    tried = each(values.get("tried"), _tried)
    problem = reason(path, values.get("problem"))
    if tried is None and problem is None:
        problem = Unread(path, "malformed", "expected what was tried")
    asked = set(target.paths)
    return Access({one.path: one for one in tried or () if one.path in asked}, problem)


def _tried(value: JSON) -> Tried | None:
    """One row ``[path, errno, kind, major, minor, mode, open_errno]``."""
    if not isinstance(value, list) or len(value) != 7:
        return None
    path, errno, kind = value[0], _errno(value[1]), value[2]
    if not isinstance(path, str) or errno is None or kind not in (None, "c", "b", "other"):
        return None
    counts = [number(one) for one in value[3:6]]
    open_errno = None if value[6] is None else _errno(value[6])
    is_node = kind in ("c", "b")
    if (is_node and None in counts) or (open_errno is None) != (value[6] is None):
        return None
    major, minor, mode = counts
    return Tried(path, errno, kind, major, minor, mode, open_errno)


def _errno(value: JSON) -> int | None:
    count = number(value)
    return count if count is not None and count <= _ERRNO_MOST else None
