# SPDX-License-Identifier: Apache-2.0
"""From the passes of a record to what is known at one moment, and between which two a rate holds.

A *whole* pass asked everything that the recorder asks; a light one only what changes fast.  What
is known at a moment is the last whole pass with the light ones after it laid over it: so some
of it is older than the rest.  A rate is taken only between two passes that both asked for it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from seawall.blackbox.frame import FrameHead
from seawall.blackbox.overview import GAP_SECONDS
from seawall.blackbox.reader import Boot, Box
from seawall.blackbox.record_times import rfc3339_of
from seawall.blackbox.round_frames import RoundReader
from seawall.host.host import JSON
from seawall.host.recording import Round, overlay_passes
from seawall.problems import BundleProblem

WINDOW_LEAST_SECONDS: Final = 2.0
WINDOW_MOST_SECONDS: Final = 30.0
"""Further back only what was read whole is compared: of a longer window a rate tells too little."""
ANSWERS_MOST: Final = 5_000_000
"""Of all passes that are looked at together: a forged box asks the same a million times.  Of a real
one these are 40 whole passes over 20,000 cgroups."""
WHOLE: Final = "full"
"""The series of whole passes."""
BACK_SECONDS: Final = (22.0, 130.0, 900.0)
"""So far before the moment its last two whole passes lie: in a burst, in peace, and when something
is missing.
"""


class Pass(NamedTuple):
    """What one pass asked, and nothing older."""

    unix_seconds: float
    monotonic_seconds: float
    boot_id: str
    is_whole: bool
    round: Round


Clocked = TypeVar("Clocked", FrameHead, Pass)


class Moments(NamedTuple):
    """What is known at one moment."""

    now: Pass
    """The last pass before it."""
    known: Round
    """Of it, and of the passes before it back to ``base``."""
    base: Pass | None
    """The last whole one; None: it was lost."""
    near: tuple[Pass, Pass] | None
    """Ends with ``now``; at least WINDOW_LEAST_SECONDS long."""
    whole: tuple[Pass, Pass] | None
    """The last two whole ones."""
    near_middle: Pass | None
    """Of those within ``near`` the nearest to its middle, light or whole; None: there is none."""
    whole_middle: Pass | None
    """The same of ``whole``."""

    @property
    def old_seconds(self) -> float:
        """How much older the oldest answer is than the moment; 0 when all are of one pass."""
        if self.base is None:
            return 0.0
        return max(0.0, self.now.monotonic_seconds - self.base.monotonic_seconds)


def choose(passes: Sequence[Pass]) -> Moments:
    """``passes``: up to the moment, at least one.  Only those of the last one's boot count.

    They are put in order: when a burst begins, what came half a minute before it is written last.
    """
    boot_id = passes[-1].boot_id
    same = in_order(one for one in passes if one.boot_id == boot_id)
    now = same[-1]
    wholes = [place for place, one in enumerate(same) if one.is_whole]
    first = wholes[-1] if wholes else 0
    known = overlay_passes(one.round for one in same[first:])
    base = same[wholes[-1]] if wholes else None
    near, whole = _near_pair(same), _whole_pair([same[place] for place in wholes])
    return Moments(now, known, base, near, whole, _middle(same, near), _middle(same, whole))


def in_order(passes: Iterable[Pass]) -> list[Pass]:
    """By the clock of their boot."""
    return sorted(passes, key=_by_time)


def _near_pair(passes: Sequence[Pass]) -> tuple[Pass, Pass] | None:
    """The best window up to now: the shortest of those whose begin asked all that its end asked;
    else the one whose begin asked most of it.
    """
    now = passes[-1]
    best: tuple[int, Pass] | None = None
    for one in reversed(passes[:-1]):
        seconds = now.monotonic_seconds - one.monotonic_seconds
        if seconds < WINDOW_LEAST_SECONDS:
            continue
        if seconds > WINDOW_MOST_SECONDS:
            break
        shared = len(one.round.files.keys() & now.round.files.keys())
        if best is None or shared > best[0]:
            best = (shared, one)
        if shared == len(now.round.files):
            break
    return (best[1], now) if best else None


def _whole_pair(wholes: Sequence[Pass]) -> tuple[Pass, Pass] | None:
    """The last one, and the last that lies far enough before it."""
    for one in reversed(wholes[:-1]):
        if wholes[-1].monotonic_seconds - one.monotonic_seconds >= WINDOW_LEAST_SECONDS:
            return one, wholes[-1]
    return None


def _middle(passes: Sequence[Pass], pair: tuple[Pass, Pass] | None) -> Pass | None:
    if pair is None:
        return None
    begin, end = (one.monotonic_seconds for one in pair)
    inside = [one for one in passes if begin < one.monotonic_seconds < end]
    half = (begin + end) / 2
    return min(inside, key=lambda one: abs(one.monotonic_seconds - half), default=None)


def passes_until(box: Box, unix_seconds: float) -> list[Pass]:
    """What is needed for ``choose`` at that moment: of the boot that ran then; empty when the
    box holds no pass that can be read before it.
    """
    boot = boot_at(box, unix_seconds)
    if boot is None:
        return []
    heads = up_to(rounds_of(boot), unix_seconds)
    passes: list[Pass] = []
    last = max(head.monotonic_seconds for head in heads)
    for back in BACK_SECONDS:
        passes = _read(box, heads, last - back)
        if passes and choose(passes).whole:
            break
    return passes


def read_passes(box: Box, boot: Boot, since: float, until: float) -> list[Pass]:
    """Those of a boot from one moment to another, and those before them back to a key."""
    heads = up_to(rounds_of(boot), until)
    if not heads:
        return []
    last = max(heads, key=_by_time)
    return _read(box, heads, last.monotonic_seconds - max(0.0, last.unix_seconds - since))


def rounds_of(boot: Boot) -> list[FrameHead]:
    """Of the passes of a boot."""
    return [head for head in boot.heads if head.kind == "round"]


def boot_at(box: Box, unix_seconds: float) -> Boot | None:
    """The boot whose passes lie nearest before a moment.  Where two recorded it, for a clock was
    wrong in one of them, it is the one that was written last.
    """
    found: tuple[float, Boot] | None = None
    for boot in box.boots():
        before = [h.unix_seconds for h in rounds_of(boot) if h.unix_seconds <= unix_seconds]
        if not before:
            continue
        near = max(before) if unix_seconds - max(before) > GAP_SECONDS else unix_seconds
        if found is None or near >= found[0]:
            found = (near, boot)
    return found[1] if found else None


def up_to(passes: Sequence[Clocked], unix_seconds: float) -> list[Clocked]:
    """Those of one boot up to a moment, by the clock that nobody sets: the other one may have been
    set back since.  Where that showed the moment twice, the later one counts.
    """
    before = [one for one in passes if one.unix_seconds <= unix_seconds]
    near = [one for one in before if unix_seconds - one.unix_seconds <= GAP_SECONDS]
    if near:
        until = max(one.monotonic_seconds for one in near)
    else:
        until = max(before, key=_by_clock).monotonic_seconds if before else -math.inf
    return [one for one in passes if one.monotonic_seconds <= until]


def _by_clock(one: FrameHead | Pass) -> tuple[float, float]:
    return one.unix_seconds, one.monotonic_seconds


def _by_time(one: FrameHead | Pass) -> float:
    return one.monotonic_seconds


def key_before(box: Box, unix_seconds: float) -> Pass | None:
    """The last pass before a moment that needs none before it: which machine that was."""
    boot = boot_at(box, unix_seconds)
    heads = up_to(rounds_of(boot), unix_seconds) if boot else []
    passes = _passes(islice(chain(box, heads, math.inf), 1))
    return passes[0] if passes else None


def chain(
    box: Box, heads: Sequence[FrameHead], since: float
) -> Iterator[tuple[FrameHead, dict[str, JSON]]]:
    """Heads with what their frames hold, in order, from the last key before ``since`` on (all,
    where none of them is one).  What cannot be unpacked is left out, as if it were torn.

    Only one is unpacked at a time: in a forged box each of them is as large as may be.
    """
    return _from_key(box, heads, [head.unix_seconds <= since for head in heads])


def _from_key(
    box: Box, heads: Sequence[FrameHead], are_before: Sequence[bool]
) -> Iterator[tuple[FrameHead, dict[str, JSON]]]:
    first = 0
    for place in range(len(heads) - 1, -1, -1):
        if are_before[place]:
            body = _body(box, heads[place])
            if body is not None and body.get("key") is True:
                first = place
                break
    for head in heads[first:]:
        body = _body(box, head)
        if body is not None:
            yield head, body


def _body(box: Box, head: FrameHead) -> dict[str, JSON] | None:
    try:
        return box.frame(head).body
    except BundleProblem:
        return None


def _read(box: Box, heads: Sequence[FrameHead], since: float) -> list[Pass]:
    """The passes from the last key at or before ``since``, monotonic seconds, on."""
    are_before = [head.monotonic_seconds <= since for head in heads]
    return _passes(_from_key(box, heads, are_before))


def _passes(bodies: Iterable[tuple[FrameHead, dict[str, JSON]]]) -> list[Pass]:
    """Each as it was; those that need one that is missing are left out.  BundleProblem: they are
    too much for this machine's memory.
    """
    reader = RoundReader()
    passes: list[Pass] = []
    left = ANSWERS_MOST
    for head, body in bodies:
        try:
            taken = reader.take(body)
        except BundleProblem:
            continue  # until the next key
        if taken is not None:
            found = taken.round
            left -= len(found.files) + len(found.names) + len(found.links) + len(found.probes)
            if left < 0:
                first = passes[0].unix_seconds if passes else head.unix_seconds
                raise BundleProblem(
                    f"more than {ANSWERS_MOST:,} answers from "
                    f"{rfc3339_of(first)} to {rfc3339_of(head.unix_seconds)}: "
                    "choose a shorter time"
                )
            when = (head.unix_seconds, head.monotonic_seconds, head.boot_id)
            passes.append(Pass(*when, taken.of == WHOLE, found))
    return passes
