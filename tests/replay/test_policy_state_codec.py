# SPDX-License-Identifier: Apache-2.0
"""The table of what the judge remembers is whole, and takes nothing else in."""

import importlib
import inspect
import json
import pkgutil
import random
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.films.scripts import random_film
from tests.replay.live_film import BOOT, OWN, live

from seawall.guard import judge as package
from seawall.guard.judge.row import Row
from seawall.guard.settings import Settings
from seawall.problems import BundleProblem
from seawall.replay.player import Player
from seawall.replay.replay import OUR_ERRORS
from seawall.replay.state_schema import SCRATCH, SLOTS
from seawall.replay.tick import Tick
from seawall.replay.typed_codec import codec_of

OF_ONE_TICK = {Row}
"""Classes that no judge keeps from one tick to the next."""


def classes() -> list[type]:
    """All that the judge defines and that can be changed."""
    found = []
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and not issubclass(kind, tuple):
                found.append(kind)
    return found


def test_every_class_of_the_judge_is_carried() -> None:
    missing = [kind.__name__ for kind in classes() if kind not in {*SLOTS, *OF_ONE_TICK}]
    assert not missing, f"say in replay/state_schema.py what they hold: {missing}"


@pytest.mark.parametrize("kind", SLOTS, ids=lambda kind: kind.__name__)
def test_every_slot_is_carried(kind: Any) -> None:
    named = {*SLOTS[kind], *SCRATCH.get(kind, {})}
    assert set(kind.__slots__) == named, f"say in replay/state_schema.py what {kind} holds"
    assert not hasattr(kind, "__dict__") or "__dict__" not in dir(kind.__new__(kind))


SEEDS = range(60, 90)


@cache
def minds() -> list[str]:
    """As films leave them, with cases, holds, overruns and kills in them."""
    made = []
    for seed in SEEDS:
        (lived, *_) = live(random_film(seed))
        player = Player(lived.settings, BOOT, OWN)
        for tick in lived.ticks[: random.Random(seed).randint(1, len(lived.ticks))]:
            player.step(tick)
        made.append(json.dumps(player.state_document(), allow_nan=False))
    return made


@cache
def last_ticks() -> list[Tick]:
    """Of one film."""
    return live(random_film(61))[0].ticks[-40:]


def test_the_films_fill_what_is_carried() -> None:
    """Somewhere each list, table and optional part holds something."""
    found = set[str]()
    for text in minds():
        for name, value in json.loads(text)["_mind"].items():
            if value not in ([], None, ""):
                found.add(name)
        found |= {f"hold{k}" for k, v in json.loads(text)["_mind"]["hold"].items() if v}
    assert {"cases", "short_since", "shortage", "hold_kills", "holddone", "refusal"} <= found


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found += places(inner, (*path, at))
    return found


HOSTILE: list[Any] = [
    None, True, -1, 0, 1 << 70, 1e308, "inf", "nan", "", "x" * 20_000, [], {}, [[]], [None] * 3,
    {"a": 1}, "../../x", [["", 0], 1],
]  # fmt: skip


@given(st.integers(0, len(SEEDS) - 1), st.integers(0, 1 << 30), st.sampled_from(HOSTILE))
def test_a_forged_mind_is_refused_or_judges(which: int, where: int, instead: Any) -> None:
    """One value is another: a BundleProblem, or a judge whose errors the replay expects."""
    mind = json.loads(minds()[which])
    found = places(mind)
    *above, last = found[1 + where % (len(found) - 1)]
    part = mind
    for key in above:
        part = part[key]
    part[last] = instead
    player = Player(Settings(), BOOT, OWN)
    with suppress(BundleProblem, *OUR_ERRORS):
        player.recall(mind)
        for tick in last_ticks():
            player.step(tick)


@pytest.mark.parametrize("mind", HOSTILE)
def test_what_is_no_mind_is_refused(mind: Any) -> None:
    with pytest.raises(BundleProblem):
        Player(Settings(), BOOT, OWN).recall(mind)


def test_deep_nesting_is_refused() -> None:
    mind = json.loads(minds()[0])
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    mind["_mind"]["cases"] = deep
    with pytest.raises(BundleProblem):
        Player(Settings(), BOOT, OWN).recall(mind)


def test_a_state_of_before_a_setting_was_there_is_read() -> None:
    """Settings have only grown at their end since; a box on a disk is of any version."""
    written = codec_of(Settings).write(
        Settings(
            mode="enforce",
            run_on_decision="/bin/x",
            rescue=True,
            quarantine=True,
            job_output=False,
            job_comment=True,
            job_end_whole=True,
            slurm_commands="/x",
            slurm_conf="/y",
            user_slices=True,
        )
    )
    assert isinstance(written, list)
    since = (
        "run_on_decision", "rescue", "quarantine", "job_output", "job_comment", "job_end_whole",
        "slurm_commands", "slurm_conf", "user_slices",
    )  # fmt: skip
    assert Settings._fields[-len(since) :] == since
    assert codec_of(Settings).read(written[: -len(since)]) == Settings(mode="enforce")
    for odd in ([*written, 1], [*written[:-2], 7]):
        with pytest.raises(ValueError, match="expected"):
            codec_of(Settings).read(odd)
