# SPDX-License-Identifier: Apache-2.0
"""What both forms of ``seawall gpu query`` are made from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.gpu_query import GpuQuery, QueriedDevice
from seawall.views.gpu_query_words import Explained, explain

_NOT_SUPPORTED = 3


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """One answer."""

    query: GpuQuery | Unread
    refused: tuple[str, ...]
    """Nodes that are missing or refused, a sentence each: what proves a failing call."""
    unseen: tuple[NotSeen, ...]

    def explained(self) -> list[Explained]:
        """Every failing call that is of no single device."""
        if isinstance(self.query, Unread):
            return []
        return [explain(one, self.query, self.refused) for one in self.query.failed]

    def explained_of(self, device: Joined) -> Iterator[Explained]:
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
