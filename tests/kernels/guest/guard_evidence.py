"""What happened in a scenario: kernel log, memory over time, when the canary was served."""

import os
import re
import struct
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

SLOT_SECONDS = 0.2
SHORT_SHARE = 0.05
"""Of all memory, available: with less a node is short."""
PAIR = struct.Struct("=dd")
CANARY_BYTES = 8192 * PAIR.size
PID = re.compile(r"\bPID: (\d+) Comm: ")
CALL = re.compile(r"\s+(?!\? )([\w.]+)\+0x[0-9a-f]+/0x[0-9a-f]+")


def listed() -> int:
    """Bytes of free pages on the lists of the processors: neither MemFree nor MemAvailable has
    them, and together they may be as many as the low watermark (mm/page_alloc.c, zone_highsize).
    """
    with open("/proc/zoneinfo") as file:
        counts = [row.split()[1] for row in file if row.split()[0] == "count:"]
    return sum(map(int, counts)) * os.sysconf("SC_PAGE_SIZE")


def meminfo() -> dict[str, int]:
    """Bytes."""
    rows = {}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, rest = line.partition(":")
            rows[name] = int(rest.split()[0]) << 10
    return rows


class Kernel:
    """Lines of the kernel log that tell of kills, when they were seen, and who brought the kernel
    to kill: ``invokers``, one for each OOM report, with the calls by which it asked for memory.
    """

    def __init__(self) -> None:
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        self.lines: list[tuple[float, str]] = []
        self.invokers: list[dict[str, Any]] = []
        self._is_open = False
        self.read()
        self.lines.clear()
        self.invokers.clear()

    def read(self) -> None:
        while True:
            try:
                record = os.read(self._fd, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:  # some were overwritten
                continue
            text = record.decode(errors="replace").partition(";")[2].split("\n")[0]
            self._note_invoker(text)
            if "Killed process" in text or "oom-kill:" in text or "seawall" in text:
                self.lines.append((time.monotonic(), text))

    def _note_invoker(self, text: str) -> None:
        """A report begins with who asked; the calls end where the memory is listed."""
        if " invoked oom-killer: " in text:
            self._is_open = True
            comm, _, words = text.partition(" invoked oom-killer: ")
            self.invokers.append({"at": time.monotonic(), "comm": comm, "words": words, "pid": 0,
                                  "cgroup": "", "calls": []})  # fmt: skip
        elif text.startswith(("Mem-Info:", "memory: usage ", "oom-kill:")):
            self._is_open = False
        elif self._is_open and (of := PID.search(text)):
            self.invokers[-1] |= {"pid": int(of[1]), "cgroup": cgroup_of(int(of[1]))}
        elif self._is_open and (call := CALL.match(text)):
            self.invokers[-1]["calls"].append(call[1])


def cgroup_of(pid: int) -> str:
    """By its last line, which is v2's where there is one; empty: it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cgroup").read_text().strip().rpartition(":")[2]
    return ""


class Memory:
    """When it was short, and when it was back."""

    def __init__(self) -> None:
        self.total = meminfo()["MemTotal"]
        self.base = meminfo()["MemAvailable"]
        self.swap_least, self.huge_least = 1.0, self.total
        """Share of swap that was in use all the time, and bytes of huge pages."""
        self.least = self.base
        self.least_free = self.base
        self.low_at: float | None = None
        self.back_at: float | None = None
        self.is_back = True
        self.short: list[list[float]] = []
        """When hardly anything was left: begin and end of each time."""

    def look(self) -> None:
        rows, now = meminfo(), time.monotonic()
        left = rows["MemAvailable"]
        self.least = min(self.least, left)
        self.least_free = min(self.least_free, rows["MemFree"])
        swap = rows["SwapTotal"]
        self.swap_least = min(self.swap_least, (swap - rows["SwapFree"]) / max(1, swap))
        self.huge_least = min(self.huge_least, rows["Hugetlb"])
        if left < SHORT_SHARE * self.total:
            if not self.short or now - self.short[-1][1] > 1.0:
                self.short.append([now, now])
            self.short[-1][1] = now
        if left < 0.1 * self.total:
            self.low_at = self.low_at or now
            self.is_back, self.back_at = False, None
        elif left >= self.base - 0.12 * self.total:
            if not self.is_back:
                self.back_at = now
            self.is_back = True


class Canary:
    """What the canary wrote down, from ``begin`` to ``end``; a dead one fails every slot."""

    def __init__(self, path: str) -> None:
        self.path = path
        Path(path).write_bytes(bytes(CANARY_BYTES))

    def told(self, begin: float, end: float) -> dict[str, Any]:
        starts = [PAIR.unpack_from(Path(self.path).read_bytes(), at)
                  for at in range(0, CANARY_BYTES, PAIR.size)]  # fmt: skip
        starts = [(b, e) for b, e in starts if e and begin <= e <= end]
        slots = int((end - begin) / SLOT_SECONDS)
        served = {int((e - begin) / SLOT_SECONDS) for _, e in starts}
        ends = [begin, *(e for _, e in starts), end]
        missed = [round(n * SLOT_SECONDS, 1) for n in range(slots) if n not in served]
        return {
            "slots": slots,
            "served": len([n for n in served if n < slots]),
            "longest_stall_seconds": max(b - a for a, b in pairwise(ends)),
            "worst_start_seconds": max((e - b for b, e in starts), default=end - begin),
            "missed_at": missed[:50],
        }


def process_numbers(pid: int) -> dict[str, Any]:
    """Faults and resident memory of one process."""
    with suppress(OSError, KeyError):  # a dying one has no memory left
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        # The kernel's own sum (VmRSS) is up to 64 pages old for each thread.
        mapped = mapped_kib(pid)
        return {
            "pid": pid,
            "command": Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(),
            "minor_faults": int(words[7]),
            "major_faults": int(words[9]),
            "read_bytes": io_numbers(pid)["read_bytes"],
            "cpu_seconds": (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"),
            "resident_kib": sum(mapped.values()),
            "peak_kib": int(status["VmHWM"].split()[0]),
            "locked_kib": int(status["VmLck"].split()[0]),
            "mapped_kib": mapped,
        }
    return {"pid": pid, "gone": True}


def io_numbers(pid: int) -> dict[str, int]:
    """Of which ``read_bytes`` had to come from a disk."""
    rows = (line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return {name: int(value) for name, value in rows}


def mapped_kib(pid: int) -> dict[str, int]:
    """Resident memory by what is mapped: a file's name and how, else what it is."""
    found: dict[str, int] = {}
    key = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            key = f"{words[1]} {words[5].rpartition('/')[2] if len(words) > 5 else 'anonymous'}"
        elif words[0] == "Rss:":
            found[key] = found.get(key, 0) + int(words[1])
    return found


def of_cgroup(entry: str) -> list[dict[str, Any]]:
    """All processes of a cgroup."""
    with suppress(OSError), open(entry) as file:
        return [process_numbers(int(pid)) for pid in file.read().split()]
    return []
