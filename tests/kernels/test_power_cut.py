"""Power cuts on a disk with a volatile cache: what the box said it holds, it holds.

Three boots: the writer alone, quiet and in a thrash, and the whole guard.  `make power-cuts` makes
as many cuts as one likes.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kernels import power_cut, power_cut_guard, vm

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not os.environ.get("SEAWALL_MARKS"), reason="cuts by the dozen: make power-cuts"
    ),
]
CUTS = 4
SEED = 7
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def cut_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[vm.Image]:
    if why := vm.missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("power")
    yield vm.build_image(folder, power_cut.add_text)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def rows(cut_image: vm.Image) -> Rows:
    found = [
        row
        for is_thrash in (False, True)
        for row in power_cut.run_boot(cut_image, SEED + is_thrash, CUTS, is_thrash=is_thrash)
    ]
    for row in found:
        print(row)  # noqa: T201 - shown by -rP, with its seeds
    return found


def test_nothing_that_was_acknowledged_is_lost(rows: Rows) -> None:
    assert len(rows) == 2 * CUTS
    for row in rows:
        assert row["acknowledged"] >= 5, row
        assert power_cut.is_good(row), row


def test_some_cuts_came_while_a_frame_was_on_its_way(rows: Rows) -> None:
    """Else nothing was put to the test."""
    assert any(row["unflushed"] for row in rows), rows


def test_the_controls_lose_what_they_acknowledged(rows: Rows) -> None:
    """Else the disk keeps everything, and the first test proves nothing."""
    lost = power_cut.totals(rows)["control_lost"]
    assert lost["direct"] > 0, rows
    assert lost["buffered"] > 0, rows


def test_the_guard_loses_a_second_after_a_trigger_and_thirty_in_peace(cut_image: vm.Image) -> None:
    found = list(power_cut_guard.run_boot(cut_image, SEED, in_peace=2, after=3))
    for row in found:
        print(row)  # noqa: T201 - shown by -rP, with its seeds
    assert sum(row["after_trigger"] is not None for row in found) == 3
    for row in found:
        assert power_cut_guard.is_good(row), row
