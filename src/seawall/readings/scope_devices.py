# SPDX-License-Identifier: Apache-2.0
"""What systemd believes about the devices of units: the files from which it re-applies them.

Transient units: /run/systemd/transient/UNIT and UNIT.d/*.conf (systemd.unit(5)); what set-property
wrote: /run/systemd/system.control/UNIT.d, /etc/systemd/system.control/UNIT.d.  At every
daemon-reload systemd realises these again, whatever somebody else wrote into the cgroup since.

A drop-in hides one of the same name in a folder of lower rank, and they apply in the order of
their names.  Drop-ins for all scopes or for a prefix (``scope.d``, ``docker-.scope.d``) are not
looked at.  Since 239 a transient unit has its first properties in UNIT itself, before that each
in a drop-in of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.device_rule import access_of
from seawall.readings.reading import decode_name, read_as

BOOTED: Final = "/run/systemd/system"
"""There is such a folder where systemd is the system's manager: sd_booted(3)."""
TRANSIENT: Final = "/run/systemd/transient"
FOLDERS: Final = ("/etc/systemd/system.control", "/run/systemd/system.control", TRANSIENT)
"""The highest rank first."""
LIMIT_BYTES: Final = 256 << 10
UNITS_MOST: Final = 5000
DROP_INS_MOST: Final = 256
_UNIT: Final = re.compile(r"[^/]{1,255}\.(?:scope|service)\Z")
# What systemd itself names 50-PROPERTY.conf holds this one property.
_OTHER_PROPERTY: Final = re.compile(r"50-(?!Device)[A-Z][A-Za-z]+\.conf\Z")
_SECTIONS: Final = (b"[Scope]", b"[Service]")
_POLICIES: Final = ("auto", "closed", "strict")
_KEYS: Final = ("DevicePolicy", "DeviceAllow")
_DEVICE: Final = re.compile(
    r"(?:/dev/|/run/systemd/inaccessible/|char-|block-)[\x21-\x7e]{1,4000}\Z"
)


class UnitDevices(NamedTuple):
    """Of one unit."""

    policy: str
    """``auto``, ``closed`` or ``strict`` (systemd.resource-control(5)); auto with any
    DeviceAllow= is closed."""
    allow: tuple[tuple[str, str], ...]
    """(what, access): ``/dev/null``, ``/dev/char/195:255``, ``char-nvidia``, in order."""
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScopeDevices:
    """The topic: of transient scopes and services only."""

    by_unit: Mapping[str, UnitDevices]
    is_systemd: bool
    """False: this machine is not run by systemd, so no reload can take anything."""
    unread: tuple[Unread, ...] = ()
    """Files that could not be read; their units are not in ``by_unit``."""


def parse(data: bytes) -> tuple[tuple[str, str], ...]:
    """Assignments of DevicePolicy= and DeviceAllow= in [Scope] or [Service], in order.

    A value that systemd ignores is left out; an empty one is kept, for it resets.
    """
    if len(data) > LIMIT_BYTES:
        raise ParseProblem(0, f"at most {LIMIT_BYTES} bytes", data)
    found = []
    is_ours = False
    for line in _logical_lines(data):
        if line[:1] == b"[":
            is_ours = line in _SECTIONS
            continue
        key, equals, value = line.partition(b"=")
        name = decode_name(key.strip())
        if is_ours and equals and name in _KEYS:
            known = _known(name, decode_name(value.strip()))
            if known is not None:
                found.append((name, known))
    return tuple(found)


