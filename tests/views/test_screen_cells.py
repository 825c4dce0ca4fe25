# SPDX-License-Identifier: Apache-2.0
"""What is sent turns one screen into the next, whatever the two are, and says little."""

from hypothesis import given
from hypothesis import strategies as st
from tests.end_to_end.top_pty import DrawnScreen

from seawall.views.pager_lines import pager_lines
from seawall.views.screen_cells import STYLES, ScreenLine, ascii_only, changes, line_of
from seawall.views.top_state import keys_of

WIDTH = 12
SEGMENTS = st.lists(st.tuples(st.text("ab #", max_size=6), st.sampled_from(sorted(STYLES))))
SCREENS = st.lists(SEGMENTS, min_size=3, max_size=3)


def lines_of(screen: list[list[tuple[str, str]]]) -> list[ScreenLine]:
    return [line_of(line, WIDTH, is_painted=True) for line in screen]


@given(st.lists(SCREENS, min_size=1, max_size=5))
def test_changes_lead_from_screen_to_screen(screens: list[list[list[tuple[str, str]]]]) -> None:
    drawn = DrawnScreen(WIDTH, 3)
    drawn.modes.add("1049")
    before: list[ScreenLine] = []
    for screen in screens:
        after = lines_of(screen)
        drawn.feed(changes(before, after))
        assert ["".join(line) for line in drawn.cells] == [line.text for line in after]
        assert not changes(after, after)
        before = after


def test_one_digit_costs_a_few_bytes() -> None:
    before = [line_of([("charge 1,234 MiB of 2,000 MiB", "")], 80, is_painted=True)]
    after = [line_of([("charge 1,235 MiB of 2,000 MiB", "")], 80, is_painted=True)]
    assert len(changes(before, after)) <= 10


def test_wide_and_steering_characters_take_one_cell_each() -> None:
    assert ascii_only("ab") == "ab"
    assert ascii_only("\u4e2d\u0301").isascii()


def test_pager_keeps_our_colours_and_writes_out_all_else() -> None:
    text = "\x1b[1;31mbad\x1b[0m then \x1b[2Jgone\x07"
    [line] = pager_lines(text, 80)
    assert line[0] == ("bad", "critical")
    rest = "".join(part for part, _ in line[1:])
    assert rest == r" then \x1b[2Jgone\x07"
    assert [sum(len(part) for part, _ in one) for one in pager_lines("x" * 25, 10)] == [10, 10, 5]


@given(st.binary(max_size=40))
def test_keys_of_any_bytes(data: bytes) -> None:
    for key in keys_of(data):
        assert key
        assert key.isprintable()


def test_keys_are_known_by_name() -> None:
    data = b"c\x1b[A\x1bOB\x1b[5~\r\x1b[99z\x1b"
    assert list(keys_of(data)) == ["c", "up", "down", "pgup", "enter", "escape"]
