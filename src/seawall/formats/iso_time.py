# SPDX-License-Identifier: Apache-2.0
"""ISO 8601 into a moment, alike on every Python that Seawall supports.

``datetime.fromisoformat`` reads ``Z``, fractions of any length, a comma before them and
``+0100`` since Python 3.11; 3.10 reads only what ``isoformat`` writes.
"""

import re
from datetime import datetime
from typing import Final

_FORM: Final = re.compile(
    r"(\d{4})(-?)(\d\d)\2(\d\d)"
    r"(?:[T ](\d\d)(?:(:?)(\d\d)(?:\6(\d\d)(?:[.,](\d{1,9}))?)?)?"
    r"(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def iso_datetime(words: str) -> datetime:
    """A date, or a date and a time; without a zone where ``words`` name none.

    Digits after the sixth of a fraction are dropped.  ValueError: none of the forms, or no such
    day, time or zone.
    """
    match = _FORM.fullmatch(words)
    if match is None:
        raise ValueError(f"not a time of ISO 8601: {words!r}")
    year, _, month, day, hour, _, minute, second, fraction, zone = match.groups()
    plain = f"{year}-{month}-{day}T{hour or '00'}:{minute or '00'}:{second or '00'}"
    if fraction:
        plain += f".{fraction[:6]:0<6}"
    if zone == "Z":
        plain += "+00:00"
    elif zone:
        plain += f"{zone[:3]}:{zone[3:].lstrip(':') or '00'}"
    return datetime.fromisoformat(plain)
