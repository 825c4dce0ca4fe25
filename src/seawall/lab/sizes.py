# SPDX-License-Identifier: Apache-2.0
"""Sizes from a command line: ``64MiB``, ``1GiB``, ``8M``, ``65536``."""

import re
from typing import Final

_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,3}))? ?([KMGT]?)(?:iB|I|B)?", re.IGNORECASE)
_DECIMAL: Final = re.compile(r"[0-9.]+ ?[KMGT]B", re.IGNORECASE)


def bytes_of(text: str) -> int:
    """Bytes; letters are binary units (``8M`` is ``8MiB``).  ValueError for anything else.

    ``MB`` is refused: half of its readers mean 1,000,000 by it.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or _DECIMAL.fullmatch(text.strip()):
        raise ValueError(f"expected a size such as 64MiB or 1GiB, not {text!r}")
    whole, part, unit = match[1], match[2] or "", match[3].upper()
    scale = 1 << _UNITS[unit]
    if part and not unit:
        raise ValueError(f"expected whole bytes or a unit, not {text!r}")
    return int(whole) * scale + (int(part) * scale // 10 ** len(part) if part else 0)
