# SPDX-License-Identifier: Apache-2.0
"""What goes to the disk when, by a clock of the test's own."""

import json
import random
import zlib
from copy import copy
from itertools import pairwise
from typing import Any

import pytest
from tests.recorder.pair import BOOT_ID, start, tick

from seawall.blackbox.round_frames import RoundReader
from seawall.guard.settings import Settings
from seawall.host.recording import Round
from seawall.recorder.guard_messages import JournalLine
from seawall.recorder.pretrigger_buffer import (
    KEPT_SECONDS,
    SPAN_SECONDS,
    PendingFrame,
    PreTriggerBuffer,
)
from seawall.recorder.recording_policy import KEY_SECONDS, KILL_BURSTS_MOST, RecordingPolicy
from seawall.replay.player import Player
from seawall.replay.tick_decoder import TickDecoder


def _round(seconds: float) -> Round:
    """As ``Samples`` makes it."""
    return Round(
        files={"/proc/meminfo": b"MemFree:       %d kB\n" % (seconds * 7)},
        probes={("now", ""): {"unix_seconds": 1.7e9 + seconds, "monotonic_seconds": seconds}},
    )


class _Scene:
    """A recorder's day: a tick a second, a light round a second, full ones when wanted."""

    def __init__(self, past: PreTriggerBuffer | None = None) -> None:
        self.written: list[PendingFrame] = []
        self.story = RecordingPolicy(
            self.written.append,
            lambda settings, last: {"settings": settings._asdict(), "last_decision": last},
            lambda settings, last: Player(settings, BOOT_ID, "/own", last),
            past,
        )
        self.story.started(start())
        self.seconds = 0.0
        self.number = 0

    def go(self, seconds: float, state: str = "peace", **other: float) -> None:
        for _ in range(int(seconds)):
            self.seconds += 1.0
            self.number += 1
            self.story.ticked(tick(self.number, self.seconds, state, **other))
            self.look()

    def look(self) -> None:
        self.story.tend(self.seconds)
        self.story.sampled(_round(self.seconds), "light")
        if self.story.wants_full(self.seconds):
            self.story.sampled(_round(self.seconds), "full")

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        return [_body(one) for one in self.written if one.kind == kind]

    def ticks(self) -> list[int]:
        reader = TickDecoder()
        return [t.number for body in self.bodies("tick") for t in reader.take(body)]


def _body(waiting: PendingFrame) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(zlib.decompress(waiting.payload))
    return body


def test_peace_has_a_tick_and_a_round_every_ten_seconds() -> None:
    scene = _Scene()
    scene.go(120)
    ticks = [one.monotonic_seconds for one in scene.written if one.kind == "tick"]
    rounds = [one.monotonic_seconds for one in scene.written if one.kind == "round"]
    assert len(ticks) == len(rounds) == 12
    assert max(b - a for a, b in pairwise(ticks)) <= 10.0
    assert all(one.is_peace for one in scene.written)
    assert sum(body["of"] == "full" for body in scene.bodies("round")) == 2


def test_keys_come_together_and_within_five_minutes() -> None:
    scene = _Scene()
    scene.go(2 * KEY_SECONDS + 40)
    keys = [n for n, one in enumerate(scene.written) if _body(one).get("key")]
    starts = [n for n, one in enumerate(scene.written) if one.kind == "start"]
    assert len(starts) == 3
    assert keys == [n for s in starts for n in (s + 1, s + 2)]
    times = [scene.written[n].monotonic_seconds for n in starts]
    assert all(b - a < 300 for a, b in pairwise(times))


