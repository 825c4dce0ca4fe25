# SPDX-License-Identifier: Apache-2.0
"""What the guard's ticks claim is found by the verbs where a watcher's own claims are."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.blackbox.box_maker import BOOT, DECISION, END, HOG, MIB, Told, small_box, write

from seawall.blackbox.moments import Pass, passes_until
from seawall.blackbox.reader import Box
from seawall.readings.saved_claims import PATH, SavedClaims, parse
from seawall.sources.box_claims import OLD_MOST_SECONDS, _told, with_claims
from seawall.sources.box_lines import decision_time
from seawall.sources.box_source import box_source


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Box, Told]:
    path: Path = tmp_path_factory.mktemp("box") / "blackbox"
    told = small_box(path)
    return Box.open(str(path)), told


def claims_at(box: Box, unix: float) -> SavedClaims | None:
    last = passes_until(box, unix)[-1:]
    (one,) = with_claims(box, last)
    found = one.round.files.get(PATH)
    return parse(found) if isinstance(found, bytes) else None


def test_the_holder_is_the_one_that_the_tick_names(made: tuple[Box, Told]) -> None:
    box, told = made
    kept = claims_at(box, END)
    assert kept
    assert kept.boot_id == BOOT
    (claim,) = kept.claims
    tick = [t for t in told.ticks if t.unix_seconds <= kept.written_at_unix_seconds][-1]
    (group,) = (g for g in tick.groups.values() if g.outside.most_bytes)
    assert (claim.workload, claim.cgroup, claim.bytes) == (HOG, group.path, group.outside[1])
    assert kept.residual_bytes - kept.base_residual_bytes == claim.bytes


def test_in_peace_nobody_is_claimed_to_hold_anything(made: tuple[Box, Told]) -> None:
    assert claims_at(made[0], END - 400) is None


def test_a_pass_long_after_the_last_tick_knows_nothing_of_it(made: tuple[Box, Told]) -> None:
    box, _ = made
    last = passes_until(box, END)[-1]
    late = last._replace(unix_seconds=END + OLD_MOST_SECONDS + 5)
    assert PATH not in with_claims(box, [late])[0].round.files


def test_the_last_pass_knows_what_a_tick_after_it_said_until_the_moment(
    made: tuple[Box, Told],
) -> None:
    box, told = made
    passes = passes_until(box, END)
    of_pass, moment = passes[-3], passes[-2].unix_seconds
    between = [t for t in told.ticks if of_pass.unix_seconds < t.unix_seconds <= moment]
    tick = between[-1]
    (group,) = (g for g in tick.groups.values() if g.outside.most_bytes)

    def claimed(until: float) -> tuple[float, int]:
        data = with_claims(box, [of_pass], until)[0].round.files[PATH]
        assert isinstance(data, bytes)
        kept = parse(data)
        return kept.written_at_unix_seconds, kept.claims[0].bytes

    assert claimed(tick.unix_seconds) == (tick.unix_seconds, group.outside.likely_bytes)
    assert claimed(of_pass.unix_seconds)[0] <= of_pass.unix_seconds
    assert claimed(of_pass.unix_seconds)[1] < group.outside.likely_bytes


def test_at_a_decision_its_own_tick_is_known(made: tuple[Box, Told]) -> None:
    """Proof may have come with it, and the memory be back with the next."""
    box, told = made
    at = decision_time(box, DECISION)
    assert at is not None
    own = next(t for t in told.ticks if t.unix_seconds > told.plot.short_at + 5)
    data = with_claims(box, passes_until(box, at)[-1:], at)[0].round.files[PATH]
    assert isinstance(data, bytes)
    assert parse(data).written_at_unix_seconds == own.unix_seconds


@pytest.mark.parametrize("at", [DECISION, " 1a2b3c4d-7 "])
def test_a_decision_whose_look_was_not_recorded_says_so(
    made: tuple[Box, Told], tmp_path: Path, at: str
) -> None:
    _, told = made
    words = f"the look by which {DECISION} was taken was not recorded"
    for is_lost in (False, True):
        own = next(t.number for t in told.ticks if t.unix_seconds > told.plot.short_at + 5)
        kept = [f for f in told.frames if not is_lost or (f.kind, f.tick) != ("tick", own)]
        path = tmp_path / f"box-{is_lost}"
        write(replace(told, frames=kept), path, 4 * MIB)
        notes = " ".join(box_source(str(path), at).notes)
        assert (words in notes) is is_lost
        assert f"Ends {HOG}" in notes


def test_a_tick_of_another_boot_is_not_asked(made: tuple[Box, Told]) -> None:
    box, _ = made
    last: Pass = passes_until(box, END)[-1]
    other = last._replace(boot_id="ffffffff-0000-4000-8000-000000000000")
    assert with_claims(box, [other]) == [other]


def test_each_pass_of_a_row_has_its_own(made: tuple[Box, Told]) -> None:
    box, _ = made
    rows = with_claims(box, passes_until(box, END))
    sizes = [
        parse(data).claims[0].bytes
        for one in rows if isinstance(data := one.round.files.get(PATH), bytes)
    ]  # fmt: skip
    assert len(sizes) > 3
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_nothing_is_claimed_of_a_node_whose_residual_is_not_known(made: tuple[Box, Told]) -> None:
    box, told = made
    last, tick = passes_until(box, END)[-1], told.ticks[-1]
    node = tick.node._replace(residual_bytes=None)
    assert _told(last, tick) != last
    assert _told(last, tick._replace(node=node)) == last
