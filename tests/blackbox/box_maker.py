# SPDX-License-Identifier: Apache-2.0
"""Black boxes of a node that dies: rounds of this machine with pods beside it, numbers that move.

The story: peace, then memory that no counter explains grows until the guard decides, the kernel
kills, and the power goes.  Every fact of it is in ``Story``, for tests to compare with.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seawall.actions.orders import Mounts
from seawall.blackbox.frame import Frame, aligned, seal_frame
from seawall.blackbox.ring import RingFile
from seawall.guard.settings import Settings
from seawall.guard.tell.plain import moment
from seawall.guard.tick_facts import Group, Node, Outside
from seawall.host.recording import Round
from seawall.recorder.group_files import EACH
from seawall.recorder.guard_messages import GuardStart, JournalLine
from seawall.recorder.pretrigger_buffer import PendingFrame
from seawall.recorder.recording_policy import RecordingPolicy
from seawall.recorder.samples import Samples
from seawall.replay.player import Player
from seawall.replay.tick import Tick

BOOT = "1a2b3c4d-1111-4222-8333-444455556666"
DECISION = "1a2b3c4d-0007"
END = 1_795_428_031.0
"""Unix seconds of the last tick, 2026-11-23T10:00:31Z."""
UP_SECONDS = 900_000.0
LATE_SECONDS = 0.237
"""From the look to the words: a kill lies between."""
HOG = "batch/hog/ring"
MIB = 1 << 20


@dataclass(frozen=True)
class Plot:
    """What is to be told."""

    pods: int = 5
    peace_seconds: float = 600.0
    trouble_seconds: float = 90.0
    """So long before the end the hog begins to grow; two thirds later the node is short."""
    uncounted_share: Callable[[float], float] | None = None
    """Seconds before the end -> share of a node of 64 GiB that has gone from what is free into no
    counter."""
    boot_id: str = BOOT
    end: float = END
    seed: int = 7

    @property
    def short_at(self) -> float:
        return self.end - self.trouble_seconds / 3

    def monotonic(self, unix: float) -> float:
        return UP_SECONDS + unix - self.end


@dataclass
class Told:
    """What was told, and what is true."""

    plot: Plot
    frames: list[PendingFrame] = field(default_factory=list)
    passes: list[tuple[str, float, Round]] = field(default_factory=list)
    """Series, time and answers."""
    ticks: list[Tick] = field(default_factory=list)
    is_repeated: bool = False
    """The file is filled with copies, other times on their frames."""

    @property
    def bytes(self) -> int:
        return sum(aligned(64 + len(one.payload)) for one in self.frames)


def tell(plot: Plot) -> Told:
    """Peace, trouble, a decision, a kill by the kernel, and no end: by the recorder's own story."""
    told = Told(plot)
    world = World(plot)
    story = RecordingPolicy(
        told.frames.append,
        lambda settings, last: {"tool_version": "test", "mode": settings.mode, "last": last},
        lambda settings, last: Player(settings, plot.boot_id, "/own", last),
    )
    story.started(GuardStart(Settings(), "", None))
    unix, number, next_light = plot.end - plot.trouble_seconds - plot.peace_seconds, 1000, 0.0
    is_decided = False
    while unix < plot.end + 0.01:
        number += 1
        told.ticks.append(world.tick(number, unix))
        story.ticked(told.ticks[-1])
        if not is_decided and unix > plot.short_at + 5:
            is_decided = True
            _decide(story, number, unix, plot)
        if story.wants_full(plot.monotonic(unix)):
            _sample(told, story, world.round("full", unix), unix, "full")
        elif unix >= next_light or not story.is_fast:
            next_light = unix + 1
            _sample(told, story, world.round("light", unix), unix, "light")
        else:
            _sample(told, story, world.round("quick", unix), unix, "quick")
        story.tend(plot.monotonic(unix))
        is_close = unix > plot.short_at - 40 or story.is_fast
        unix = round(unix + (0.1 if is_close else 2.0), 1)
    return told


def _sample(told: Told, story: RecordingPolicy, round_: Round, unix: float, of: str) -> None:
    told.passes.append((of, unix, round_))
    story.sampled(round_, of)