@pytest.mark.parametrize(
    ("state", "other"),
    [("short", {}), ("holding", {}), ("peace", {"protected_stall": 0.6}),
     ("peace", {"kernel_kills": 1})],
)  # fmt: skip
def test_a_trigger_brings_the_half_minute_before_it(state: str, other: dict[str, float]) -> None:
    scene = _Scene()
    scene.go(95)
    before = len(scene.written)
    scene.go(1, state, **other)
    burst = scene.written[before:]
    assert [one.kind for one in burst[:3]] == ["start", "mind", "tick"]
    assert burst[2].monotonic_seconds <= scene.seconds - KEPT_SECONDS
    assert burst[2].monotonic_seconds > scene.seconds - KEPT_SECONDS - SPAN_SECONDS - 1
    numbers = [one.tick for one in burst if one.kind == "tick"]
    assert numbers == list(range(numbers[0], scene.number + 1))
    assert scene.story.is_burst
    scene.go(58)
    numbers = [one.tick for one in scene.written[before:] if one.kind == "tick"]
    assert numbers == list(range(numbers[0], scene.number + 1))
    scene.go(30)
    assert not scene.story.is_burst
    assert len(scene.written) - before < 400


def test_what_is_in_a_burst_can_be_read_and_played() -> None:
    scene = _Scene()
    scene.go(95)
    before = len(scene.written)
    scene.go(20, "short")
    mind: dict[str, Any] = scene.bodies("mind")[0]["mind"]
    reader, rounds = TickDecoder(), RoundReader()
    player = Player(Settings(), BOOT_ID, "/own")
    player.recall(mind)
    last = 0
    for waiting in scene.written[before:]:
        if waiting.kind == "mind":
            assert player.state_document() == _body(waiting)["mind"]
        if waiting.kind == "tick":
            for one in reader.take(_body(waiting)):
                assert last in (0, one.number - 1)
                last = one.number
                player.step(one)
        if waiting.kind == "round":
            taken = rounds.take(_body(waiting))
            assert taken is not None
            assert taken.round == _round(waiting.monotonic_seconds)
    assert last == scene.number


def test_after_a_burst_peace_begins_with_keys_and_can_be_read() -> None:
    scene = _Scene()
    scene.go(40)
    scene.go(3, "short")
    scene.go(70)
    before = len(scene.written)
    scene.go(30)
    assert scene.ticks()[-1] >= scene.number - 10
    assert len(scene.written) - before <= 8


def test_behind_a_gap_the_new_mind_is_kept_and_spare_ones_are_not() -> None:
    scene = _Scene()
    scene.go(12)
    scene.number += 5
    scene.story.started(start())
    scene.go(14)
    scene.go(1, "short")
    minds = [one.tick for one in scene.written if one.kind == "mind"]
    assert minds == [0, 12]


def test_a_look_between_the_new_mind_and_the_next_tick_does_not_lose_it() -> None:
    scene = _Scene()
    scene.go(12)
    scene.number += 5
    scene.story.started(start())
    scene.story.sampled(_round(12.5), "quick")
    scene.go(14)
    scene.go(1, "short")
    minds = [one.tick for one in scene.written if one.kind == "mind"]
    assert minds == [0, 12, 12]
    assert scene.ticks()[-15:] == list(range(18, 33))


def test_other_settings_behind_a_gap_make_no_mind_up() -> None:
    scene = _Scene()
    scene.go(12)
    scene.number += 5
    scene.go(2)
    scene.story.started(start()._replace(mind=None))
    scene.go(40)
    scene.go(1, "short")
    assert not [one for one in scene.written if one.kind == "mind"]


def test_a_round_that_no_frame_holds_leaves_its_clock() -> None:
    scene = _Scene()
    scene.go(40, "short")
    chance = random.Random(1)
    names = tuple(chance.randbytes(127).hex() + "/" for _ in range(40_000))
    large = _round(scene.seconds)
    large.names["/sys/fs/cgroup"] = names
    scene.story.sampled(large, "full")
    scene.go(40, "short")
    rounds = RoundReader()
    passes = [taken for body in scene.bodies("round") if (taken := rounds.take(body))]
    assert len(passes) == len(scene.bodies("round"))
    assert not any(taken.round.names for taken in passes)
    assert passes[-1].round == _round(scene.seconds)


