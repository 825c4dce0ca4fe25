# SPDX-License-Identifier: Apache-2.0
"""Which machine and which kernel was asked, when, and by whom.

Sources: /proc/sys/kernel/osrelease, /proc/sys/kernel/random/boot_id, /proc/uptime,
/sys/devices/system/cpu/{online,possible} and the probes of ``host/probes.py``.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings.probe_answer import seconds
from seawall.readings.reading import decode_name

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
_DEFAULT_PAGE_BYTES: Final = 4096
_ASSUMED: Final = Unread("page_size", "not_captured", f"assumed to be {_DEFAULT_PAGE_BYTES} bytes")
_PAGE_SIZES: Final = (4096, 16384, 65536)
# RHEL's kernel-64k (``...aarch64+64k``), Ubuntu's ``-generic-64k``, SUSE's ``-64kb``.
_PAGE_IN_RELEASE: Final = re.compile(r"[+-](4|16|64)kb?(?![0-9A-Za-z])")
# The same memory counted in kB and in pages; what is mapped changes less than what is free.
_PAGE_PAIRS: Final = ((b"Mapped", b"nr_mapped"), (b"MemFree", b"nr_free_pages"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """``None`` where it could not be read; times in seconds."""

    release: str | None
    boot_id: str | None
    node_name: str | None
    machine: str | None
    page_size: int
    """Bytes.  Captured with a bundle; in a bare tree inferred from a pair of _PAGE_PAIRS."""
    page_size_source: str
    """``probe``, ``inferred``, ``release`` (its name tells) or ``assumed``."""
    clock_ticks: int
    cpus_online: int | None
    cpus_possible: int | None
    uptime_seconds: float | None
    taken_at_unix_seconds: float | None
    monotonic_seconds: float | None
    reader_uid: int | None
    reader_capabilities: tuple[str, ...] | None
    unread: tuple[Unread, ...] = ()
    """What everything counted in pages rests on, when it had to be assumed."""

    @property
    def version(self) -> tuple[int, int]:
        """(major, minor) of the release; (0, 0) when unknown.  Distributions backport:
        decide by what a file contains, and by this only where nothing else tells.
        """
        match = re.match(r"(\d{1,3})\.(\d{1,3})", self.release or "")
        return (int(match[1]), int(match[2])) if match else (0, 0)


def read(host: Host) -> Kernel | Unread:
    """Never wholly unread: every field that is missing is ``None`` by itself."""
    now = host.ask("now")
    clocks = now if isinstance(now, dict) else {}
    reader = host.ask("reader")
    who = reader if isinstance(reader, dict) else {}
    uid, capabilities = who.get("uid"), who.get("capabilities")
    release = _line(host.read("/proc/sys/kernel/osrelease"))
    page_size, source = _page_size(host, release)
    ticks = host.ask("clock_ticks")
    return Kernel(
        release=release,
        boot_id=_line(host.read("/proc/sys/kernel/random/boot_id")),
        node_name=_node_name(host),
        machine=_word(host.ask("machine")),
        page_size=page_size,
        page_size_source=source,
        clock_ticks=ticks if isinstance(ticks, int) and 1 <= ticks <= 10_000 else 100,
        cpus_online=count_list(_line(host.read("/sys/devices/system/cpu/online"))),
        cpus_possible=count_list(_line(host.read("/sys/devices/system/cpu/possible"))),
        uptime_seconds=_uptime(host.read("/proc/uptime")),
        taken_at_unix_seconds=seconds(clocks.get("unix_seconds")),
        monotonic_seconds=seconds(clocks.get("monotonic_seconds")),
        reader_uid=uid if isinstance(uid, int) else None,
        reader_capabilities=tuple(map(str, capabilities))
        if isinstance(capabilities, list)
        else None,
        unread=(_ASSUMED,) if source == "assumed" else (),
    )


def count_list(text: str | None) -> int | None:
    """How many numbers a kernel list such as ``0-3,8`` names; None when it is not one."""
    if text is None:
        return None
    total = 0
    for part in text.split(",") if text else ():
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if not match:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            return None
        total += last - first + 1
    return total


def _line(data: bytes | Unread) -> str | None:
    return None if isinstance(data, Unread) else decode_name(data[:256]).strip()


def _word(answer: object) -> str | None:
    return answer[:256] if isinstance(answer, str) else None


def _uptime(data: bytes | Unread) -> float | None:
    line = _line(data)
    match = re.match(r"\d{1,12}(?:\.\d{1,9})?", line or "")
    return float(match[0]) if match else None


def _node_name(host: Host) -> str | None:
    """The probe; in a tree of files what the kernel or the distribution wrote down."""
    name = _word(host.ask("node_name"))
    return (
        name or _line(host.read("/proc/sys/kernel/hostname")) or _line(host.read("/etc/hostname"))
    )


def _page_size(host: Host, release: str | None) -> tuple[int, str]:
    asked = host.ask("page_size")
    if isinstance(asked, int) and asked in _PAGE_SIZES:
        return asked, "probe"
    meminfo, vmstat = host.read("/proc/meminfo"), host.read("/proc/vmstat")
    for field, counter in _PAGE_PAIRS:
        kilobytes = _count(meminfo, rb"^%s:\s+(\d{1,18}) kB$" % field)
        pages = _count(vmstat, rb"^%s (\d{1,18})$" % counter)
        if kilobytes and pages:
            # Two reads a moment apart: the nearest size that exists is meant.
            ratio = kilobytes * 1024 / pages
            return min(_PAGE_SIZES, key=lambda size: abs(math.log(ratio / size))), "inferred"
    if named := _PAGE_IN_RELEASE.search(release or ""):
        return int(named[1]) << 10, "release"
    return _DEFAULT_PAGE_BYTES, "assumed"


def _count(data: bytes | Unread, pattern: bytes) -> int | None:
    if isinstance(data, Unread):
        return None
    match = re.search(pattern, data, re.MULTILINE)
    return int(match[1]) if match else None
