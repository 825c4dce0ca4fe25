# SPDX-License-Identifier: Apache-2.0
"""/proc/pressure/{cpu,io,memory} and cgroup ``*.pressure``: stall time (PSI, since 4.20).

Kernel document: Documentation/accounting/psi.rst.

>>> parse(b"some avg10=50.00 avg60=1.00 avg300=0.00 total=2500000\\n").some.avg10
0.5
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_fraction, parse_number, read_as

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
FOLDER: Final = "/proc/pressure"
_KEYS_MOST: Final = 16


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
    """The ``some`` line and the ``full`` line where there is one."""
    stalls: dict[bytes, Stall] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        kind, _, rest = line.partition(b" ")
        if kind in (b"some", b"full"):
            stalls.setdefault(kind, _parse_stall(rest, number))
    if b"some" not in stalls:
        raise ParseProblem(0, "a 'some' line", data)
    return Pressure(stalls[b"some"], stalls.get(b"full"))


def read(host: Host) -> HostPressure | Unread:
    """Unread only when all three are (no CONFIG_PSI, or psi=0)."""
    cpu = read_as(host, f"{FOLDER}/cpu", parse)
    io = read_as(host, f"{FOLDER}/io", parse)
    memory = read_as(host, f"{FOLDER}/memory", parse)
    if isinstance(cpu, Unread) and isinstance(io, Unread) and isinstance(memory, Unread):
        return Unread(FOLDER, memory.why, memory.detail)
    return HostPressure(cpu=cpu, io=io, memory=memory)


def _parse_stall(rest: bytes, number: int) -> Stall:
    values: dict[bytes, bytes] = {}
    for word in rest.split(None, _KEYS_MOST):
        key, equals, value = word.partition(b"=")
        if equals:
            values[key] = value
    shares = [
        # Printed in percent with two decimals.
        round(parse_fraction(values.get(key, b""), number, key.decode()) / 100, 6)
        for key in (b"avg10", b"avg60", b"avg300")
    ]
    total_microseconds = parse_number(values.get(b"total", b""), number, "total")
    return Stall(shares[0], shares[1], shares[2], total_microseconds / 1_000_000)
