# SPDX-License-Identifier: Apache-2.0
"""Faults that the kernel's log tells of: Xids, disks, hung tasks, heat, daemons killed for memory.

The log is a ring: what is no longer in it was not mended by that.  An Xid of hardware is told as
long as it is there and the driver was not loaded again after it.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, NodeUnseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import JSON
from seawall.words import counted
from seawall.xid_names import HARDWARE_XIDS, xid_words

LATE_SECONDS: Final = 3600.0
"""What may pass by itself is told for an hour."""


_NO_DISKS: Final = ("loop", "ram", "zram")


class _Line(NamedTuple):
    at: float
    kind: str
    word: str
    number: int


def xids(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Of hardware, once a device and number; what a program causes (13, 31, 43, ...) is none."""
    del wanted
    lines, _ = _lines(answer)
    loaded = max((line.at for line in lines if line.kind == "driver_loaded"), default=0.0)
    found = {
        (line.word, line.number): None for line in lines
        if line.kind == "xid" and line.at >= loaded and line.number in HARDWARE_XIDS
    }  # fmt: skip
    for address, number in found:
        yield NodeFault(f"{xid_words(number)} of the GPU at {address}")
    yield from _whole(answer)


def hung(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Tasks that the kernel called hung within the last hour."""
    del wanted
    recent = _recent(answer, "hung")
    if recent:
        words = counted(len(recent), "message", "messages")
        yield NodeFault(f"{words} of hung tasks in the kernel's log within an hour")


def disks(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Errors by device within the last hour; an image on a loop device is a job's own affair."""
    del wanted
    counts: dict[str, int] = {}
    for line in _recent(answer, "disk"):
        if not line.word.startswith(_NO_DISKS):
            counts[line.word] = counts.get(line.word, 0) + 1
    for word, count in counts.items():
        errors = counted(count, "error of", "errors of")
        yield NodeFault(f"{errors} {word} in the kernel's log within an hour")


def heat(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Processors that were slowed down for heat within the last hour."""
    del wanted
    hot = {line.word for line in _recent(answer, "thermal")}
    if hot:
        yield NodeFault(f"{counted(len(hot), 'processor')} slowed down for heat within an hour")


def daemons(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Units that lost a process to a kill for the node's memory within the last hour."""
    del wanted
    for line in {line.word: line for line in _recent(answer, "daemon_oom")}.values():
        yield NodeFault(f"{line.word} lost a process when the node ran out of memory")


def _recent(answer: JSON, kind: str) -> list[_Line]:
    lines, now = _lines(answer)
    return [line for line in lines if line.kind == kind and now - line.at <= LATE_SECONDS]


def _lines(answer: JSON) -> tuple[list[_Line], float]:
    if not isinstance(answer, Mapping):
        return [], 0.0
    now, rows = answer.get("now"), answer.get("faults")
    found = []
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [int() | float() as at, str(kind), str(word), int(number)]:
                found.append(_Line(float(at), kind, word, number))
    return found, float(now) if isinstance(now, int | float) else 0.0


def _whole(answer: JSON) -> Iterator[NodeAnswer]:
    if isinstance(answer, Mapping) and not answer.get("is_whole", True):
        yield NodeUnseen("the kernel's log is too long to be read to its end")
