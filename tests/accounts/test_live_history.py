# SPDX-License-Identifier: Apache-2.0
"""Rates, kills and headroom of ``seawall top`` over seconds that the test makes."""

import pytest

from seawall.accounts.live_view.live_history import KnownWorkload, LiveHistory
from seawall.accounts.live_view.live_sample import GroupSample, LiveSample, NodeSample
from seawall.accounts.node_memory.memory_left import MemoryLeft
from seawall.readings.reading import UNLIMITED

GIB = 1 << 30
MIB = 1 << 20


def group(path: str, charge: int | None, kills: int | None = 0) -> GroupSample:
    return GroupSample(path, charge, UNLIMITED, kills, None, 0)


def node(seconds: float, left: int, kills: int = 0) -> NodeSample:
    room = MemoryLeft(16 * GIB, left, "left", 0)
    return NodeSample(seconds, 1e9 + seconds, room, {}, kills, 0, 0)


def test_seconds_left_are_those_of_the_pace() -> None:
    history = LiveHistory(1.0)
    for second in range(10):
        history.add(LiveSample(node(second, 2 * GIB - second * 100 * MIB), ()))
    assert history.pace() == pytest.approx(-100 * MIB)
    assert history.seconds_left() == pytest.approx((2 * GIB - 900 * MIB) / (100 * MIB))


def test_one_jump_is_no_pace() -> None:
    history = LiveHistory(1.0)
    for second in range(10):
        history.add(LiveSample(node(second, 2 * GIB - (GIB if second == 5 else 0)), ()))
    assert history.pace() == 0
    assert history.seconds_left() is None


def test_too_little_was_watched_for_a_pace() -> None:
    history = LiveHistory(1.0)
    history.add(LiveSample(node(0, GIB), ()))
    assert history.pace() is None
    history.add(LiveSample(node(1, GIB // 2), ()))
    assert history.pace() is None


def test_minute_holds_the_least_and_gaps_stay_gaps() -> None:
    history = LiveHistory(1.0)
    for second, left in ((0, 9), (1, 8), (30, 5), (31.2, 4), (31.8, 3), (33, 6)):
        history.add(LiveSample(node(second, left), ()))
    minute = history.headroom_minute(60)
    assert minute[-4:] == [5, 5, 3, 6]
    assert None in minute[30:55]
    assert minute[:20] == [None] * 20


def test_a_slow_interval_leaves_no_holes() -> None:
    history = LiveHistory(5.0)
    for second in range(0, 61, 5):
        history.add(LiveSample(node(second, GIB), ()))
    assert history.headroom_minute(60).count(None) <= 4


def test_kills_of_the_last_minute_come_and_go() -> None:
    history = LiveHistory(1.0)
    path = "/system.slice/a.service"

    def new_kills(second: float, kills: int) -> int:
        history.add(LiveSample(node(second, GIB, kills), (group(path, GIB, kills),)))
        [row] = history.rows({}, uncounted_is_known=False)
        assert row.kills == kills
        return row.new_kills

    assert new_kills(0, 7) == 0
    assert new_kills(1, 9) == 2
    assert history.new_kills() == 2
    assert new_kills(2, 9) == 2
    assert new_kills(63, 9) == 0
    assert history.new_kills() == 0


def test_growth_is_of_the_last_five_seconds_and_ends() -> None:
    history = LiveHistory(1.0)
    seen = []
    for second in range(20):
        charge = min(second, 10) * MIB
        history.add(LiveSample(node(second, GIB), (group("/system.slice/a.service", charge),)))
        seen.append(history.rows({}, uncounted_is_known=False)[0].growth)
    assert seen[0] is None
    assert seen[8] == pytest.approx(MIB)
    assert seen[12] == pytest.approx(MIB * 3 / 5)
    assert seen[19] == 0


def test_rows_are_workloads_and_charges_count_once() -> None:
    history = LiveHistory(1.0)
    box = "/kubepods.slice/cri-containerd-" + "ab" * 32 + ".scope"
    samples = (
        group("/system.slice/a.service", 3 * GIB), group("/system.slice/a.service/inner", GIB),
        group("/small", 1000), group("/plain", GIB), group(box, 2 * GIB), group("/unread", None),
    )  # fmt: skip
    history.add(LiveSample(node(0, GIB), samples))
    rows = {row.name: row for row in history.rows({}, uncounted_is_known=False)}
    assert set(rows) == {"unit:a.service", "/plain", "container:abababababab"}
    assert rows["unit:a.service"].charge_bytes == 3 * GIB
    assert rows["/plain"].uncounted_bytes is None
    known = {
        "/system.slice/a.service/inner": KnownWorkload("ns/pod/c", "container", True, 5, 2),
        "/plain": KnownWorkload("/plain", "cgroup", False, 0),
    }  # fmt: skip
    rows = {row.name: row for row in history.rows(known, uncounted_is_known=True)}
    assert set(rows) == {"unit:a.service", "ns/pod/c", "container:abababababab"}
    assert rows["unit:a.service"].charge_bytes == 2 * GIB
    assert rows["unit:a.service"].uncounted_bytes == 0
    assert (rows["ns/pod/c"].uncounted_bytes, rows["ns/pod/c"].kills) == (5, 2)


def test_what_is_gone_is_forgotten() -> None:
    history = LiveHistory(1.0)
    history.add(LiveSample(node(0, GIB), (group("/a.service", GIB), group("/b.service", GIB))))
    history.add(LiveSample(node(1, GIB), (group("/b.service", GIB),)))
    assert [row.name for row in history.rows({}, uncounted_is_known=False)] == ["unit:b.service"]
