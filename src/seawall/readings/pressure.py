# SPDX-License-Identifier: Apache-2.0
"""/proc/pressure/{cpu,io,memory} and cgroup ``*.pressure``: stall time (PSI, since 4.20)."""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True)
class Stall:
    """Shares of wall-clock time as fractions (0 to 1); ``total_seconds`` since boot."""

    avg10: float
    avg60: float
    avg300: float
    total_seconds: float


@dataclass(frozen=True, slots=True)
class Pressure:
    """``full`` is None where the kernel does not print it (cpu before 5.13)."""

    some: Stall
    full: Stall | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPressure:
    """The topic: the three files of /proc/pressure, each by itself."""

    cpu: Pressure | Unread
    io: Pressure | Unread
    memory: Pressure | Unread


def parse(data: bytes) -> Pressure:
    raise NotImplementedError


def read(host: Host) -> HostPressure | Unread:
    """Unread only when all three are (no CONFIG_PSI, or psi=0)."""
    raise NotImplementedError
