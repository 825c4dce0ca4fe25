# SPDX-License-Identifier: Apache-2.0
"""What both forms of ``seawall gpu query`` are made from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.devices.layers import Diagnosis
from seawall.accounts.workloads import Workload
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.gpu_query import GpuQuery, QueriedDevice
from seawall.readings.gpu_query_inside import Inside, own_words
from seawall.views.gpu_query_words import ExplainedFailure, explain

_NOT_SUPPORTED = 3
_PROVIDE: Final = {
    "no_answer": "nothing: that it does not answer is evidence by itself",
    "not_captured": "seawall gpu query on that machine itself: a capture does not ask the driver",
    "absent": "seawall gpu query on that machine itself",
    "not_reached": "a longer --timeout",
    "refused": "root on the host",
    "vanished": "ask again: it went away while it was asked",
}
_PROVIDE_DEFAULT: Final = "seawall gpu query again; should it stay so, look in dmesg for Xid lines"


class Joined(NamedTuple):
    """One device, as both libraries know it."""

    nvml: QueriedDevice | None
    cuda: QueriedDevice | None

    @property
    def name(self) -> str:
        names = [one.name for one in self if one is not None and one.name]
        return names[0] if names else "a device without a name"

    def figure(self, name: str) -> int | None:
        """NVML's where it tells it, for it is of the whole device."""
        for one in self:
            if one is not None and name in one.figures:
                return one.figures[name]
        return None


class AskedAs(NamedTuple):
    """Whose access the driver was asked with, where it was not our own."""

    workload: Workload
    pid: int
    inside: Inside | None
    """None: nothing came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """What ``seawall gpu query`` shows: the driver's answer, and what proves a failing call."""

    query: GpuQuery | Unread
    refused: tuple[str, ...]
    """Nodes that are missing or refused, a sentence each: what proves a failing call."""
    unseen: tuple[NotSeen, ...]
    diagnosis: Diagnosis | None = None
    """Of the workload that was asked as, when a call failed."""
    asked_as: AskedAs | None = None
    """None: as the process that asked."""

    def not_seen(self) -> tuple[NotSeen, ...]:
        """The driver's answer first, where there is none."""
        query = self.query
        if not isinstance(query, Unread):
            return self.unseen
        provide = _PROVIDE.get(query.why, _PROVIDE_DEFAULT)
        what = NotSeen("what the driver tells of its devices", query.detail or query.why, provide)
        return (what, *self.unseen)

    def own_words(self) -> str:
        """Of a container whose libraries are not those that were asked; empty: they are."""
        inside = self.asked_as and self.asked_as.inside
        if not inside or isinstance(self.query, Unread):
            return ""
        return own_words(inside, self.query.libraries.get("cuda"))

    def explained(self) -> list[ExplainedFailure]:
        """Every failing call that is of no single device."""
        if isinstance(self.query, Unread):
            return []
        return [explain(one, self.query, self.refused) for one in self.query.failed]

    def explained_of(self, device: Joined) -> Iterator[ExplainedFailure]:
        """Of one device; what it does not support is no failure."""
        if isinstance(self.query, Unread):
            return
        for one in device:
            for failed in () if one is None else one.failed:
                is_of_nvml = failed.call.startswith("nvml")
                if failed.code is not None and not (is_of_nvml and failed.code == _NOT_SUPPORTED):
                    yield explain(failed, self.query, self.refused)

    def devices(self) -> list[Joined]:
        """By uuid, for the two libraries may count them in another order."""
        if isinstance(self.query, Unread):
            return []
        left = list(self.query.cuda_devices)
        found = []
        for device in self.query.devices:
            same = next((one for one in left if one.uuid and one.uuid == device.uuid), None)
            if same is not None:
                left.remove(same)
            found.append(Joined(device, same))
        return found + [Joined(None, one) for one in left]
