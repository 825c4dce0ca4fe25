# SPDX-License-Identifier: Apache-2.0
"""A promise: devices of one class for one container, and who made it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.devices.classes import DeviceClass
from seawall.accounts.workloads import Workload

Source: TypeAlias = Literal["kubelet", "cdi", "environment", "spec"]
NODES_MOST: Final = 64
"""Of one container and class; one that is given hundreds is given /dev itself."""
_NAMED_MOST: Final = 4


class PromisedDevice(NamedTuple):
    """One node of a promise."""

    path: str
    """In the container."""
    host_path: str
    access: str
    number: tuple[int, int] | None
    """As the promise itself tells it (CDI)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Devices of one class for one container."""

    workload: Workload
    device_class: DeviceClass | None
    name: str
    source: Source
    promised_by: str
    nodes: Mapping[str, PromisedDevice]
    names_nodes: bool
    """Whether it tells all its nodes, so that what it does not tell was not promised."""
    unseen: tuple[str, ...] = ()


def some(names: Sequence[str]) -> str:
    """The first ones: of what a container was promised there may be hundreds."""
    return ", ".join(names[:_NAMED_MOST]) + (", ..." if len(names) > _NAMED_MOST else "")
