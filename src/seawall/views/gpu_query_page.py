# SPDX-License-Identifier: Apache-2.0
"""What both forms of ``seawall gpu query`` are made from."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.devices.layers import Diagnosis
from seawall.accounts.workloads import Workload
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.gpu_query import PROBE, GpuQuery, QueriedDevice
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
_NO_ANSWER: Final = GpuQuery(
    libraries={}, driver_version=None, module_version=Unread(PROBE, "absent"), cuda_version=None,
    runtime_version=None, devices=(), cuda_devices=(), failed=(), environment={},
)  # fmt: skip


class DeviceMemory(NamedTuple):
    """Of a device, as far as a library tells it."""

    total: int | None
    """Bytes."""
    free: int | None
    """Bytes."""
    used: int | None
    """Bytes."""


class JoinedDevice(NamedTuple):
    """One device, as both libraries know it."""

    nvml: QueriedDevice | None
    cuda: QueriedDevice | None
    """None: CUDA does not see it."""
    failed: tuple[ExplainedFailure, ...]
    """What it does not support is no failure."""

    @property
    def sides(self) -> list[QueriedDevice]:
        """What each library tells of it, NVML first."""
        return [one for one in (self.nvml, self.cuda) if one is not None]

    @property
    def name(self) -> str:
        names = [one.name for one in self.sides if one.name]
        return names[0] if names else "a device without a name"

    @property
    def uuid(self) -> str | None:
        return self.sides[0].uuid

    @property
    def figures(self) -> dict[str, int]:
        """NVML's where both tell it, for it is of the whole device."""
        return {name: value for one in self.sides[::-1] for name, value in one.figures.items()}

    def figure(self, name: str) -> int | None:
        return self.figures.get(name)

    @property
    def memory(self) -> DeviceMemory:
        return DeviceMemory(*map(self.figures.get, DeviceMemory._fields))

    @property
    def other_figures(self) -> dict[str, int]:
        """What else was told; bytes, unless the name says another unit."""
        of_memory = DeviceMemory._fields
        return {name: value for name, value in self.figures.items() if name not in of_memory}


class AskedAs(NamedTuple):
    """Whose access the driver was asked with, where it was not our own."""

    workload: Workload
    """Null: as whoever runs this."""
    pid: int
    """The process whose cgroup, namespaces and rights were taken."""
    inside: Inside | None
    """None: nothing came back."""


class ContainerLibrary(NamedTuple):
    """A driver library that the workload has."""

    name: str
    """nvml or cuda."""
    path: str
    """As the workload calls it."""
    version: str | None
    """As the name of the file tells."""
    is_the_hosts: bool
    """The very file that was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """What ``seawall gpu query`` shows: the driver's answer, and what proves a failing call."""

    query: GpuQuery | Unread
    refused: tuple[str, ...]
    """Device nodes that are missing or refused to this process, a sentence each: what proves a
    failing call.
    """
    unseen: tuple[NotSeen, ...]
    diagnosis: Diagnosis | None = None
    """Of the workload that was asked as, when a call failed."""
    asked_as: AskedAs | None = None
    """None: as the process that asked."""

    @property
    def problem(self) -> str | None:
        """Why there is no answer at all."""
        query = self.query
        return (query.detail or query.why) if isinstance(query, Unread) else None

    @property
    def answer(self) -> GpuQuery:
        """The driver's; empty where there is none."""
        return _NO_ANSWER if isinstance(self.query, Unread) else self.query

    def not_seen(self) -> tuple[NotSeen, ...]:
        """The driver's answer first, where there is none."""
        query = self.query
        if not isinstance(query, Unread):
            return self.unseen
        provide = _PROVIDE.get(query.why, _PROVIDE_DEFAULT)
        what = "what the driver tells of its devices"
        return (NotSeen(what, query.detail or query.why, provide), *self.unseen)

    def own_words(self) -> str:
        """How the workload's libcuda stands to the one that was asked; empty: it is that one."""
        inside = self.asked_as and self.asked_as.inside
        return own_words(inside, self.answer.libraries.get("cuda")) if inside else ""

    @property
    def container_libraries(self) -> list[ContainerLibrary]:
        """Libraries of the driver that the workload has; they are looked at and never loaded."""
        inside = self.asked_as and self.asked_as.inside
        if not inside or isinstance(inside.own, Unread):
            return []
        return [
            ContainerLibrary(key, one.path, one.version, one.number == inside.host_files.get(key))
            for key, own in inside.own.items()
            for one in own
        ]

    @property
    def left_behind(self) -> tuple[int, ...]:
        """Pids of ours that were killed and that the kernel does not let go of."""
        inside = self.asked_as and self.asked_as.inside
        return inside.left_behind if inside else ()

    def explained(self) -> list[ExplainedFailure]:
        """Every failing call that is of no single device."""
        return [explain(one, self.answer, self.refused) for one in self.answer.failed]

    def devices(self) -> list[JoinedDevice]:
        """By uuid, for the two libraries may count them in another order."""
        left = list(self.answer.cuda_devices)
        found = []
        for device in self.answer.devices:
            same = next((one for one in left if one.uuid and one.uuid == device.uuid), None)
            if same is not None:
                left.remove(same)
            found.append(self._joined(device, same))
        return found + [self._joined(None, one) for one in left]

    def _joined(self, nvml: QueriedDevice | None, cuda: QueriedDevice | None) -> JoinedDevice:
        failed = [
            explain(one, self.answer, self.refused)
            for one in (*(nvml.failed if nvml else ()), *(cuda.failed if cuda else ()))
            if one.code is not None
            and not (one.code == _NOT_SUPPORTED and one.call.startswith("nvml"))
        ]
        return JoinedDevice(nvml, cuda, tuple(failed))
