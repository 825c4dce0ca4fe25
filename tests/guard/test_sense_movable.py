"""The zone Movable is for programs: it is no headroom once the kernel has used up all others."""

from pathlib import Path

import pytest
from tests.guard.test_sense_headroom import MIB, looked

from seawall.guard.sense import tick_headroom

PAGES = 256
"""Of a MiB."""
MIN, LOW = 10, 20


def zone(node: int, name: str, free: int, size: int = 1000, cache: int = 0) -> str:
    """In MiB; as mm/vmstat.c prints it, per-node counters before the first."""
    return (
        f"Node {node}, zone {name:>8}\n  per-node stats\n      nr_inactive_file 5\n"
        f"  pages free     {free * PAGES}\n        boost    0\n        min      {MIN * PAGES}\n"
        f"        low      {LOW * PAGES}\n        high     {(LOW + 10) * PAGES}\n"
        f"        spanned  {size * PAGES}\n        present  {size * PAGES}\n"
        f"        managed  {size * PAGES}\n        cma      0\n        protection: (0, 0)\n"
        f"      nr_free_pages {free * PAGES}\n      nr_zone_inactive_anon 1\n"
        f"      nr_zone_active_anon 1\n      nr_zone_inactive_file {cache * PAGES // 2}\n"
        f"      nr_zone_active_file {cache * PAGES // 2}\n      nr_zone_unevictable 0\n"
    )


@pytest.fixture
def zones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What its zoneinfo says from here on."""
    rows: list[str] = []
    (tmp_path / "zones").mkdir()

    class OfOurs(tick_headroom.TickZoneinfo):
        def __init__(self, _: str, page_size: int) -> None:
            (tmp_path / "zones/zoneinfo").write_text("".join(rows))
            super().__init__(str(tmp_path / "zones"), page_size)

    monkeypatch.setattr(tick_headroom, "TickZoneinfo", OfOurs)
    return rows


@pytest.mark.parametrize(
    ("normal", "other", "movable", "cache"),
    [
        (MIN - 1, MIN - 1, 230, 60),
        (MIN - 1, LOW - 1, 230, 60),
        (MIN - 1, LOW, 0, 0),  # the kernel still has the other node's
        (MIN, MIN, 0, 0),  # kswapd is at work, as on every node whose cache is large
        (40, 40, 0, 0),
    ],
    ids=["both used up", "one under min", "room on another node", "under low", "room"],
)
def test_what_the_kernel_cannot_have_is_none(
    tmp_path: Path, zones: list[str], normal: int, other: int, movable: int, cache: int
) -> None:
    zones += [
        zone(0, "DMA", 1, size=4), zone(0, "Normal", normal, cache=30),
        zone(1, "Normal", other), zone(2, "Movable", 250, cache=60), zone(3, "Movable", 0),
    ]  # fmt: skip
    head, _ = looked(tmp_path)
    low = (5 * LOW) * MIB
    assert head.zones.low_bytes == low
    assert head.zones.movable_free_bytes == movable * MIB
    assert head.zones.movable_cache_bytes == cache * MIB
    assert head.free_bytes == 300 * MIB - low - movable * MIB
    clean = (310 - 10 - cache) * MIB
    assert head.cache_bytes == clean - min(clean // 2, low)
    # It is no loss either: nobody took what only cannot be had.
    assert head.comparable_bytes == 300 * MIB - low + (310 + 40) * MIB


def test_an_empty_zone_movable_changes_nothing(tmp_path: Path, zones: list[str]) -> None:
    """As every kernel prints it."""
    zones += [zone(0, "Normal", 5), zone(0, "Movable", 0, size=0)]
    head, _ = looked(tmp_path)
    assert head.zones.is_min
    assert head.zones.movable_free_bytes == head.zones.movable_cache_bytes == 0
