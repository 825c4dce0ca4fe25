# SPDX-License-Identifier: Apache-2.0
"""Films into a black box, as the recorder writes it: peace every 10 s, bursts whole.

Not the recorder itself (``seawall/recorder``), which has its own tests: the same layout, without
its clocks and threads, so that thousands of films take minutes.
"""

import random
from pathlib import Path

from tests.replay.live_film import BOOT, OWN, Lived

from seawall.blackbox.frame import Frame, Kind, pack
from seawall.blackbox.ring import RingFile
from seawall.host.host import JSON
from seawall.replay.player import Player
from seawall.replay.tick import Tick
from seawall.replay.tick_encoder import TickEncoder

PEACE_SECONDS = 10.0
PAST_SECONDS = 30.0
SIZE = 4 << 20


class BoxWriter:
    """Frames of one boot into a ring."""

    def __init__(self, path: Path, size_bytes: int = SIZE) -> None:
        self.path = str(path)
        self._ring = RingFile.open(self.path, size_bytes)
        self._sequence = self._ring.next_sequence
        self._ticks = TickEncoder()
        self.frames: list[tuple[int, Kind, bytes]] = []
        """Sequence, kind, packed."""

    def write(self, kind: Kind, tick: Tick, body: dict[str, JSON]) -> None:
        unix, seconds = tick.unix_seconds, tick.node.seconds
        packed = pack(Frame(self._sequence, kind, unix, seconds, BOOT, tick.number, body))
        self.frames.append((self._sequence, kind, packed))
        self._ring.write(packed)
        self._sequence += 1

    def start(self, lived: Lived, tick: Tick, pid: int) -> None:
        body: dict[str, JSON] = {
            "tool_version": "0.0", "host": "node-7", "kernel": "6.1.0", "page_bytes": 4096,
            "mounts": {}, "settings": plain_settings(lived), "own_cgroup": OWN,
            "last_decision": lived.last_decision, "pid": pid, "began_unix": float(pid),
        }  # fmt: skip
        self.write("start", tick, body)

    def ticks(self, ticks: list[Tick], *, is_key: bool = False, is_rounded: bool = False) -> None:
        self.write("tick", ticks[-1], self._ticks.body(ticks, is_key=is_key, is_rounded=is_rounded))

    def close(self) -> None:
        self._ring.close()


def plain_settings(lived: Lived) -> dict[str, JSON]:
    found = lived.settings._asdict()
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}


def record(lives: list[Lived], path: Path, chance: random.Random, *, marks: float = 0.0) -> None:
    """Each life from its first tick: peace, then from 30 s before a trigger on all of it.

    ``marks``: so often, of the frames of a burst, a key and a mind come again.
    """
    writer = BoxWriter(path)
    for pid, lived in enumerate(lives, start=1):
        _life(writer, lived, pid, chance, marks)
    writer.close()


def _life(
    writer: BoxWriter, lived: Lived, pid: int, chance: random.Random, marks: float
) -> None:  # fmt: skip
    ticks = lived.ticks
    if not ticks:
        return
    shadow = Player(lived.settings, BOOT, OWN, lived.last_decision)
    trigger = next((at for at in range(len(ticks)) if _is_trigger(lived, at)), len(ticks))
    since = ticks[min(trigger, len(ticks) - 1)].node.seconds - PAST_SECONDS
    begin = next((at for at, tick in enumerate(ticks) if tick.node.seconds >= since), 0)
    begin = max(begin, chance.randint(0, min(trigger, len(ticks) - 1)))
    writer.start(lived, ticks[0], pid)
    _peace(writer, ticks[:begin] if begin else ticks[:1])
    for tick in ticks[:begin]:
        shadow.step(tick)
    writer.start(lived, ticks[begin], pid)
    _burst(writer, lived, begin, chance, shadow, marks)


def _is_trigger(lived: Lived, at: int) -> bool:
    tick = lived.ticks[at]
    is_short = tick.state in ("short", "holding")
    return is_short or lived.verdicts[at] is not None or bool(tick.node.kernel_kills)


def _peace(writer: BoxWriter, ticks: list[Tick]) -> None:
    due = float("-inf")
    for tick in ticks:
        if tick.node.seconds >= due:
            due = tick.node.seconds + PEACE_SECONDS
            writer.ticks([tick], is_key=tick is ticks[0], is_rounded=True)


def _burst(
    writer: BoxWriter, lived: Lived, begin: int, chance: random.Random, shadow: Player, marks: float
) -> None:  # fmt: skip
    lines = list(lived.lines)
    at, is_key = begin, True
    while at < len(lived.ticks):
        some = lived.ticks[at : at + chance.randint(1, 4)]
        is_key = is_key or chance.random() < marks
        if is_key:
            writer.write("mind", some[0], {"mind": shadow.state_document()})
        writer.ticks(some, is_key=is_key)
        for tick in some:
            shadow.step(tick)
        while lines and lines[0][0] <= some[-1].number:
            number, text = lines.pop(0)
            tick = lived.ticks[number - lived.ticks[0].number]
            writer.write("line", tick, {"line": text})
        at, is_key = at + len(some), False
