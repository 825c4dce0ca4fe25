"""Whose descriptors are looked at when there is no time for all of them."""

from collections import Counter

import pytest

from seawall.host import descriptor_turns
from seawall.host.descriptor_turns import DescriptorTurns

FLOOD = dict.fromkeys(range(100, 250), 20_000)
"""Three million, of one workload."""
OTHERS = {300: 16, 301: 900, 302: 3000}
IN_TIME = 200_000
"""Descriptors for which there is time in one look."""


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> DescriptorTurns:
    sizes = {**FLOOD, **OTHERS}
    monkeypatch.setattr(descriptor_turns, "descriptors_of", lambda pid: sizes[pid])
    monkeypatch.setattr(
        descriptor_turns, "workload_of", lambda pid: "/many" if pid in FLOOD else f"/{pid}"
    )
    return DescriptorTurns()


def look(turns: DescriptorTurns, pids: list[int]) -> list[int]:
    """As far as there is time."""
    seen, left = [], IN_TIME
    for pid in turns.order(pids):
        left -= {**FLOOD, **OTHERS}[pid]
        if left < 0:
            break
        turns.note(pid, 0)
        seen.append(pid)
    return seen


def test_few_descriptors_are_looked_at_as_they_come(turns: DescriptorTurns) -> None:
    assert turns.order([302, 300, 301]) == [302, 300, 301]


def test_each_workload_has_its_turn_before_a_flood(turns: DescriptorTurns) -> None:
    for _ in range(20):
        assert look(turns, [*FLOOD, *OTHERS])[:3] == [300, 301, 302]


def test_a_look_goes_on_where_the_last_one_ended(turns: DescriptorTurns) -> None:
    seen: Counter[int] = Counter()
    for _ in range(17):
        seen.update(pid for pid in look(turns, [*FLOOD, *OTHERS]) if pid in FLOOD)
    assert seen.keys() == FLOOD.keys()
    assert max(seen.values()) == 2


def test_who_has_too_many_is_named(turns: DescriptorTurns) -> None:
    seen = look(turns, [*FLOOD, *OTHERS])
    left_out = [pid for pid in FLOOD if pid not in seen]
    (crowd,) = turns.crowds(left_out)
    assert crowd == ("/many", len(left_out), 20_000 * len(left_out))
    assert turns.crowds([300])[0].cgroup == "/300"


def test_one_with_too_many_for_one_look_goes_on_within_them(turns: DescriptorTurns) -> None:
    turns.order([*FLOOD, *OTHERS])
    turns.note(100, 4096)
    assert turns.offsets == {100: 4096}
    turns.order([*FLOOD, *OTHERS])
    turns.note(100, 0)
    assert turns.offsets == {}
