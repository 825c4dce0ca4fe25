# SPDX-License-Identifier: Apache-2.0
"""Words that may come from a container, made harmless; and numbers that JSON can hold.

A name may hold escape sequences, newlines, bytes that are no UTF-8, or ten thousand letters.
"""

import json
import math
import time
from typing import Any, Final

ELLIPSIS: Final = "..."


def plain(text: str, most: int) -> str:
    """``text`` in printable ASCII, at most ``most`` characters: ``\\x1b`` for what is not."""
    if len(text) > most:
        # Looked at no further: what is ten times too long is cut before it is escaped.
        text = text[: most - len(ELLIPSIS)] + ELLIPSIS
    if text.isascii() and text.isprintable():
        return text
    text = "".join(map(_escaped, text))
    return text if len(text) <= most else text[: most - len(ELLIPSIS)] + ELLIPSIS


def line_of(document: dict[str, Any]) -> bytes:
    """One line of JSON in ASCII with its newline; every number in it must be finite."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def finite(number: float | None, digits: int = 3) -> float | None:
    """Rounded; None for what JSON cannot hold."""
    if number is None or not math.isfinite(number):
        return None
    return round(number, digits)


def moment(unix_seconds: float) -> str:
    """RFC 3339 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_seconds))


def _escaped(letter: str) -> str:
    code = ord(letter)
    if 0x20 <= code < 0x7F:
        return letter
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
