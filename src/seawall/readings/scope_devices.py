# SPDX-License-Identifier: Apache-2.0
"""What systemd believes about the devices of units: the files from which it re-applies them.

Transient units: /run/systemd/transient/UNIT and UNIT.d/*.conf (systemd.unit(5)); what set-property
wrote: /run/systemd/system.control/UNIT.d, /etc/systemd/system.control/UNIT.d; what people and
packages wrote: FOLDERS.  At every daemon-reload systemd realises these again, whatever somebody
else wrote into the cgroup since.  Read are transient scopes and services, and of containers every
unit that their cgroup is in: a slice's rules hold for all below it.

A drop-in hides one of the same name in a folder of lower rank, and they apply in the order of
their names.  Those of the unit hide those of its template and of its prefixes
(``docker-.scope.d``, 239 and later), the longest first, and these hide those of all its kind
(``scope.d``, 244 and later).  Since 239 a transient unit has its first properties in UNIT itself,
before that each in a drop-in of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.cgroup_paths import place_of
from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.cgroup import Cgroups
from seawall.readings.device_rule import access_of
from seawall.readings.reading import decode_name, read_as

BOOTED: Final = "/run/systemd/system"
"""There is such a folder where systemd is the system's manager: sd_booted(3)."""
TRANSIENT: Final = "/run/systemd/transient"
CONTROL: Final = ("/etc/systemd/system.control", "/run/systemd/system.control")
LASTING: Final = (
    "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system", "/lib/systemd/system",
)  # fmt: skip
FOLDERS: Final = (*CONTROL, TRANSIENT, *LASTING)
"""The highest rank first."""
LIMIT_BYTES: Final = 256 << 10
UNITS_MOST: Final = 5000
DROP_INS_MOST: Final = 256
_UNIT: Final = re.compile(r"[^/]{1,255}\.(?:scope|service)\Z")
_PLACE: Final = re.compile(r"[^/]{1,255}\.(?:scope|service|slice)\Z")
# What systemd itself names 50-PROPERTY.conf holds this one property.
_OTHER_PROPERTY: Final = re.compile(r"50-(?!Device)[A-Z][A-Za-z]+\.conf\Z")
_SECTIONS: Final = (b"[Scope]", b"[Service]", b"[Slice]")
_POLICIES: Final = ("auto", "closed", "strict")
_KEYS: Final = ("DevicePolicy", "DeviceAllow")
_DEVICE: Final = re.compile(
    r"(?:/dev/|/run/systemd/inaccessible/|char-|block-)[\x21-\x7e]{1,4000}\Z"
)


class UnitDevices(NamedTuple):
    """What systemd believes one unit may do with devices: DevicePolicy= and DeviceAllow=."""

    policy: str
    """``auto``, ``closed`` or ``strict`` (systemd.resource-control(5)); auto with any
    DeviceAllow= is closed."""
    allow: tuple[tuple[str, str], ...]
    """(what, access): ``/dev/null``, ``/dev/char/195:255``, ``char-nvidia``, in order."""
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScopeDevices:
    """The topic: of transient scopes and services, and of what containers are in."""

    by_unit: Mapping[str, UnitDevices]
    is_systemd: bool
    """False: this machine is not run by systemd, so no reload can take anything."""
    unread: tuple[Unread, ...] = ()
    """Files that could not be read; their units are not in ``by_unit``."""


