# SPDX-License-Identifier: Apache-2.0
"""One rule of a device cgroup, as cgroup v1 lists it and as the OCI runtime spec writes it.

Kernel document: admin-guide/cgroup-v1/devices.rst.  OCI runtime-spec config-linux.md, "Allowed
Device list".
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["c", "b"]

KINDS: Final[dict[str, Kind | None]] = {"c": "c", "b": "b", "u": "c", "a": None}
"""As rules and specs write them; ``u`` is an unbuffered character device of mknod(1)."""
NUMBER_MOST: Final = (1 << 32) - 1
_RULE: Final = re.compile(r"([abc]) (\*|[0-9]{1,10}):(\*|[0-9]{1,10}) ([rwm]{1,3})\Z")
_ORDER: Final = "rwm"


class DeviceRule(NamedTuple):
    """``c 195:255 rw``.  None: any."""

    kind: Kind | None
    major: int | None
    minor: int | None
    access: str
    """Letters out of ``rwm``, in this order."""
    is_allow: bool = True


def access_of(letters: object) -> str | None:
    """``wr`` as ``rw``; None for anything but some of ``rwm``."""
    if not isinstance(letters, str) or not 0 < len(letters) <= len(_ORDER):
        return None
    known = "".join(letter for letter in _ORDER if letter in letters)
    return known if set(letters) <= set(_ORDER) else None


def rule_of(line: str) -> DeviceRule | None:
    """A line of devices.list, which is what devices.allow and ``docker --device-cgroup-rule``
    take too; None for anything else.
    """
    match = _RULE.match(line)
    access = access_of(match[4]) if match else None
    if match is None or access is None:
        return None
    numbers = [None if word == "*" else int(word) for word in (match[2], match[3])]
    if any(number is not None and number > NUMBER_MOST for number in numbers):
        return None
    return DeviceRule(KINDS[match[1]], numbers[0], numbers[1], access)
