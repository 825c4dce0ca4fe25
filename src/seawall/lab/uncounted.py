# SPDX-License-Identifier: Apache-2.0
"""Memory that no limit counts: taken piece by piece, with a look at the machine before each.

The plan was judged before, but then others may have taken memory: a limit would hold the rest
of them, and this only holds itself.
"""

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from seawall.lab import cuda, egl, rings
from seawall.lab.plan import ROOM_SHARE, Kind, Plan
from seawall.lab.slots import Progress, Slots
from seawall.lab.small_files import read_table
from seawall.words import size

Taker: TypeAlias = Callable[[int], int]
"""Takes at most so many bytes, at least one piece of its own, and holds them; how many.
OSError with words when there is nothing to be had."""

PIECES_MOST: Final = 256
"""A ring is a file descriptor."""
LEAST_PIECE_BYTES: Final = 4 << 20
_MOST_PIECE_BYTES: Final = 64 << 20


GRAIN_BYTES: Final[Mapping[Kind, int]] = {
    "rings": 64 << 10,
    "egl": egl.SURFACE_BYTES,
    "cuda-host": 2 << 20,
    "cuda-managed": 2 << 20,
}
"""What is taken is a multiple of it."""


def whole_grains(kind: Kind, wanted: int) -> int:
    """Not more than is wanted, but one grain; nothing of nothing."""
    grain = GRAIN_BYTES[kind]
    return max(grain, wanted // grain * grain) if wanted else 0


def piece_bytes(plan: Plan) -> int:
    """What is taken at once: eight times a second, but never too many pieces."""
    at_speed = _MOST_PIECE_BYTES if plan.step_bytes is None else plan.step_bytes // 8
    each = max(LEAST_PIECE_BYTES, min(_MOST_PIECE_BYTES, at_speed), plan.each_bytes // PIECES_MOST)
    return whole_grains(plan.kind, each)


def work(plan: Plan, slots: Slots, place: int, note: Callable[[str], None]) -> None:
    """Take it at its speed, hold it until the end; what kept it from that is noted."""
    take = TAKERS[plan.kind](plan, note)
    whole = available_bytes()
    began, done = time.monotonic(), 0
    slots.write(place, Progress(0, 0, 0.0, is_ready=True))
    while done < plan.each_bytes:
        piece = min(piece_bytes(plan), plan.each_bytes - done)
        left = available_bytes()
        if plan.uncounted_bytes and (why := _too_low(whole, left, piece)):
            note(f"stopped at {size(done)}: MemAvailable {why}")
            break
        try:
            done += take(piece)
        except OSError as error:
            note(f"stopped at {size(done)}: {error.strerror or error}")
            break
        slots.write(place, Progress(done, 0, 0.0, is_ready=True))
        if plan.step_bytes:
            time.sleep(max(0.0, done / plan.step_bytes - (time.monotonic() - began)))
    while True:
        signal.pause()


def _too_low(whole: int | None, left: int | None, piece: int) -> str:
    """Why no more is taken: of ``whole`` at the start ``left`` is left; empty if it may be."""
    if whole is None or left is None:
        return "cannot be read"
    return f"has fallen to {size(left)} meanwhile" if left - piece < ROOM_SHARE * whole else ""


def available_bytes() -> int | None:
    """MemAvailable; None when it cannot be read."""
    found = read_table("/proc/meminfo").get("MemAvailable")
    return None if found is None else found << 10


TAKERS: Final[dict[Kind, Callable[[Plan, Callable[[str], None]], Taker]]] = {
    "rings": rings.taker,
    "egl": egl.taker,
    "cuda-host": cuda.host_taker,
    "cuda-managed": cuda.managed_taker,
}
QUESTIONS: Final[Mapping[Kind, Callable[[], Mapping[str, Any]]]] = {
    "egl": egl.about,
    "cuda-host": cuda.about_host,
    "cuda-managed": cuda.about_managed,
}
"""For ``libraries.asked``, before anything starts."""
