# SPDX-License-Identifier: Apache-2.0
"""What a watch of devices compares, and what it tells: how it begins, each change, how it ends.

Times are of both clocks: one to print, one to count with, so that a clock that is set spoils no
duration.
"""

import errno as errnos
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.devices.layers import Layer
from seawall.readings.device_writers import DeviceWriter, Write

EventKind: TypeAlias = Literal[
    "access", "kernel", "written", "promised", "configured", "systemd", "node", "plugin",
    "container",
]  # fmt: skip
EventLayer: TypeAlias = Literal["promised", "configured", "systemd", "kernel", "node", "mode"]
TOLD_LAYERS: Final[tuple[Layer, ...]] = ("promised", "configured", "systemd")
"""Those of the table; what the kernel and the try say is seen at each look."""
THERE: Final = "there"
MISSING: Final = "missing"


class DeviceMoment(NamedTuple):
    """A moment on both clocks, in Unix seconds and monotonic seconds."""

    unix: float
    monotonic: float


class DeviceKey(NamedTuple):
    """A device of a container."""

    cgroup: str
    path: str


class Stand(NamedTuple):
    """Whether one device may be used at one moment."""

    errno: int | None
    """0: it may be used; None: that could not be tried."""
    number: str = ""
    """``c 195:0`` of its node; empty where there is none, or none was seen."""
    why: str = ""
    """Why it could not be tried."""


class Spell(NamedTuple):
    """How long a device has stood so."""

    stand: Stand
    began: DeviceMoment
    is_exact: bool
    """It began with a write, or with a program that was loaded then; else at some time before
    the look that found it."""
    is_first: bool
    """It was so when the watch began."""
    writers: tuple[DeviceWriter, ...] = ()


class WatchedRule(NamedTuple):
    """What the kernel lets through to one container, in a form that only a change changes."""

    what: str
    """``devices.list``, ``device programs:``."""
    parts: tuple[str, ...]
    loaded: Mapping[str, DeviceMoment] = MappingProxyType({})
    """Part -> when that program was loaded, which is a moment before it was attached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLook:
    """What one look saw.  What it did not ask about is not in it."""

    began: float
    """Monotonic seconds, before anything was asked."""
    at: DeviceMoment
    """When all of it was answered."""
    stands: Mapping[DeviceKey, Stand] = field(default_factory=dict)
    rules: Mapping[str, WatchedRule] = field(default_factory=dict)
    """By the container's cgroup."""
    writes: Mapping[str, tuple[Write, ...]] = field(default_factory=dict)
    """Since the look before *began*, by the container's cgroup: to its own device cgroup."""
    writes_above: Mapping[str, tuple[Write, ...]] = field(default_factory=dict)
    """The same, to those above it."""
    nodes: Mapping[str, str] | None = None
    """Control nodes of the host that its modules imply: there, missing, or another's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTable:
    """What the whole table told."""

    at: DeviceMoment
    names: Mapping[str, str]
    """Containers by cgroup."""
    layers: Mapping[DeviceKey, Mapping[Layer, tuple[str, str]]]
    """(says, why) of TOLD_LAYERS."""
    lacks: Mapping[str, frozenset[str]]
    """By the plugin's name: what its own /dev lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEvent:
    """One event of a watch of devices: what changed for a container or for the host, and when."""

    kind: EventKind
    at: DeviceMoment
    workload: str | None
    """None: the host."""
    cgroup: str | None = None
    device: str | None = None
    before: str | None
    after: str | None
    errno: int | None = None
    layer: EventLayer | None = None
    lasted: Spell | None = None
    """The one that ended."""
    is_exact: bool = False
    """``at`` is when it happened; else a look found it then."""
    is_back: bool = False
    """As it had been before that."""
    writers: tuple[DeviceWriter, ...] = ()
    """More than one: which of them changed it is not known."""
    files: tuple[str, ...] = ()
    why: str = ""

    @property
    def lasted_seconds(self) -> float | None:
        """How long it had been as before; of a spell that began unseen, since the watch began."""
        began = self.lasted.began if self.lasted else None
        return None if began is None else max(0.0, self.at.monotonic - began.monotonic)


def stand_words(stand: Stand) -> str:
    """A device's stand in words: ``allowed``, ``EPERM``, ``not tried``."""
    if stand.errno is None:
        return "not tried"
    return errnos.errorcode.get(stand.errno, str(stand.errno)) if stand.errno else "allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What the watch begins with."""

    at: DeviceMoment
    names: Mapping[str, str]
    """Containers by cgroup."""
    stands: Mapping[DeviceKey, Stand]
    every_seconds: float
    for_seconds: float | None
    nodes: Mapping[str, str]
    """Of the host: control nodes that its modules imply, there or what is wrong."""
    unseen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blind:
    """Something that could not be seen from now on."""

    at: DeviceMoment
    words: str


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """What the watch ends with."""

    at: DeviceMoment
    seconds: float
    looks: int
    events: int
    devices: int
    """On which something changed."""


Line: TypeAlias = Begun | Blind | WatchEnded | tuple[AccessEvent, ...]
