"""The measure changes, and nobody took anything: swap areas, watermarks."""

from pathlib import Path

import pytest
from tests.guard.test_sense_headroom import KIB_LINES, looked, proc

MIB = 1 << 20
FREE, ANON = KIB_LINES["MemFree"], KIB_LINES["AnonPages"]
SWAP = {"SwapTotal": 2000, "SwapFree": 2000}
USED = {"SwapTotal": 2000, "SwapFree": 1960}
NONE = {"SwapTotal": 0, "SwapFree": 0}


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (SWAP, NONE, 0),
        (NONE, SWAP, 0),
        (USED, {**NONE, "MemFree": FREE - 40, "AnonPages": ANON + 40}, 0),
        (SWAP, {**NONE, "MemFree": FREE - 50, "AnonPages": ANON + 50}, 50),
    ],
    ids=["swapoff", "swapon", "swapoff of what is used", "and a program took 50"],
)
def test_swap_areas_that_come_and_go(
    tmp_path: Path, before: dict[str, int], after: dict[str, int], lost: int
) -> None:
    (tmp_path / "swaps").write_text("Filename\tType\tSize\tUsed\tPriority\n/d partition 9 0 -2\n")
    head, memory = looked(tmp_path, **before)
    was = head.comparable_bytes
    for _ in range(2):
        proc(tmp_path, **after)
        assert memory.read()
        head.read_rarely(memory, 1.0)
        head.look(memory, 0)
        assert was - head.comparable_bytes == lost * MIB


def test_swapping_out_and_in_is_no_other_measure(tmp_path: Path) -> None:
    """Only a change of SwapTotal is another measure: what goes to swap on its own frees memory."""
    (tmp_path / "swaps").write_text("Filename\tType\tSize\tUsed\tPriority\n/d partition 9 0 -2\n")
    head, memory = looked(tmp_path, **SWAP)
    was = head.comparable_bytes
    proc(tmp_path, SwapTotal=2000, SwapFree=1960, MemFree=FREE + 40, AnonPages=ANON - 40)
    assert memory.read()
    head.look(memory, 0)
    assert head.comparable_bytes > was
    proc(tmp_path, **SWAP)
    assert memory.read()
    head.look(memory, 0)
    assert head.comparable_bytes == was


@pytest.mark.parametrize("factor", [3, 0])
def test_other_watermarks(tmp_path: Path, factor: int) -> None:
    """vm.min_free_kbytes, vm.watermark_scale_factor."""
    head, memory = looked(tmp_path)
    was, bytes_, low = head.comparable_bytes, head.bytes, head.zones.low_bytes
    path = tmp_path / "zoneinfo"
    lines = path.read_text().splitlines()
    path.write_text("".join(
        f"        low      {int(line.split()[1]) * factor}\n" if line.split()[:1] == ["low"]
        else f"{line}\n" for line in lines
    ))  # fmt: skip
    head.read_rarely(memory, 1.0)
    head.look(memory, 0)
    assert head.zones.low_bytes == factor * low > -1
    assert (head.bytes < bytes_) == (factor > 1)
    assert head.comparable_bytes == was
