# SPDX-License-Identifier: Apache-2.0
"""Films lived through, recorded into a black box and judged again: to the frame."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.films.film import Film
from tests.films.scripts import SCRIPTS, Cast, random_film
from tests.replay.boxed_film import record
from tests.replay.live_film import BOOT, OWN, Lived, live

from seawall.blackbox.frame import ALIGN_BYTES
from seawall.blackbox.reader import Box
from seawall.guard.judge import case_steps, look_history, victim_choice
from seawall.guard.settings import Settings
from seawall.replay.player import Player
from seawall.replay.replay import replay
from seawall.replay.replay_results import BootReplay


def film_of(seed: int, script: Callable[[Cast], Film] | None = None) -> Film:
    """Some only observe, some are started anew in the middle."""
    film, chance = random_film(seed, script), random.Random(seed)
    if chance.random() < 0.25:
        film.settings = film.settings._replace(mode="observe")
    if chance.random() < 0.3 and film.restart_at is None:
        film.restart_at = 1000 + chance.uniform(3, 20)
    return film


def replayed(path: Path, policy: Settings | None = None) -> BootReplay:
    (boot,) = replay(Box.open(str(path)), policy, "other.toml").boots
    return boot


def assert_as_live(lives: list[Lived], boot: BootReplay) -> None:
    decided = [decision for lived in lives for decision in lived.decided]
    found = [(one.number, one.verdict) for one in boot.as_live.results if one.is_exact]
    assert found == decided
    compared = boot.compared
    assert len(compared.same) == len(decided) == len(boot.live)
    assert [*compared.differ, *compared.missing, *compared.extra] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.__name__)
def test_every_scenario_is_decided_as_then(
    script: Callable[[Cast], Film], tmp_path: Path
) -> None:  # fmt: skip
    for seed in (11, 12):
        film, path = film_of(seed, script), tmp_path / str(seed)
        lives = live(film)
        record(lives, path, random.Random(seed), marks=0.05)
        assert_as_live(lives, replayed(path))


def test_some_of_those_films_decide_something(tmp_path: Path) -> None:
    """The test above can fail: there is something to be decided."""
    decided = 0
    for script in SCRIPTS:
        decided += sum(len(lived.decided) for lived in live(film_of(11, script)))
    assert decided >= len(SCRIPTS) / 2


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of twenty films."""
    folder = tmp_path_factory.mktemp("films")
    for seed in range(40, 60):
        record(live(film_of(seed)), folder / str(seed), random.Random(seed))
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (case_steps, "OBSERVED_SECONDS", 1.0),
        (look_history, "STEPS", (1.0, 2.0)),
        (victim_choice, "blocked", lambda able, rows, about: None),
    ],
    ids=["observed for less long", "looks that are younger", "useless kills are allowed"],
)
def test_another_judge_is_noticed(
    module: object, name: str, instead: object, boxes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another version: the page says where it differs instead of agreeing."""
    monkeypatch.setattr(module, name, instead)
    compared = [replayed(path).compared for path in boxes]
    assert sum(len(one.differ) + len(one.missing) + len(one.extra) for one in compared) > 0


# --- in the middle ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seed",
    [*range(300, 310), *(pytest.param(n, marks=pytest.mark.campaign) for n in range(310, 330))],
)
def test_a_mind_that_was_written_down_goes_on_as_the_one_that_lived(seed: int) -> None:
    film = film_of(seed)
    chance = random.Random(seed)
    for lived in live(film):
        player = Player(lived.settings, BOOT, OWN, lived.last_decision)
        begin = chance.randrange(len(lived.ticks))
        for tick in lived.ticks[:begin]:
            player.step(tick)
        mind = json.loads(json.dumps(player.state_document(), allow_nan=False))
        later = Player(Settings(), "other", "")
        later.recall(mind)
        for tick, verdict in zip(lived.ticks[begin:], lived.verdicts[begin:], strict=True):
            assert player.step(tick) == verdict
            assert later.step(tick) == verdict
            assert later._judge.state() == player._judge.state() == tick.state
        assert later.state_document() == player.state_document()


def without(path: Path, sequences: set[int]) -> int:
    """Tear these frames: a byte in the middle of each is another one.  How many there were."""
    data, torn = bytearray(path.read_bytes()), 0
    for head in Box.open(str(path)).heads:
        if head.sequence in sequences:
            data[head.offset + min(head.size - 1, ALIGN_BYTES // 2)] ^= 0xFF
            torn += 1
    path.write_bytes(data)
    return torn


@pytest.mark.parametrize("seed", range(400, 425))
def test_torn_frames_cost_their_ticks_and_nothing_else(seed: int, tmp_path: Path) -> None:
    """What is judged again is as it was, and what is not is said to be missing."""
    film, path, chance = film_of(seed), tmp_path / "box", random.Random(seed)
    lives = live(film)
    record(lives, path, chance, marks=0.2)
    heads = Box.open(str(path)).heads
    hit = {head.sequence for head in heads if chance.random() < 0.05}
    assert without(path, hit) == len(hit)
    boot = replayed(path)
    decided = {(number, v.sentence) for lived in lives for number, v in lived.decided}
    found = {(one.number, one.verdict.sentence) for one in boot.as_live.results if one.is_exact}
    assert found <= decided
    assert not boot.compared.differ
    for line, why in boot.compared.missing:
        assert not any(stretch.holds(line.number) for stretch in boot.stretches), why
    if hit - {max(head.sequence for head in heads), min(head.sequence for head in heads)}:
        assert any("torn" in note for note in boot.notes)


def test_a_ring_that_has_gone_round_begins_at_the_next_mind(tmp_path: Path) -> None:
    film, path, chance = film_of(11, SCRIPTS[1]), tmp_path / "box", random.Random(1)
    lives = live(film)
    record(lives, path, chance, marks=0.3)
    heads = Box.open(str(path)).heads
    first = {head.sequence for head in heads[: len(heads) // 2]}
    without(path, first)
    boot = replayed(path)
    assert boot.stretches
    assert boot.stretches[0].first > lives[0].ticks[0].number
    assert not boot.compared.differ
    assert not boot.compared.extra
