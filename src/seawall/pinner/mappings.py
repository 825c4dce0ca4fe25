# SPDX-License-Identifier: Apache-2.0
"""Program text among a process's mappings: /proc/PID/maps (proc_pid_maps(5)).

Of each file that is mapped executable: those mappings, and its read-only data.  ``device`` and
``inode`` are as the kernel prints them there: on overlayfs the layer's up to about 6.6, the
overlay's own later; only the same file of the kernel says the same of two mappings.  Pure.
"""

from typing import Final, NamedTuple

MAPPINGS_MOST: Final = 65_530
"""vm.max_map_count as it comes."""
_NO_FILES: Final = (b"/memfd:", b"/dev/", b"/SYSV", b"/anon_hugepage", b"/[")


class Segment(NamedTuple):
    """One mapping of a file."""

    span: str
    """As its link in /proc/PID/map_files is called."""
    device: str
    inode: int
    name: str
    start: int
    """In the file, bytes."""
    end: int
    is_code: bool

    @property
    def key(self) -> tuple[str, int]:
        """Which file it is to the kernel: (device, inode)."""
        return self.device, self.inode


def parse(maps: bytes) -> list[Segment]:
    """The text of a process, in the order of its addresses; a line that is none is skipped."""
    # A name may hold a \r, at which splitlines() cuts too.
    found = [seg for line in maps.split(b"\n")[:MAPPINGS_MOST] if (seg := _segment(line))]
    with_code = {segment.key for segment in found if segment.is_code}
    return [segment for segment in found if segment.key in with_code]


def _segment(line: bytes) -> Segment | None:
    words = line.split(None, 5)
    if len(words) < 6 or not words[5].startswith(b"/") or words[5].startswith(_NO_FILES):
        return None
    perms = words[1]
    if perms[:2] != b"r-" or len(perms) != 4:
        return None
    low, _, high = words[0].partition(b"-")
    try:
        first, last, offset = int(low, 16), int(high, 16), int(words[2], 16)
        inode = int(words[4])
    except ValueError:
        return None
    name = words[5].decode("utf-8", "surrogateescape")
    span, device = f"{first:x}-{last:x}", words[3].decode("ascii", "replace")
    end = offset + last - first
    return Segment(span, device, inode, name, offset, end, perms[2:3] == b"x")


def own_identity(maps: bytes, address: int) -> tuple[str, int] | None:
    """Device and inode of the mapping at ``address``; None where there is none."""
    wanted = b"%x-" % address
    for line in maps.split(b"\n"):
        if line.lstrip(b"0").startswith(wanted):
            words = line.split(None, 5)
            return words[3].decode("ascii", "replace"), int(words[4])
    return None
