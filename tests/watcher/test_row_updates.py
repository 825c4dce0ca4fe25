"""Everybody is told again once in a while, for a message may have been lost."""

import pytest

from seawall.watcher import workload_inventory
from seawall.watcher.guard_endpoint import Row
from seawall.watcher.workload_inventory import REPEAT_ROWS, RowUpdates


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(workload_inventory.time, "monotonic", lambda: now[0])
    return now


def rows(many: int) -> dict[str, Row]:
    return {f"/{n:04}": {"cgroup": f"/{n:04}", "name": str(n)} for n in range(many)}


def test_who_was_told_longest_ago_is_told_again(clock: list[float]) -> None:
    one, known = RowUpdates(), rows(100)
    told, gone = one.of(known)
    assert (len(told), gone) == (100, [])
    one.mark_sent(told, gone)
    assert one.of(known) == ([], [])
    again: list[str] = []
    for _ in range(2):
        clock[0] += 61
        told, gone = one.of(known)
        assert (len(told), gone) == (REPEAT_ROWS, [])
        assert one.of(known)[0] == told, "as long as it was not taken"
        one.mark_sent(told, ())
        assert one.of(known) == ([], [])
        again += [row["cgroup"] for row in told]
    assert set(again) == set(known)


def test_who_is_gone_is_told_whether_he_was_to_be_told_again_or_not(clock: list[float]) -> None:
    one, known = RowUpdates(), rows(3)
    one.mark_sent(known.values(), ())
    clock[0] += 61
    assert one.of({}) == ([], list(known))
    one.mark_sent((), known)
    assert one.of({}) == ([], [])
