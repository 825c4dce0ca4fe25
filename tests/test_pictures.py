"""The pictures that documents show: there, small, and nothing in them that loads or runs."""

import re
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs/pictures"
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
SVG_MOST_BYTES = 60_000
PNG_MOST_BYTES = 150_000
LOADS = ("script", "image", "use", "style", "foreignObject", "a", "animate", "set")


def shown() -> list[tuple[Path, str, str]]:
    """Document, words for whoever does not see it, place."""
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    return [(page, *found) for page in pages for found in SHOWN.findall(page.read_text())]


def test_each_picture_of_a_page_is_there_and_has_words() -> None:
    assert shown()
    for page, words, place in shown():
        assert (page.parent / place).is_file(), f"{page}: {place}"
        assert len(words.split()) >= 4, f"{page}: {place} says nothing to whoever cannot see it"


def test_each_picture_is_shown_somewhere() -> None:
    used = {(page.parent / place).resolve() for page, _, place in shown()}
    assert {path.resolve() for path in PICTURES.iterdir()} <= used


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.name)
def test_a_screen_is_small_and_loads_nothing(path: Path) -> None:
    data = path.read_bytes()
    assert len(data) < SVG_MOST_BYTES
    tree = fromstring(data)
    for piece in tree.iter():
        assert piece.tag.rpartition("}")[2] not in LOADS
        for name, value in piece.attrib.items():
            assert not name.lower().startswith("on")
            assert "href" not in name
            assert "url(" not in value
    (ground,) = (one for one in tree.iter() if one.get("width") == "100%")
    assert ground.get("fill"), "it has a ground of its own, light page or dark"


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.png")), ids=lambda path: path.name)
def test_a_photograph_is_small(path: Path) -> None:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < PNG_MOST_BYTES
