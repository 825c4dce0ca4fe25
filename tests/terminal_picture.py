"""A screen with its colours as an SVG, for the documents: what ``tmux capture-pane -e`` printed.

::

    tmux new-session -d -x 80 -y 24 'seawall top'; sleep 40
    tmux capture-pane -e -p | python -m tests.terminal_picture 'seawall top' > docs/top.svg

Text stays text: it can be selected, searched and read aloud, and no font comes along.
"""

import re
import sys
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, tostring

CELL_WIDTH = 8.4
LINE_HEIGHT = 18
MARGIN = 14
TOP = 34
SEQUENCE = re.compile(r"\x1b\[([\d;]*)m")
OTHER = re.compile(r"\x1b(?:\[[\d;?]*[A-Za-z]|[()][0-9A-B]|[=>])|[\x00-\x08\x0b-\x1f\x7f]")
COLOURS = {30: "#6b7280", 31: "#ff7b8a", 32: "#7ddc94", 33: "#f2c261", 34: "#7fb8f5",
           35: "#d7a3f0", 36: "#73d4e0", 37: "#e6e9ee", 90: "#97a1ae"}  # fmt: skip
PLAIN = "#d5dae1"
GROUND = "#14171b"
DIM = "#8a94a1"


class Looks:
    """Of what is printed next."""

    def __init__(self) -> None:
        self.colour = PLAIN
        self.codes: set[int] = set()
        """1: bold, 2: dim, 7: colours turned round."""

    def take(self, code: int) -> None:
        if code == 0:
            self.colour, self.codes = PLAIN, set()
        elif code in (1, 2, 7):
            self.codes.add(code)
        elif code == 22:
            self.codes -= {1, 2}
        elif code == 27:
            self.codes.discard(7)
        else:
            self.colour = COLOURS.get(code, PLAIN)

    def style(self) -> dict[str, str]:
        """Attributes of the text; ``ground`` where it has one of its own."""
        style = {"fill": DIM if 2 in self.codes else self.colour}
        if 7 in self.codes:
            style = {"fill": GROUND, "ground": self.colour}
        return style | ({"font-weight": "bold"} if 1 in self.codes else {})


def runs(line: str, looks: Looks) -> Iterator[tuple[str, dict[str, str]]]:
    """Pieces of equal looks; ``looks`` go on where the line before has ended, as tmux writes it."""
    for place, part in enumerate(SEQUENCE.split(line)):
        if place % 2:
            for code in (part or "0").split(";"):
                looks.take(int(code or "0"))
        elif part:
            yield part, looks.style()


def _kept(match: re.Match[str]) -> str:
    """Of all that steers a terminal the colours alone."""
    return match[0] if SEQUENCE.fullmatch(match[0]) else ""


def picture(text: str, title: str) -> bytes:
    """The whole SVG."""
    lines = [OTHER.sub(_kept, line) for line in text.splitlines()]
    columns = max((len(SEQUENCE.sub("", line)) for line in lines), default=1)
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * LINE_HEIGHT + TOP + MARGIN
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": title,
                          "viewBox": f"0 0 {width:.0f} {height}"})  # fmt: skip
    SubElement(svg, "title").text = title
    box = {"width": "100%", "height": "100%", "rx": "8", "fill": GROUND}
    SubElement(svg, "rect", box)
    for place, ink in enumerate(("#ff7b8a", "#f2c261", "#7ddc94")):
        SubElement(svg, "circle", {"cx": str(20 + 18 * place), "cy": "17", "r": "5", "fill": ink})
    words = SubElement(svg, "text", {"x": f"{width / 2:.0f}", "y": "22", "fill": "#97a1ae",
                                     "text-anchor": "middle", "font-family": "monospace",
                                     "font-size": "13"})  # fmt: skip
    words.text = title
    group = SubElement(svg, "g", {"font-family": "ui-monospace, 'DejaVu Sans Mono', monospace",
                                  "font-size": "14"})  # fmt: skip
    looks = Looks()
    for number, line in enumerate(lines):
        column = 0
        y = TOP + (number + 1) * LINE_HEIGHT - 4
        for part, style in runs(line, looks):
            x = f"{MARGIN + column * CELL_WIDTH:.1f}"
            length = f"{len(part) * CELL_WIDTH:.1f}"
            if ground := style.pop("ground", ""):
                SubElement(group, "rect", {"x": x, "y": str(y - 14), "width": length,
                                           "height": str(LINE_HEIGHT), "fill": ground})  # fmt: skip
            if part.strip():
                piece = SubElement(group, "text", {
                    "x": x, "y": str(y), "textLength": length, "xml:space": "preserve", **style,
                })  # fmt: skip
                piece.text = part
            column += len(part)
    return tostring(svg, encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.buffer.write(picture(sys.stdin.read().rstrip("\n"), sys.argv[1]) + b"\n")
