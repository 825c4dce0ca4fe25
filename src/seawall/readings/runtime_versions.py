# SPDX-License-Identifier: Apache-2.0
"""Versions of runc, crun and systemd, and when systemd loaded its units last.

From the probe ``runtime_versions``; of a tree of files, where no program is run, from Debian's
/var/lib/dpkg/status (deb-control(5), dpkg(1)).  A distribution's version (``1.1.5+ds1``,
``1.1.7-0ubuntu1``) may carry fixes of later ones: ``is_distribution``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.probe_answer import each, reason, seconds, text
from seawall.readings.reading import decode_name, read_as

PROBE = "runtime_versions"
DPKG: Final = "/var/lib/dpkg/status"
LIMIT_BYTES: Final = 32 << 20
_PROGRAMS_MOST: Final = 16
_SAID: Final = re.compile(r"^(runc|crun) version (\S{1,64})", re.MULTILINE)
_SYSTEMD: Final = re.compile(r"systemd (\d{1,4})\b(?: \(([^()\s]{1,64})\))?")
_PARTS: Final = re.compile(r"(?:\d:)?(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?(?:[-~](rc\S*))?(.*)")
_MAJOR: Final = re.compile(r"(?:\d:)?(\d{1,4})\b")
_PACKAGES: Final = ("runc", "crun", "systemd")


class Runtime(NamedTuple):
    """The version of one low-level container runtime, runc or crun, on this machine."""

    path: str
    """The program; dpkg's file where that is all there is."""
    name: str
    """``runc`` or ``crun``."""
    version: tuple[int, int, int]
    is_candidate: bool
    """``1.0.0-rc93``: before the release of that number."""
    is_distribution: bool
    """Built by a distribution, which may have carried fixes over."""
    text: str
    """``1.1.5+ds1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeVersions:
    """The topic: versions of runc, crun and systemd, and when systemd last loaded its units."""

    runtimes: tuple[Runtime, ...]
    bundle_paths: tuple[str, ...]
    """Paths in ``runtimes`` that running containers' own bundles name."""
    systemd: int | None
    """252; None: not its manager, or not told."""
    systemd_text: str
    units_loaded: float | None
    """Unix seconds of the last daemon-reload, or of the boot; None: not told."""


def parse(data: bytes) -> dict[str, str]:
    """Package -> version, of installed ones that matter here; ParseProblem."""
    if len(data) > LIMIT_BYTES:
        raise ParseProblem(0, f"at most {LIMIT_BYTES} bytes", data)
    found = {}
    for name in _PACKAGES:
        start = data.find(b"\nPackage: %s\n" % name.encode("ascii"))
        if data.startswith(b"Package: %s\n" % name.encode("ascii")):
            start = 0
        if start < 0:
            continue
        end = data.find(b"\n\n", start)
        entry = b"\n" + data[start : len(data) if end < 0 else end].strip(b"\n") + b"\n"
        fields = dict(line.partition(b": ")[::2] for line in entry.split(b"\n"))
        version = fields.get(b"Version", b"")
        if fields.get(b"Status", b"").endswith(b" installed") and version:
            found[name] = decode_name(version[:64])
    return found


def runtime_of(path: str, said: str) -> Runtime | None:
    """From what ``--version`` printed; a wrapper such as NVIDIA's prints its own first."""
    match = _SAID.search(said)
    return _runtime(path, match[1], match[2]) if match else None


def _runtime(path: str, name: str, version: str) -> Runtime | None:
    match = _PARTS.match(version)
    if match is None:
        return None
    numbers = (int(match[1]), int(match[2]), int(match[3] or 0))
    # "+dev" and a commit are the authors' own, "+ds1" and "-0ubuntu1" are not.
    rest = match[5] if not match[5].startswith("+dev") else ""
    return Runtime(path, name, numbers, bool(match[4]), bool(rest), version)


def read(host: Host) -> RuntimeVersions | Unread:
    """The probe; in a tree of files the list of packages."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return _packages(host, answer) if answer.why == "absent" else answer
    values = answer if isinstance(answer, dict) else {}
    rows, told = each(values.get("runtimes"), _row), each(values.get("told"), text)
    if rows is None or told is None:
        return Unread(PROBE, "malformed", "expected runtimes and told")
    match = _SYSTEMD.match(text(values.get("systemd")) or "")
    found = tuple(one for path, words in rows if (one := runtime_of(path, words)) is not None)
    return RuntimeVersions(
        runtimes=found[:_PROGRAMS_MOST],
        bundle_paths=tuple(path for path in told if any(one.path == path for one in found)),
        systemd=int(match[1]) if match else None,
        systemd_text=(match[2] or match[1]) if match else "",
        units_loaded=seconds(values.get("units_loaded")) or None,
    )


def _row(value: JSON) -> tuple[str, str] | None:
    """``[path, text]``; no text where there is a problem instead."""
    match value:
        case [str(path), str(words)]:
            return path[:4096], words[:4096]
        case [str(path), {"problem": told}] if reason(path, told) is not None:
            return path[:4096], ""
    return None


def _packages(host: Host, absent: Unread) -> RuntimeVersions | Unread:
    found = read_as(host, DPKG, parse, LIMIT_BYTES)
    if isinstance(found, Unread):
        return absent if found.why in ("absent", "not_captured") else found
    major = _MAJOR.match(found.get("systemd", ""))
    return RuntimeVersions(
        runtimes=tuple(_installed(found)),
        bundle_paths=(),
        systemd=int(major[1]) if major else None,
        systemd_text=found.get("systemd", ""),
        units_loaded=None,
    )


def _installed(found: dict[str, str]) -> Iterator[Runtime]:
    for name in ("runc", "crun"):
        one = _runtime(DPKG, name, found[name]) if name in found else None
        if one is not None:
            yield one._replace(is_distribution=True)
