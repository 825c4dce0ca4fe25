# SPDX-License-Identifier: Apache-2.0
"""Characters for a terminal of 80 columns, with or without colour, or for a log.

Names that come from the machine are hostile: no escape sequence, newline or direction mark
of theirs may reach a terminal.  Our own text is plain ASCII, for serial consoles.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 80
COLOURS: Final = {
    "critical": "1;31", "warning": "33", "info": "36", "good": "32", "dim": "2", "bold": "1",
}  # fmt: skip


def plain(text: str) -> str:
    """``text`` with everything that could steer a terminal written out (``\\x1b``)."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _written_out(char) for char in text)


def _written_out(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that was not UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@dataclass(frozen=True, slots=True)
class Console:
    """Where a view is written to: how wide, and whether colours are understood."""

    width: int = WIDTH
    colour: bool = False

    def paint(self, text: str, style: str) -> str:
        """``text`` in the style's colour, or as it is."""
        return f"\x1b[{COLOURS[style]}m{text}\x1b[0m" if self.colour else text

    def wrap(self, text: str, indent: str = "", first: str | None = None) -> Iterator[str]:
        """Lines no wider than the paper; only a single long word may stick out."""
        line = indent if first is None else first
        empty = True
        for word in plain(text).split():
            if not empty and len(line) + 1 + len(word) > self.width:
                yield line
                line, empty = indent, True
            line += word if empty else " " + word
            empty = False
        yield line

    def bar(self, fraction: float, width: int) -> str:
        """A bar of ``#`` and ``.``; any share above zero shows at least one mark."""
        full = max(0, min(width, round(fraction * width)))
        if fraction > 0 and not full:
            full = 1
        return "#" * full + "." * (width - full)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
        """Columns: the first ``left`` ones to the left, the others to the right.

        The first column is cut in its middle where the whole would be wider than the paper.
        """
        cells = [[plain(cell) for cell in row] for row in (head, *rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
        room = self.width - sum(widths[1:]) - 2 * (len(widths) - 1)
        widths[0] = max(min(widths[0], room), 8)
        lines = []
        for row in cells:
            shown = [shorten(row[0], widths[0]), *row[1:]]
            parts = [
                cell.ljust(width) if i < left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(shown, widths, strict=True))
            ]
            lines.append("  ".join(parts).rstrip())
        return lines


def shorten_path(path: str, width: int) -> str:
    """``path`` in ``width`` characters, with its file's name whole where that leaves a start."""
    name = path.rpartition("/")[2]
    start = width - len(name) - 3
    if len(path) <= width or start < 6:
        return shorten(path, width)
    return f"{path[:start]}../{name}"


def shorten(text: str, width: int) -> str:
    """``text`` in ``width`` characters, cut in the middle, where addresses differ least."""
    if len(text) <= width:
        return text
    tail = (width - 2) * 2 // 3
    return text[: width - 2 - tail] + ".." + text[len(text) - tail :]
