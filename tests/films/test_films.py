"""Films of every scenario, and a campaign of random ones: no innocent is ever chosen."""

from collections.abc import Callable
from types import ModuleType

import pytest
from tests.films.campaign import run
from tests.films.film import Film, play
from tests.films.many import many_culprits
from tests.films.scripts import (
    MIXES,
    SCRIPTS,
    Cast,
    leak_beside,
    random_film,
    rings_late,
    two_late,
)

from seawall.guard.judge import node_short, ranking, row, suspicion, victim_choice
from seawall.guard.judge.cooldown import TENANTS_TIMES
from seawall.guard.judge.descent import Descent

CHUNK = 250
CHUNKS = ((1, 100), *((first, CHUNK) for first in range(101, 2100, CHUNK)))
"""First seed, and how many: the first few in each `make test`, all of them in `make thorough`."""
FEW = (30, pytest.param(60, marks=pytest.mark.campaign))
"""Films of a script, in either."""


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("script", [*SCRIPTS, many_culprits], ids=lambda s: s.__name__)
def test_only_the_right_ones_are_chosen(script: Callable[[Cast], Film], mix: str) -> None:
    for seed in range(3):
        shown = play(random_film(7_000_000 + seed, script, mix, swap=seed == 2))
        assert not shown.wrong, f"seed {7_000_000 + seed}: {shown.wrong}"
        assert not shown.unfair, f"seed {7_000_000 + seed}: {shown.unfair}"
        assert len(set(shown.chosen)) == len(shown.chosen)
        for at, (seconds, _) in enumerate(shown.killed):
            within = {name for later, name in shown.killed[at:] if later < seconds + 60}
            assert len(within) <= TENANTS_TIMES * shown.film.settings.kills_per_minute


@pytest.mark.parametrize(
    ("first", "films"),
    [CHUNKS[0], *(pytest.param(*chunk, marks=pytest.mark.campaign) for chunk in CHUNKS[1:])],
)
def test_campaign(first: int, films: int) -> None:
    """``python -m tests.films.campaign --films 100000`` is the long one."""
    counts, wrong = run(first, films)
    assert not wrong
    must = sum(number for name, number in counts.items() if name.startswith("must "))
    in_time = sum(number for name, number in counts.items() if name.startswith("in time "))
    assert must > films / 4
    assert in_time >= 0.95 * must


def is_one_wrong(films: int) -> bool:
    """Of so many; none is played after the first."""
    return any(run(seed, 1)[1] for seed in range(1, 1 + films))


def nothing(*_: object, **__: object) -> None:
    return None


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (ranking, "certain_of", lambda g, _, given_back: g.outside.most_bytes),
        (victim_choice, "blocked", nothing),
        (row, "promised_to", lambda g, total, limit: 0),
    ],
    ids=["vague evidence is believed", "useless kills are allowed", "no promise counts"],
)
def test_a_judge_without_its_rules_is_caught(
    module: ModuleType, name: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The films can fail: each rule that is taken away costs innocents."""
    monkeypatch.setattr(module, name, instead)
    assert is_one_wrong(150)


def test_without_proof_nobody_is_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "accuse", nothing)
    monkeypatch.setattr(node_short, "accuse_of_all", nothing)
    monkeypatch.setattr(Descent, "accuse", lambda _, rows, causes, *rest: causes)
    counts, _ = run(1, 40)
    must = sum(number for name, number in counts.items() if name.startswith("must "))
    in_time = sum(number for name, number in counts.items() if name.startswith("in time "))
    assert in_time < 0.5 * must


@pytest.mark.parametrize("seed", [74, 100, 262])
def test_many_small_culprits_go_before_one_who_held_still(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not play(random_film(seed, many_culprits, is_kubernetes=seed % 5 != 0)).wrong
    monkeypatch.setattr(victim_choice, "are_useful", lambda *_: False)
    assert play(random_film(seed, many_culprits, is_kubernetes=seed % 5 != 0)).wrong


def in_time(script: Callable[[Cast], Film], films: int, *, holds: bool) -> int:
    """Of so many films, those in which the right one was chosen before the kernel killed."""
    found = 0
    for seed in range(films):
        film = random_film(seed, script)
        film.settings = film.settings._replace(hold_suspects=holds)
        found += play(film).in_time
    return found


@pytest.mark.parametrize("films", FEW)
def test_proof_that_is_late_is_waited_for(films: int) -> None:
    scripts = (rings_late, two_late)
    with_holds = [in_time(script, films, holds=True) for script in scripts]
    without = [in_time(script, films, holds=False) for script in scripts]
    assert min(with_holds) >= 0.8 * films
    assert sum(with_holds) >= 1.5 * sum(without)


def held_in(script: Callable[[Cast], Film], films: int) -> tuple[int, list[str]]:
    shown = [play(random_film(seed, script)) for seed in range(films)]
    assert not any(one.chosen for one in shown)
    return sum(len(one.held) for one in shown), [word for one in shown for word in one.unfair]


@pytest.mark.parametrize("films", FEW)
def test_beside_a_leak_somebody_is_held_and_nobody_is_killed(films: int) -> None:
    holds, unfair = held_in(leak_beside, films)
    assert holds > films / 6
    assert not unfair


def is_one_held_unfairly(films: int) -> bool:
    """Of so many; none is played after the first."""
    for seed in range(films):
        shown = play(random_film(seed, leak_beside))
        assert not shown.chosen
        if shown.unfair:
            return True
    return False


@pytest.mark.parametrize(
    ("name", "instead"),
    [("_is_barred", lambda mind, row: False), ("REST_SECONDS", 0.0), ("hold_seconds", lambda _: 9)],
    ids=["protected ones are held", "nobody rests", "too long"],
)
def test_holds_without_their_rules_are_caught(
    name: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspicion, name, instead)
    assert is_one_held_unfairly(60)
