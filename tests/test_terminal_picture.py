"""Screens as pictures: colours, places, nothing that is markup."""

from xml.etree.ElementTree import fromstring

from tests.terminal_picture import CELL_WIDTH, DIM, GROUND, MARGIN, PLAIN, picture

SVG = "{http://www.w3.org/2000/svg}"


def pieces(text: str) -> list[tuple[str, float, str]]:
    """Text, column, colour."""
    group = fromstring(picture(text, "t")).find(f"{SVG}g")
    assert group is not None
    return [
        (one.text or "", (float(one.attrib["x"]) - MARGIN) / CELL_WIDTH, one.attrib["fill"])
        for one in group.iter(f"{SVG}text")
    ]


def test_colours_end_where_they_end() -> None:
    found = pieces("a\x1b[1;31mred\x1b[0m b\x1b[2mdim\x1b[0m")
    assert [(text, round(column), fill) for text, column, fill in found] == [
        ("a", 0, PLAIN), ("red", 1, "#ff7b8a"), (" b", 4, PLAIN), ("dim", 6, DIM),
    ]  # fmt: skip


def test_what_is_turned_round_has_a_ground() -> None:
    data = picture("\x1b[7mbar\x1b[27m", "t")
    assert pieces("\x1b[7mbar\x1b[27m") == [("bar", 0.0, GROUND)]
    assert f'fill="{PLAIN}"'.encode() in data


def test_markup_and_other_sequences_are_none() -> None:
    data = picture("<b>&\x1b[2J\x1b(B\x07x", "<i>")
    assert b"&lt;b&gt;&amp;x" in data
    assert b"<i>" not in data
    assert b"\x1b" not in data
