# SPDX-License-Identifier: Apache-2.0
"""A text of ours, colours and all, as lines of a screen that it may be too wide for."""

import re
from collections.abc import Iterator
from typing import Final

from seawall.views.screen_cells import Segment, ascii_only
from seawall.views.terminal import COLOURS, plain

_PAINT: Final = re.compile(r"\x1b\[([0-9;]{1,8})m")
_BY_CODE: Final = {code: style for style, code in COLOURS.items()}


def pager_lines(text: str, width: int) -> Iterator[list[Segment]]:
    """What ``Console.paint`` painted keeps its style; any other sequence is written out."""
    for line in text.split("\n"):
        segments: list[Segment] = []
        style, used = "", 0
        parts = _PAINT.split(line)
        for number, part in enumerate(parts):
            if number % 2:
                style = _BY_CODE.get(part, "")
                continue
            rest = ascii_only(plain(part))
            while rest:
                if used == width:
                    yield segments
                    segments, used = [], 0
                segments.append((rest[: width - used], style))
                rest = rest[width - used :]
                used += len(segments[-1][0])
        yield segments
