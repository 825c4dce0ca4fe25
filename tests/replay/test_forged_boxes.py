# SPDX-License-Identifier: Apache-2.0
"""Boxes with right checksums and wrong contents: an answer or one sentence, never a traceback."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.films.scripts import random_film
from tests.replay.boxed_film import record
from tests.replay.live_film import live

from seawall.blackbox.frame import Frame, pack
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.cli.main import main
from seawall.guard.settings import Settings
from seawall.replay.replay import replay

ODD: list[Any] = [
    None, True, -1, 5, 1 << 70, 1e308, "inf", "nan", "", "\x1b[2J\u202e", "x" * 5000, [], {},
    [[1], [2]], [[0]], {"a": 1}, ["/"], [None] * 18,
]  # fmt: skip


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[Frame]:
    """A box with kills, minds and lines in it."""
    path = tmp_path_factory.mktemp("good") / "box"
    record(live(random_film(3)), path, random.Random(3), marks=0.2)
    box = Box.open(str(path))
    return [box.frame(head) for head in box.heads]


def forged(frames: list[Frame], path: Path, chance: random.Random) -> str:
    """One value in each of some frames is another, and the checksum is made anew."""
    ring = RingFile.open(str(path), 4 << 20)
    for frame in frames:
        body = json.loads(json.dumps(frame.body))
        if chance.random() < 0.1:
            spoil(body, chance)
        ring.write(pack(frame._replace(body=body)))
    ring.close()
    return str(path)


def spoil(body: dict[str, Any], chance: random.Random) -> None:
    part: Any = body
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = part[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.15:
            part[key] = chance.choice(ODD)
            return
        part = inner


@pytest.mark.parametrize("seed", range(60))
def test_a_forged_box_is_answered(
    seed: int, frames: list[Frame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = forged(frames, tmp_path / "box", random.Random(seed))
    other = tmp_path / "other.toml"
    other.write_text('mode = "enforce"\nact_fraction = 0.2\nact_at_most = "64 GiB"\n')
    for words in ([], ["--json"], ["--config", str(other)]):
        assert main(["guard", "replay", path, *words]) in (0, 2)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        assert told.out.isascii()
        assert "\x1b" not in told.out + told.err


def test_most_of_those_are_noticed(frames: list[Frame], tmp_path: Path) -> None:
    """The test above can fail: what is spoiled is read."""
    noticed = 0
    for seed in range(20):
        path = forged(frames, tmp_path / str(seed), random.Random(seed))
        (boot, *_) = replay(Box.open(path), Settings()).boots
        noticed += bool(boot.notes or boot.compared.missing or boot.compared.differ)
    assert noticed > 10