def parse(data: bytes) -> tuple[tuple[str, str], ...]:
    """Assignments of DevicePolicy= and DeviceAllow= in [Scope], [Service] or [Slice], in order.

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


def read(host: Host, cgroups: Cgroups | Unread) -> ScopeDevices | Unread:
    """Empty where this machine is not run by systemd; files without any /run do not tell."""
    top = host.names(BOOTED)
    if isinstance(top, Unread):
        if top.why != "absent":
            return top
        run = host.names("/run")
        if isinstance(run, Unread) and run.why == "absent":
            return Unread(BOOTED, "not_captured", "there is no /run among these files")
        return ScopeDevices({}, is_systemd=False)
    names = host.names(TRANSIENT)
    if isinstance(names, Unread):
        if names.why != "absent":
            return names
        names = ()
    present, unread = _present(host, names)
    transient = sorted({unit for name in names if _UNIT.match(unit := _unit_of(name))})
    paths = () if isinstance(cgroups, Unread) else tuple(cgroups.pids)
    units = list(dict.fromkeys([*_around(paths), *transient]))
    if units[UNITS_MOST:]:
        words = f"more than {UNITS_MOST} units; {len(units) - UNITS_MOST} were not read"
        unread.append(Unread(TRANSIENT, "too_big", words))
    files = _Files(host, present)
    by_unit = {}
    for unit in units[:UNITS_MOST]:
        found = files.devices_of(unit)
        if isinstance(found, Unread):
            unread.append(found)
        elif found is not None:
            by_unit[unit] = found
    return ScopeDevices(by_unit, is_systemd=True, unread=tuple(unread))


def _present(
    host: Host, transient: Iterable[str]
) -> tuple[dict[str, frozenset[str]], list[Unread]]:  # fmt: skip
    """What there is in each folder."""
    present, unread = {TRANSIENT: frozenset(transient)}, []
    for folder in (*CONTROL, *LASTING):
        there = host.names(folder)
        present[folder] = frozenset(() if isinstance(there, Unread) else there)
        # A bundle from before these were looked at is told of by what it does hold.
        is_quiet = folder in LASTING and isinstance(there, Unread) and there.why == "not_captured"
        if isinstance(there, Unread) and there.why != "absent" and not is_quiet:
            unread.append(there)
    return present, unread


def _around(paths: Iterable[str]) -> Iterator[str]:
    """Units that containers are in: from the top down to the first that is no slice."""
    for path in paths:
        if place_of(path).kind != "container":
            continue
        for name in path.split("/"):
            if _PLACE.match(name):
                yield name
                if not name.endswith(".slice"):
                    break


def _unit_of(name: str) -> str:
    """``a.scope`` of ``a.scope`` and of ``a.scope.d/``."""
    return name.removesuffix("/").removesuffix(".d")


def _families(unit: str) -> Iterator[str]:
    """What the drop-ins that hold for a unit are for, the most special first."""
    stem, _, kind = unit.rpartition(".")
    yield unit
    if "@" in stem:
        yield f"{stem.partition('@')[0]}@.{kind}"
    while (cut := stem.rstrip("-").rpartition("-"))[1]:
        stem = cut[0]
        yield f"{stem}-.{kind}"
    yield kind


class _Files:
    """Files of units; what holds for many is listed and read once."""

    def __init__(self, host: Host, present: Mapping[str, frozenset[str]]) -> None:
        self._host = host
        self._present = present
        self._lists: dict[str, tuple[str, ...] | Unread] = {}
        self._parsed: dict[str, tuple[tuple[str, str], ...] | Unread] = {}
        self._shared = frozenset(name for names in present.values() for name in names)

    def devices_of(self, unit: str) -> UnitDevices | Unread | None:
        """None: it has no file (any more)."""
        names = list(_families(unit))[:2] if "@" in unit else [unit]
        main = (f"{folder}/{name}" for name in names for folder in FOLDERS
                if name in self._present[folder])  # fmt: skip
        files = [file for file in [next(main, None)] if file]
        for listed in self._drop_ins(unit):
            if isinstance(listed, Unread):
                return listed
            files.append(listed)
        settings: list[tuple[str, str]] = []
        sources = []
        for file in files:
            read = self._read(file)
            if isinstance(read, Unread):
                if read.why in ("absent", "vanished"):
                    continue
                return read
            sources.append(file)
            settings += read
        return _sum(settings, sources) if sources else None

    def _drop_ins(self, unit: str) -> Iterator[str | Unread]:
        """In the order in which they apply."""
        by_name: dict[str, str] = {}
        for family in _families(unit):
            if f"{family}.d/" not in self._shared:
                continue
            for folder in (one for one in FOLDERS if f"{family}.d/" in self._present[one]):
                names = self._listed(f"{folder}/{family}.d")
                if isinstance(names, Unread):
                    if names.why not in ("absent", "vanished"):
                        yield names
                    continue
                for name in names:
                    by_name.setdefault(name, f"{folder}/{family}.d/{name}")
        wanted = [by_name[name] for name in sorted(by_name)]
        if wanted[DROP_INS_MOST:]:
            yield Unread(f"{TRANSIENT}/{unit}.d", "too_big", f"more than {DROP_INS_MOST} drop-ins")
        yield from wanted[:DROP_INS_MOST]

    def _listed(self, folder: str) -> tuple[str, ...] | Unread:
        if folder not in self._lists:
            names = self._host.names(folder)
            if not isinstance(names, Unread):
                names = tuple(
                    n for n in names if n.endswith(".conf") and not _OTHER_PROPERTY.match(n)
                )
            self._lists[folder] = names
        return self._lists[folder]

    def _read(self, file: str) -> tuple[tuple[str, str], ...] | Unread:
        if file not in self._parsed:
            self._parsed[file] = read_as(self._host, file, parse, LIMIT_BYTES)
        return self._parsed[file]


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
