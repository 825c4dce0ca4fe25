# SPDX-License-Identifier: Apache-2.0
"""The first line of ``seawall why`` and ``seawall stacks``, from four small files and two modules.

On a node whose page cache is gone every import is a read from a stuck disk.  What a tired
person looks for first is therefore on the screen before argparse, dataclasses or typing are
imported; that is why this module parses by hand and imports nothing but ``os``.
"""

import os

STALL_PERCENT = 10.0


def machine_line() -> str:
    """``node-17  Linux 5.10.134  60.7 GiB, 15.9 MiB left``: the first line of ``why``."""
    fields = _meminfo(_read("/proc/meminfo"))
    total, left = fields.get("MemTotal"), fields.get("MemAvailable", fields.get("MemFree"))
    machine = os.uname()
    stalls = {name: _avg10(name) for name in ("memory", "io")}
    return line_of(
        machine.nodename, machine.release, "", total and total << 10,
        None if left is None else left << 10,
        {name: float(avg10) for name, avg10 in stalls.items() if avg10},
    )  # fmt: skip


def line_of(
    node: str, release: str, taken_at: str, total: "int | None", left: "int | None",
    stalls: "dict[str, float]",
) -> str:  # fmt: skip
    """Of any machine.  Bytes; ``stalls`` in percent of the last 10 s, told from STALL_PERCENT on;
    the kernel's release without what the distribution put behind it.
    """
    words = [_printable(node) or "unknown node", f"Linux {_printable(release.partition('-')[0])}"]
    if not release:
        words[1] = "Linux unknown"
    if total is None or left is None:
        words.append("memory not known")
    else:
        words.append(f"{_size(total >> 10)}, {_size(left >> 10)} left")
    words.extend(f"{name} stalls {percent:.0f} %" for name, percent in stalls.items()
                 if percent >= STALL_PERCENT)  # fmt: skip
    if taken_at:
        words.append(taken_at)
    return "  ".join(words)


def _printable(name: str) -> str:
    """At most 30 characters; no escape sequence of a name steers the terminal."""
    name = "".join(char if char.isprintable() else "?" for char in name)
    return name if len(name) <= 30 else name[:28] + ".."


def first_line() -> str:
    """``memory: 1.2 GiB of 62.0 GiB available; stalls: memory 35 %, io 80 %, cpu 2 %``."""
    fields = _meminfo(_read("/proc/meminfo"))
    total, left = fields.get("MemTotal"), fields.get("MemAvailable")
    what = "available"
    if left is None:
        left, what = fields.get("MemFree"), "free"
    if total is None or left is None:
        return "memory: /proc/meminfo could not be read"
    stalls = [f"{name} {avg10} %" for name in ("memory", "io", "cpu") if (avg10 := _avg10(name))]
    told = f"; stalls: {', '.join(stalls)}" if stalls else ""
    return f"memory: {_size(left)} of {_size(total)} {what}{told}"


def _size(kib: int) -> str:
    """As ``words.py`` says it, for what a machine's memory can be."""
    if kib < 1 << 10:
        return f"{kib} KiB"
    if kib < 1 << 20:
        return f"{kib / (1 << 10):.1f} MiB"
    return f"{kib / (1 << 20):.1f} GiB" if kib < 100 << 20 else f"{kib / (1 << 20):.0f} GiB"


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, 65536).decode("ascii", "replace")
    except OSError:
        return ""  # psi=0 opens and then says EOPNOTSUPP
    finally:
        os.close(fd)


def _meminfo(text: str) -> dict[str, int]:
    """Field -> KiB."""
    fields = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            fields[name] = int(words[0])
    return fields


def _avg10(name: str) -> str:
    """The share of the last ten seconds in which some task stalled, in percent; or nothing."""
    words = _read(f"/proc/pressure/{name}").split()
    if len(words) < 2 or not words[1].startswith("avg10="):
        return ""
    try:
        return f"{float(words[1][6:]):.0f}"
    except ValueError:
        return ""
