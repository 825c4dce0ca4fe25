# SPDX-License-Identifier: Apache-2.0
"""/proc/devices: which driver has which major number now.

Kernel: fs/char_dev.c chrdev_show, block/genhd.c.  A dynamic major (nvidia-uvm, nvidia-caps) is
another one after each load of the module, so no number is ever taken for granted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, read_as

PATH: Final = "/proc/devices"
_CHAR: Final = b"Character devices:"
_BLOCK: Final = b"Block devices:"
# Drivers name themselves with at most 64 bytes, spaces included; majors have 12 bits.
_LINE: Final = re.compile(rb" *([0-9]{1,4}) ([^\n]{1,64})\Z")


@dataclass(frozen=True, slots=True)
class CharDevices:
    """The topic.  A driver may have several majors, a major several names."""

    char: Mapping[int, str]
    """Major -> the first name of it."""
    block: Mapping[int, str]
    more: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Further names of a character major: 195 is nvidia, nvidia-modeset and nvidiactl."""

    def majors_of(self, name: str) -> tuple[int, ...]:
        """Of a character driver, lowest first; empty: it is not loaded."""
        return tuple(
            sorted(
                major
                for major, driver in self.char.items()
                if driver == name or name in self.more.get(major, ())
            )
        )


def parse(data: bytes) -> CharDevices:
    """Both sections; ParseProblem when it has none of them."""
    char: dict[int, list[str]] = {}
    block: dict[int, list[str]] = {}
    section: dict[int, list[str]] | None = None
    found = 0
    for line in data.split(b"\n"):
        if line in (_CHAR, _BLOCK):
            section = char if line == _CHAR else block
            found += 1
        elif section is not None and (match := _LINE.match(line)):
            section.setdefault(int(match[1]), []).append(decode_name(match[2]))
    if not found:
        raise ParseProblem(0, "'Character devices:' or 'Block devices:'", data)
    return CharDevices(
        char={major: names[0] for major, names in char.items()},
        block={major: names[0] for major, names in block.items()},
        more={major: tuple(names[1:]) for major, names in char.items() if names[1:]},
    )


def read(host: Host) -> CharDevices | Unread:
    """One small file, not namespaced: a container reads the host's."""
    return read_as(host, PATH, parse)
