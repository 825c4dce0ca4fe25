# SPDX-License-Identifier: Apache-2.0
"""Films as the recorder's own story writes them, bursts close together, and judged again."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from tests.films.scripts import random_film
from tests.replay.live_film import BOOT, OWN, Lived, live

from seawall.blackbox.frame import Frame, seal_frame
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.guard.settings import Settings
from seawall.host.host import JSON
from seawall.host.recording import Round
from seawall.recorder import recording_policy as module
from seawall.recorder.guard_messages import GuardStart, JournalLine
from seawall.recorder.pretrigger_buffer import PendingFrame
from seawall.recorder.recording_policy import RecordingPolicy
from seawall.replay.player import Player
from seawall.replay.replay import replay


class Ring:
    """Writes what the story puts."""

    def __init__(self, path: Path) -> None:
        self._ring = RingFile.open(str(path), 8 << 20)

    def put(self, one: PendingFrame) -> None:
        frame = Frame(
            self._ring.next_sequence, one.kind, one.unix_seconds, one.monotonic_seconds, BOOT,
            one.tick, {},
        )  # fmt: skip
        self._ring.write(seal_frame(frame, one.payload))

    def close(self) -> None:
        self._ring.close()


def about(pid: int, settings: Settings, last_decision: str) -> dict[str, JSON]:
    told: dict[str, JSON] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings._asdict().items()
    }
    return {
        "tool_version": "0.0", "host": "node-7", "kernel": "6.1.0", "page_bytes": 4096,
        "mounts": {}, "settings": told, "own_cgroup": OWN, "last_decision": last_decision,
        "pid": pid, "began_unix": 1.0,
    }  # fmt: skip


def now(unix: float, seconds: float) -> Round:
    made = Round()
    made.probes["now", ""] = {"unix_seconds": unix, "monotonic_seconds": seconds}
    return made


def tell(lived: Lived, ring: Ring, pid: int) -> None:
    """One guard's life, with a look at the node between the ticks."""
    recording_policy = RecordingPolicy(
        ring.put,
        lambda settings, last: about(pid, settings, last),
        lambda settings, last: Player(settings, BOOT, OWN, last),
    )
    recording_policy.started(GuardStart(lived.settings, lived.last_decision, None))
    lines, looked = list(lived.lines), 0.0
    for tick in lived.ticks:
        recording_policy.ticked(tick)
        seconds = tick.node.seconds
        while lines and lines[0][0] == tick.number:
            number, text = lines.pop(0)
            recording_policy.lined(JournalLine(number, text), tick.unix_seconds, seconds)
        if seconds - looked >= 1:
            looked = seconds
            of = "full" if recording_policy.wants_full(seconds) else "light"
            recording_policy.sampled(now(tick.unix_seconds, seconds), of)
        recording_policy.tend(seconds)


@pytest.mark.parametrize("seed", range(500, 530))
def test_what_the_recorder_writes_is_judged_as_then(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bursts of three seconds: several in a film, with overlapping pasts."""
    monkeypatch.setattr(module, "BURST_SECONDS", 3.0)
    monkeypatch.setattr(module, "PEACE_SECONDS", 1.0)
    film, chance = random_film(seed), random.Random(seed)
    if chance.random() < 0.3 and film.restart_at is None:
        film.restart_at = 1000 + chance.uniform(3, 20)
    lives, ring = live(film), Ring(tmp_path / "box")
    for pid, lived in enumerate(lives, start=1):
        tell(lived, ring, pid)
    ring.close()
    (boot,) = replay(Box.open(str(tmp_path / "box")), None).boots
    decided = [decision for lived in lives for decision in lived.decided]
    assert [(one.number, one.verdict) for one in boot.as_live.results if one.is_exact] == decided
    assert len(boot.compared.same) == len(decided) == len(boot.live)
    assert not any("ticks follow" in note for note in boot.notes)
    spans = [(stretch.first, stretch.last) for stretch in boot.stretches]
    assert all(one[1] < two[0] for one, two in pairwise(spans))
    for stretch in boot.stretches:
        assert stretch.ticks == stretch.last + 1 - stretch.first
    assert boot.ticks <= sum(len(lived.ticks) for lived in lives)