def _decide(story: RecordingPolicy, number: int, unix: float, plot: Plot) -> None:
    now = plot.monotonic(unix)
    head = {
        "schema": "seawall.decision/1", "decision": DECISION, "at": moment(unix), "seconds": now,
        "boot_id": plot.boot_id, "mode": "enforce", "frame": number,
    }  # fmt: skip
    verdict = head | {"kind": "verdict", "sentence": f"Ends {HOG}: it holds 900 MiB outside."}
    outcome = head | {"kind": "outcome", "sentence": f"{HOG}: 3 processes were signalled."}
    for line in (verdict, outcome):
        story.lined(JournalLine(number, json.dumps(line)), unix + LATE_SECONDS, now + LATE_SECONDS)
    words = "6,1234,900,-;Out of memory: Killed process 4711 (innocent\x1b[2J) total-vm:1kB"
    story.kernel_said([words], unix, now, is_kill=True)


def write(told: Told, path: Path, size_bytes: int) -> None:
    """Into a new box; in one that is too large for it, copies of it come before, as other days."""
    ring = RingFile.open(str(path), size_bytes, share_most=1.0)
    length = told.plot.peace_seconds + told.plot.trouble_seconds + 10
    copies = size_bytes // told.bytes
    for copy in range(copies if told.is_repeated else 0, -1, -1):
        packed = bytearray()
        for place, one in enumerate(told.frames):
            sequence = ring.next_sequence + place
            unix, now = one.unix_seconds - copy * length, one.monotonic_seconds - copy * length
            head = Frame(sequence, one.kind, unix, now, told.plot.boot_id, one.tick, {})
            packed += seal_frame(head, one.payload)
        ring.write(bytes(packed))
    ring.close()


def small_box(path: Path, **changes: Any) -> Told:
    """A box of 4 MiB that holds one story."""
    told = tell(replace(Plot(), **changes))
    write(told, path, 4 * MIB)
    return told


def uncounted(data: bytes, share: float) -> bytes:
    """/proc/meminfo of a node with that share of it in no counter; so large that all that this
    machine has in use is next to nothing of it.
    """
    kib = {name: int(rest.split()[0]) for name, rest in
           (line.split(b":") for line in data.splitlines())}  # fmt: skip
    total = max(64 << 20, 40 * kib[b"MemTotal"])
    more = total - kib[b"MemTotal"]
    gone = int(share * total) - more
    return b"".join(
        b"%s: %d kB\n" % (name, value + more if name == b"MemTotal" else value - gone)
        if name in (b"MemTotal", b"MemFree", b"MemAvailable")
        else line + b"\n"
        for line in data.splitlines()
        for name, value in [(line.split(b":")[0], kib[line.split(b":")[0]])]
    )