def test_a_tick_that_no_frame_holds_is_a_gap() -> None:
    """Whoever may make cgroups can make that: thousands, of long names."""
    scene = _Scene()
    scene.go(40, "short")
    chance = random.Random(1)
    many = {f"/{chance.randbytes(2000).hex()}": None for _ in range(5_000)}
    group = next(iter(tick(1, 1.0).groups.values()))
    groups = {path: copy(group) for path in many}
    for path, one in groups.items():
        one.path = path
    scene.number += 1
    scene.seconds += 1.0
    scene.story.ticked(tick(scene.number, scene.seconds, "short")._replace(groups=groups))
    scene.go(40, "short")
    numbers = scene.ticks()
    assert scene.number - 40 not in numbers
    assert numbers[-40:] == list(range(scene.number - 39, scene.number + 1))


def test_a_second_burst_does_not_write_again_what_is_there() -> None:
    scene = _Scene()
    scene.go(40)
    scene.go(1, "short")
    scene.go(75)
    scene.go(2, "short")
    numbers = [one.tick for one in scene.written if one.kind == "tick" and not one.is_peace]
    assert len(numbers) == len(set(numbers))
    assert numbers[-17:] == list(range(scene.number - 16, scene.number + 1))


def test_without_the_mind_a_gap_makes_no_mind_up() -> None:
    scene = _Scene()
    scene.go(12)
    scene.number += 5
    scene.go(12, "short")
    minds = [one for one in scene.written if one.kind == "mind"]
    assert all(one.tick <= 12 for one in minds)
    assert scene.ticks()[-12:] == list(range(18, 30))


def test_a_decision_comes_behind_its_past_and_other_lines_alone() -> None:
    scene = _Scene()
    scene.go(35)
    before = len(scene.written)
    scene.story.lined(JournalLine(35, json.dumps({"kind": "event", "decision": None})), 1.7e9, 35.5)
    assert [one.kind for one in scene.written[before:]] == ["line"]
    scene.story.lined(JournalLine(35, json.dumps({"decision": "abcd1234-0001"})), 1.7e9, 35.6)
    assert scene.story.is_burst
    assert scene.written[before + 1].kind == "start"
    assert scene.written[-1].kind == "line"
    assert scene.written[-1].is_urgent
    scene.story.kernel_said(["oom-kill: x"], 1.7e9, 35.7, is_kill=True)
    assert (scene.written[-1].kind, scene.written[-1].is_urgent) == ("line", False)
    scene.story.lined(JournalLine(35, "{"), 1.7e9, 35.7)  # no decision that anybody could read
    assert scene.bodies("line")[-1] == {"line": "{"}


def test_one_that_is_killed_again_and_again_does_not_fill_the_ring() -> None:
    scene = _Scene()
    bursts = 0
    for _ in range(20):
        scene.go(1, kernel_kills=1)
        bursts += scene.story.is_burst
        scene.go(70)
    assert bursts == KILL_BURSTS_MOST
    scene.go(1, "short")
    assert scene.story.is_burst


def test_the_past_is_bounded_and_reaches_back_half_a_minute() -> None:
    past = PreTriggerBuffer(most_bytes=100_000)
    for second in range(200):
        if past.is_due(second):
            past.begin(second)
        past.add(PendingFrame("tick", 1.7e9, float(second), second, bytes(100)))
    times = [one.monotonic_seconds for one in past.frames()]
    assert times[-1] - times[0] >= KEPT_SECONDS
    assert times[-1] - times[0] < KEPT_SECONDS + SPAN_SECONDS
    for second in range(200, 240):
        if past.is_due(second):
            past.begin(second)
        past.add(PendingFrame("tick", 1.7e9, float(second), second, bytes(8000)))
    assert past.size_bytes <= 100_000
    assert past.size_bytes == sum(len(one.payload) for one in past.frames())
