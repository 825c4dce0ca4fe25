# SPDX-License-Identifier: Apache-2.0
"""The first line of ``seawall why`` and ``seawall stacks``, from four small files and two modules.

On a node whose page cache is gone every import is a read from a stuck disk.  What a tired
person looks for first is therefore on the screen before argparse, dataclasses or typing are
imported; that is why this module parses by hand and imports nothing but ``os``.
"""

import os

STALL_PERCENT = 10.0
WIDTH = 80
_NAME_LEAST = 12


def machine_line() -> str:
    """``node-17  Linux 5.10.134  60.7 GiB, 15.9 MiB left``: the first line of ``why``."""
    fields = _meminfo(_read("/proc/meminfo"))
    total, left = fields.get("MemTotal"), fields.get("MemAvailable")
    how = "left"
    if left is None:
        left, how = _estimate(fields, _read("/proc/zoneinfo", 1 << 20)), "about"
    if left is None:
        left, how = fields.get("MemFree"), "free"
    apart, beside = _without_cpus() if how == "left" else (0, 0)
    machine = os.uname()
    stalls = {name: _avg10(name) for name in ("memory", "io")}
    return line_of(
        machine.nodename, machine.release, "", total and (total - apart) << 10,
        None if left is None else max(left - beside, 0) << 10,
        {name: float(avg10) for name, avg10 in stalls.items() if avg10}, how, beside << 10,
    )  # fmt: skip


def line_of(
    node: str, release: str, taken_at: str, total: "int | None", left: "int | None",
    stalls: "dict[str, float]", how: str = "left", beside: int = 0, *,
    is_whole: bool = False,
) -> str:  # fmt: skip
    """Of any machine.  Bytes; ``how``: ``left`` as the kernel says it, ``about`` where that is
    computed, ``free`` where no more is known; ``beside``: what more is left on NUMA nodes without
    CPUs, a GPU's memory or an expander's, which is in neither of the two; ``stalls`` in percent of
    the last 10 s, told from STALL_PERCENT on.  ``is_whole``: with the whole of the kernel's
    release, and as long as it gets; else at most WIDTH characters.
    """
    release = release if is_whole else release.partition("-")[0]
    words = [_printable(node) or "unknown node", f"Linux {_printable(release)}"]
    if not release:
        words[1] = "Linux unknown"
    if total is None or left is None:
        words.append("memory not known")
    else:
        shown = (
            f"about {_size(left >> 10)} left" if how == "about" else f"{_size(left >> 10)} {how}"
        )
        more = f", +{_size(beside >> 10)} on CPU-less nodes" if beside else ""
        words.append(f"{_size(total >> 10)}, {shown}{more}")
    words.extend(f"{name} stalls {percent:.0f} %" for name, percent in stalls.items()
                 if percent >= STALL_PERCENT)  # fmt: skip
    if taken_at:
        words.append(taken_at)
    return "  ".join(words if is_whole else _narrow(words))


def _narrow(words: "list[str]") -> "list[str]":
    """Within WIDTH: the name of the node is shortened, then the kernel goes, then what is last."""
    over = len("  ".join(words)) - WIDTH
    if over > 0 and len(words[0]) - over < _NAME_LEAST:
        over -= len(words.pop(1)) + 2
    if over > 0 and len(words[0]) > _NAME_LEAST:
        length = max(len(words[0]) - over, _NAME_LEAST)
        over -= len(words[0]) - length
        words[0] = words[0][: length - 2] + ".."
    while over > 0 and len(words) > 2:
        over -= len(words.pop()) + 2
    return words


def _estimate(fields: "dict[str, int]", zoneinfo: str) -> "int | None":
    """KiB: what MemAvailable would be where the kernel has none, as
    ``accounts/node_memory/headroom.py`` computes it; None without the lines that it takes.
    """
    try:
        free, slab = fields["MemFree"], fields["SReclaimable"]
        cache = fields["Active(file)"] + fields["Inactive(file)"]
    except KeyError:
        return None
    low = reserve = high = managed = most = 0
    page = os.sysconf("SC_PAGE_SIZE") >> 10
    for line in [*zoneinfo.splitlines(), "Node"]:
        words = line.replace("(", " ").replace(")", " ").replace(",", " ").split()
        if not words:
            continue
        if words[0] == "Node":
            reserve += min(high + most, managed or high + most)
            high = managed = most = 0
        elif words[0] == "protection:":
            most = max(int(word) for word in words[1:] if word.isdigit())
        elif len(words) == 2 and words[1].isdigit():
            low += int(words[1]) if words[0] == "low" else 0
            high = int(words[1]) if words[0] == "high" else high
            managed = int(words[1]) if words[0] == "managed" else managed
    keep = min(cache // 2, low * page) + min(slab // 2, low * page)
    return max(free - reserve * page + cache + slab - keep, 0)


def _without_cpus(folder: str = "/sys/devices/system/node") -> "tuple[int, int]":
    """KiB of MemTotal on nodes without CPUs, and what MemAvailable holds of them at most."""
    with_cpus = _numbers(_read(f"{folder}/has_cpu"))
    total = size = 0
    for number in _numbers(_read(f"{folder}/has_memory")):
        if with_cpus and number not in with_cpus:
            text = _read(f"{folder}/node{number}/meminfo").replace(f"Node {number} ", "")
            fields = _meminfo(text)
            fields["slab"] = fields.get("KReclaimable", fields.get("SReclaimable", 0))
            names = ("MemFree", "Active(file)", "Inactive(file)", "slab")
            size += sum(fields.get(name, 0) for name in names)
            total += fields.get("MemTotal", 0)
    return total, size


def _numbers(text: str) -> "list[int]":
    """``0-1,4``: at most 1024 of them, as the kernel has nodes."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            numbers.extend(range(int(first), min(int(last or first), 1023) + 1))
    return numbers


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


def _read(path: str, most: int = 65536) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    data = b""
    try:
        while len(data) < most and (part := os.read(fd, most - len(data))):
            data += part  # zoneinfo comes node by node
    except OSError:
        return ""  # psi=0 opens and then says EOPNOTSUPP
    finally:
        os.close(fd)
    return data.decode("ascii", "replace")


def _meminfo(text: str) -> dict[str, int]:
    """Fields of /proc/meminfo by name, in KiB (HugePages_* as counts)."""
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