class World:
    """The machine of a plot, at any time."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        self.chance = random.Random(plot.seed)
        mounts = Mounts("/sys/fs/cgroup/memory", 1)
        self.real = next(r for r in Samples(mounts).full([]) if r is not None)
        self.top = mounts.memory
        self.charges = [self.chance.randrange(20, 400) * MIB for _ in range(plot.pods)]

    def path(self, pod: int) -> str:
        return f"/kubepods/burstable/pod{pod:08x}-0000-4000-8000-000000000000/{pod:064x}"

    def outside(self, unix: float) -> int:
        """Of the hog: 900 MiB at the end, straight from nothing."""
        share = 1 - (self.plot.end - unix) / self.plot.trouble_seconds
        return max(0, int(share * 900)) * MIB

    def tick(self, number: int, unix: float) -> Tick:
        for pod in range(self.plot.pods):
            if self.chance.random() < 0.6:
                self.charges[pod] += self.chance.randrange(-64, 96) * 4096
        outside = self.outside(unix)
        left = max(40 * MIB, 1200 * MIB - 2 * outside)
        state = (
            "short" if unix >= self.plot.short_at else "near" if outside > 300 * MIB else "peace"
        )
        kills = int(abs(unix - (self.plot.short_at + 5.5)) < 0.01)
        node = Node(
            seconds=self.plot.monotonic(unix), total_bytes=4 << 30, free_bytes=left // 2,
            headroom_bytes=left, swap_bytes=0, swap_used_bytes=0, comparable_bytes=left,
            slope_bytes_per_second=20.0 * MIB if outside else 0.0,
            residual_bytes=300 * MIB + outside, residual_grown_bytes=outside,
            residual_slope_bytes_per_second=10.0 * MIB if outside else 0.0,
            unexplained_growth_bytes=0, is_low=left < 200 * MIB, is_min=False,
            stalls_per_second=0.0, protected_stall=0.34 if state == "short" else 0.0,
            late_seconds=0.0, own_major_faults=0, kernel_kills=kills, exits=0, claims_seconds=1.0,
        )  # fmt: skip
        return Tick(number, unix, state, node, dict(self.groups(outside)), ())

    def groups(self, outside: int) -> Iterator[tuple[str, Group]]:
        for pod, charge in enumerate(self.charges):
            group = Group(self.path(pod), 100 + pod, HOG if not pod else f"shop/cart-{pod}/web")
            group.charge_bytes = charge
            group.charge_slope = float(self.chance.randrange(-9, 9) * 4096)
            group.stall = self.chance.choice((0.0, 0.0, 0.01, 0.02))
            if not pod:
                group.outside = Outside(outside, outside, outside, "packet rings (PACKET_DIAG)")
            yield group.path, group

    def round(self, of: str, unix: float) -> Round:
        found = Round(probes=dict(self.real.probes))
        found.probes["now", ""] = {
            "unix_seconds": unix, "monotonic_seconds": self.plot.monotonic(unix),
        }  # fmt: skip
        for path, data in self.real.files.items():
            if of == "full" or path.startswith(("/proc/meminfo", "/proc/vmstat", "/proc/pressure",
                "/proc/sys/kernel", "/proc/uptime", "/sys/devices/system/cpu")):  # fmt: skip
                found.files[path] = self.moved(path, data, unix)
        found.files["/proc/sys/kernel/random/boot_id"] = f"{self.plot.boot_id}\n".encode()
        if of == "full":
            found.names, found.links = dict(self.real.names), dict(self.real.links)
            self.add_pods(found)
        elif of == "light":
            for pod in range(min(8, self.plot.pods)):
                file = f"{self.top}{self.path(pod)}/memory.usage_in_bytes"
                found.files[file] = b"%d\n" % self.charges[pod]
        return found

    def moved(self, path: str, data: Any, unix: float) -> Any:
        if not isinstance(data, bytes):
            return data
        if path == "/proc/vmstat":
            return self.counted(data, unix)
        if path == "/proc/meminfo" and self.plot.uncounted_share is not None:
            return uncounted(data, self.plot.uncounted_share(self.plot.end - unix))
        if path == "/proc/meminfo":
            left = max(40 * MIB, 1200 * MIB - 2 * self.outside(unix)) >> 10
            lines = data.split(b"\n")
            if not self.outside(unix):
                left = int(lines[0].split()[1]) * 3 // 5
            return b"\n".join(
                b"MemAvailable: %10d kB" % left if line.startswith(b"MemAvailable:") else line
                for line in lines
            )
        return data

    def counted(self, data: bytes, unix: float) -> bytes:
        """Counters go up by what the name is long, each second: easy to check."""
        since = int((unix - (self.plot.end - 10_000)) * 10)
        rows = (line.split(b" ") for line in data.strip().split(b"\n"))
        return b"".join(
            b"%s %d\n" % (name, int(value) + since * len(name) // 10)
            if name.startswith((b"pg", b"allocstall", b"workingset", b"pswp"))
            else b"%s %s\n" % (name, value)
            for name, value in rows
        )

    def add_pods(self, found: Round) -> None:
        top = found.names[self.top]
        assert isinstance(top, tuple)
        found.names[self.top] = tuple(sorted({*top, "kubepods/"}))
        folder = f"{self.top}/kubepods"
        found.names[folder] = ("burstable/",)
        pods = [self.path(pod).split("/") for pod in range(self.plot.pods)]
        found.names[f"{folder}/burstable"] = tuple(f"{parts[3]}/" for parts in pods)
        for pod, parts in enumerate(pods):
            found.names[f"{folder}/burstable/{parts[3]}"] = (f"{parts[4]}/",)
            place = self.top + self.path(pod)
            found.names[place] = EACH[1]
            values = (b"%d\n" % (9000 + pod), b"0\n", b"9223372036854771712\n",
                b"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
                b"%d\n" % self.charges[pod])  # fmt: skip
            for name, value in zip(EACH[1], values, strict=True):
                found.files[f"{place}/{name}"] = value
