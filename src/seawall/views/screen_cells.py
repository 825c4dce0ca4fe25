# SPDX-License-Identifier: Apache-2.0
"""A terminal's screen as cells, and the bytes that turn one screen into the next.

Only what has changed is sent: a node that is ill is often watched over a slow line.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

Segment: TypeAlias = "tuple[str, str]"
"""Text and its style: a key of STYLES."""

STYLES: Final = {
    "": "0", "bold": "0;1", "dim": "0;2", "critical": "0;1;31", "warning": "0;33", "good": "0;32",
    "info": "0;36", "chosen": "0;7", "head": "0;1;7",
}  # fmt: skip
_CODES: Final = {style: chr(ord("a") + number) for number, style in enumerate(STYLES)}
_BY_CODE: Final = {code: f"\x1b[{STYLES[style]}m" for style, code in _CODES.items()}
_PLAIN: Final = _CODES[""]
_GAP: Final = 5
"""Cells that are the same between two that are not: to send them is shorter than to move."""
CLEAR: Final = "\x1b[0m\x1b[2J"


class ScreenLine(NamedTuple):
    """One line: as many characters as the screen is wide, and a letter of style for each."""

    text: str
    styles: str


def line_of(segments: Iterable[Segment], width: int, *, is_painted: bool) -> ScreenLine:
    """Cut or filled up to ``width``.  Every character must take one cell: see ``ascii_only``."""
    text, styles = "", ""
    for part, style in segments:
        text += part
        styles += (_CODES[style] if is_painted else _PLAIN) * len(part)
    fill = styles[-1:] if styles and styles[-1] in (_CODES["chosen"], _CODES["head"]) else _PLAIN
    return ScreenLine(text[:width].ljust(width), (styles + fill * width)[:width])


def ascii_only(text: str) -> str:
    """``text`` with everything else written out: a wide or a combining character would shift the
    rest of its line.
    """
    return text if text.isascii() else text.encode("ascii", "backslashreplace").decode("ascii")


def changes(before: Sequence[ScreenLine], after: Sequence[ScreenLine]) -> str:
    """What to send; ``before`` empty: nothing is known of the screen, and it is cleared."""
    out: list[str] = []
    blank: ScreenLine | None = None
    if len(before) != len(after) or (after and len(before[0].text) != len(after[0].text)):
        out.append(CLEAR)
        blank = ScreenLine(" " * len(after[0].text), _PLAIN * len(after[0].text)) if after else None
    style = _PLAIN
    for row, line in enumerate(after):
        was = blank if blank is not None else before[row]
        if was == line:
            continue
        for start, end in _runs(was, line):
            out.append(f"\x1b[{row + 1};{start + 1}H")
            style = _write(out, line, start, end, style)
    if style != _PLAIN:
        out.append(_BY_CODE[_PLAIN])
    return "".join(out)


def _write(out: list[str], line: ScreenLine, start: int, end: int, style: str) -> str:
    """The cells from ``start`` to ``end``; the style that the terminal has then."""
    if end == len(line.text):
        rest = len(line.text.rstrip(" "))
        is_plain = not line.styles[max(rest, start) :].strip(_PLAIN)
        if is_plain and end - max(rest, start) > 3:
            end, tail = max(rest, start), "\x1b[K"
        else:
            tail = ""
    else:
        tail = ""
    at = start
    while at < end:
        code = line.styles[at]
        to = at + 1
        while to < end and line.styles[to] == code:
            to += 1
        if code != style:
            out.append(_BY_CODE[code])
            style = code
        out.append(line.text[at:to])
        at = to
    if tail:
        if style != _PLAIN:
            out.append(_BY_CODE[_PLAIN])
            style = _PLAIN
        out.append(tail)
    return style


def _runs(was: ScreenLine, line: ScreenLine) -> list[tuple[int, int]]:
    """Where they differ, runs near each other as one."""
    runs: list[tuple[int, int]] = []
    pairs = zip(was.text, line.text, was.styles, line.styles, strict=True)
    for at, (old, new, old_style, new_style) in enumerate(pairs):
        if old == new and old_style == new_style:
            continue
        if runs and at - runs[-1][1] <= _GAP:
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
    return runs