def read(host: Host) -> ScopeDevices | Unread:
    """Every transient unit; empty where this machine is not run by systemd."""
    top = host.names(BOOTED)
    if isinstance(top, Unread):
        return ScopeDevices({}, is_systemd=False) if top.why == "absent" else top
    names = host.names(TRANSIENT)
    if isinstance(names, Unread):
        return ScopeDevices({}, is_systemd=True) if names.why == "absent" else names
    units = sorted({unit for name in names if _UNIT.match(unit := _unit_of(name))})
    unread: list[Unread] = []
    if units[UNITS_MOST:]:
        words = f"more than {UNITS_MOST} units; {len(units) - UNITS_MOST} were not read"
        unread.append(Unread(TRANSIENT, "too_big", words))
    present = {TRANSIENT: set(names)}
    for folder in FOLDERS[:-1]:
        there = host.names(folder)
        present[folder] = set() if isinstance(there, Unread) else set(there)
        if isinstance(there, Unread) and there.why != "absent":
            unread.append(there)
    by_unit = {}
    for unit in units[:UNITS_MOST]:
        found = _unit(host, unit, present)
        if isinstance(found, Unread):
            unread.append(found)
        elif found is not None:
            by_unit[unit] = found
    return ScopeDevices(by_unit, is_systemd=True, unread=tuple(unread))


def _unit_of(name: str) -> str:
    """``a.scope`` of ``a.scope`` and of ``a.scope.d/``."""
    return name.removesuffix("/").removesuffix(".d")


def _unit(host: Host, unit: str, present: Mapping[str, set[str]]) -> UnitDevices | Unread | None:
    """None: the unit ended while it was read."""
    files = [f"{folder}/{unit}" for folder in FOLDERS if unit in present[folder]][:1]
    for listed in _drop_ins(host, unit, present):
        if isinstance(listed, Unread):
            return listed
        files.append(listed)
    settings: list[tuple[str, str]] = []
    sources = []
    for file in files:
        read = read_as(host, file, parse, LIMIT_BYTES)
        if isinstance(read, Unread):
            if read.why in ("absent", "vanished"):
                continue
            return read
        sources.append(file)
        settings += read
    return _sum(settings, sources) if sources else None


def _drop_ins(host: Host, unit: str, present: Mapping[str, set[str]]) -> Iterator[str | Unread]:
    """In the order in which they apply."""
    by_name: dict[str, str] = {}
    for folder in FOLDERS:
        if f"{unit}.d/" not in present[folder]:
            continue
        names = host.names(f"{folder}/{unit}.d")
        if isinstance(names, Unread):
            if names.why not in ("absent", "vanished"):
                yield names
            continue
        wanted = [n for n in names if n.endswith(".conf") and not _OTHER_PROPERTY.match(n)]
        if wanted[DROP_INS_MOST:]:
            yield Unread(f"{folder}/{unit}.d", "too_big", f"more than {DROP_INS_MOST} drop-ins")
        for name in wanted[:DROP_INS_MOST]:
            by_name.setdefault(name, f"{folder}/{unit}.d/{name}")
    yield from (by_name[name] for name in sorted(by_name))


def _sum(settings: Iterable[tuple[str, str]], sources: Iterable[str]) -> UnitDevices:
    policy = "auto"
    allow: list[tuple[str, str]] = []
    for key, value in settings:
        if key == "DevicePolicy":
            policy = value or "auto"
        elif not value:
            allow = []
        else:
            what, _, access = value.partition(" ")
            allow.append((what, access))
    return UnitDevices(policy, tuple(allow), tuple(sources))


def _known(key: str, value: str) -> str | None:
    """The value in one form (``/dev/null rwm``); None for what systemd would ignore."""
    if not value:
        return value
    if key == "DevicePolicy":
        return value if value in _POLICIES else None
    words = value.split()
    access = access_of(words[1]) if len(words) > 1 else "rwm"
    return f"{words[0]} {access}" if access and _DEVICE.match(words[0]) else None


def _logical_lines(data: bytes) -> Iterator[bytes]:
    """Without comments; a backslash at its end continues a line (systemd.syntax(7))."""
    parts: list[bytes] = []
    for raw in data.split(b"\n"):
        line = raw.strip()
        if line[:1] in (b"#", b";"):
            continue
        if line.endswith(b"\\"):
            parts.append(line[:-1])
            continue
        yield b" ".join([*parts, line]).strip() if parts else line
        parts = []
    if parts:
        yield b" ".join(parts).strip()
