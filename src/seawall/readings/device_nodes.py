# SPDX-License-Identifier: Apache-2.0
"""The probe ``device_nodes``: nodes below /dev on the host and as containers see them.

A container made its own /dev: any name, any number, any mode may be in it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from seawall.host.host import JSON, Host, Unread
from seawall.readings.device_rule import NUMBER_MOST, Kind
from seawall.readings.probe_answer import each, number, reason

PROBE = "device_nodes"
TOGETHER_MOST: Final = 64
"""Processes in one question."""
SILENCES_MOST: Final = 4
"""Each costs a deadline; after so many the others are not asked one by one."""
_PATH_MOST: Final = 4096
_NUMBERS: Final = re.compile(r"([0-9]{1,10}):([0-9]{1,10})\Z")


class DeviceNode(NamedTuple):
    """A device node, not followed through links."""

    path: str
    """As the one who has that /dev calls it: ``/dev/nvidia-uvm``."""
    kind: Kind
    major: int
    minor: int
    mode: int
    """Permission bits."""
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class DeviceNodes:
    """The topic: the host's /dev, and what /dev/char links to what."""

    by_path: Mapping[str, DeviceNode]
    char_links: Mapping[tuple[int, int], str]
    """(major, minor) -> target text of /dev/char/M:m."""
    left_out: int
    ctime_by_path: Mapping[str, int] = field(default_factory=dict)
    """Path -> the Unix second at which the node was made, or last had its mode or owner changed
    (ctime); what is not in it was not told."""


def read(host: Host) -> DeviceNodes | Unread:
    """The host's /dev, asked by the probe; Unread where it cannot be listed."""
    answer = host.ask(PROBE, _argument(()))
    if isinstance(answer, Unread):
        return answer
    told = answer.get("host") if isinstance(answer, dict) else None
    values = told if isinstance(told, dict) else {}
    nodes, links = each(values.get("nodes"), _node), each(values.get("links"), _link)
    left_out = number(values.get("left_out"))
    if nodes is None or links is None or left_out is None:
        return Unread(PROBE, "malformed", "expected nodes, links and left_out of the host")
    changed = _changed(values.get("changed"))
    return DeviceNodes({node.path: node for node in nodes}, dict(links), left_out, changed)


def _changed(value: JSON) -> dict[str, int]:
    """Only what helps; whatever else it is is left out."""
    told = value if isinstance(value, dict) else {}
    return {path: when for path, one in told.items() if (when := _count(one)) is not None}


def ask(host: Host, pids: tuple[int, ...]) -> Mapping[int, Mapping[str, DeviceNode] | Unread]:
    """The /dev of each process's mount namespace.  One that hangs spoils no other's answer."""
    found: dict[int, Mapping[str, DeviceNode] | Unread] = {}
    wanted = sorted(set(pids))
    silences = 0
    for start in range(0, len(wanted), TOGETHER_MOST):
        some = wanted[start : start + TOGETHER_MOST]
        answer = host.ask(PROBE, _argument(some))
        if _is_silent(answer) and len(some) > 1:
            for pid, alone in _one_by_one(host, some, SILENCES_MOST - silences):
                silences += _is_silent(alone)
                found[pid] = _of_pid(alone, pid)
            continue
        found |= {pid: _of_pid(answer, pid) for pid in some}
    return found


def _one_by_one(
    host: Host, pids: Sequence[int], silences_left: int
) -> Iterator[tuple[int, JSON | Unread]]:
    for pid in pids:
        if silences_left <= 0:
            words = "others' /dev did not answer, so this one was not asked"
            yield pid, Unread(f"/proc/{pid}/root/dev", "not_reached", words)
            continue
        answer = host.ask(PROBE, _argument((pid,)))
        silences_left -= _is_silent(answer)
        yield pid, answer


def _is_silent(answer: JSON | Unread) -> bool:
    return isinstance(answer, Unread) and answer.why == "no_answer"


def _argument(pids: Sequence[int]) -> str:
    return json.dumps({"pids": list(pids)})


def _of_pid(answer: JSON | Unread, pid: int) -> Mapping[str, DeviceNode] | Unread:
    path = f"/proc/{pid}/root/dev"
    if isinstance(answer, Unread):
        return Unread(path, answer.why, answer.detail)
    rows = answer.get("pids") if isinstance(answer, dict) else None
    row = rows.get(str(pid)) if isinstance(rows, dict) else None
    values = row if isinstance(row, dict) else {}
    if (problem := reason(path, values.get("problem"))) is not None:
        return problem
    nodes, left_out = each(values.get("nodes"), _node), number(values.get("left_out"))
    if nodes is None or left_out is None:
        return Unread(path, "malformed", "expected nodes and left_out")
    if left_out:
        return Unread(path, "too_big", f"{left_out} more nodes than are read")
    return {node.path: node for node in nodes}


def _node(value: JSON) -> DeviceNode | None:
    """One row ``[path, kind, major, minor, mode, uid, gid]``."""
    if not isinstance(value, list) or len(value) != 7 or value[1] not in ("c", "b"):
        return None
    path, counts = value[0], each(value[2:], _count)
    if not isinstance(path, str) or not path.startswith("/") or len(path) > _PATH_MOST:
        return None
    if counts is None:
        return None
    major, minor, mode, uid, gid = counts
    return DeviceNode(path, cast("Kind", value[1]), major, minor, mode & 0o7777, uid, gid)


def _count(value: JSON) -> int | None:
    count = number(value)
    return count if count is not None and count <= NUMBER_MOST else None


def _link(value: JSON) -> tuple[tuple[int, int], str] | None:
    """One row ``["195:255", "../nvidiactl"]``."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    numbers, target = value
    if not isinstance(numbers, str) or not isinstance(target, str) or len(target) > _PATH_MOST:
        return None
    match = _NUMBERS.match(numbers)
    return ((int(match[1]), int(match[2])), target) if match else None
