"""An error of ours, or no memory for a moment, does not end the guard."""

from types import SimpleNamespace
from typing import Any

import pytest

from seawall.guard.loop_parts import LoopParts
from seawall.guard.survival import FAILURES_MOST, Survival


class Scene:
    """Parts that only hear of failures."""

    def __init__(self, heard: Any = None) -> None:
        self.said: list[str] = []
        teller = SimpleNamespace(event=heard or self.said.append)
        recorder = SimpleNamespace(fall_behind=lambda _now: None)
        parts: Any = SimpleNamespace(teller=teller, recorder=recorder)
        self.survival = Survival(
            LoopParts(*[parts] * 11)._replace(teller=teller, recorder=recorder)
        )


def failing(error: BaseException) -> Any:
    def part() -> None:
        raise error

    return part


@pytest.mark.parametrize("error", [OSError("x"), MemoryError(), RuntimeError("y"), KeyError("z")])
def test_it_is_told_and_survived(error: Exception) -> None:
    scene = Scene()
    assert not scene.survival.of(failing(error))
    assert scene.said == [f"a tick failed: {type(error).__name__}: {error}"]
    assert scene.survival.of(lambda: None)


def test_even_where_there_is_no_memory_to_tell_it() -> None:
    assert not Scene(heard=failing(MemoryError())).survival.of(failing(MemoryError()))


def test_an_end_that_is_asked_for_is_one() -> None:
    with pytest.raises(SystemExit):
        Scene().survival.of(failing(SystemExit(0)))


def test_many_in_a_row_are_too_many() -> None:
    survival = Scene().survival
    for _ in range(FAILURES_MOST - 1):
        survival.count(is_well=False)
    survival.count(is_well=True)
    for _ in range(FAILURES_MOST - 1):
        survival.count(is_well=False)
    assert not survival.is_over
    survival.count(is_well=False)
    assert survival.is_over
