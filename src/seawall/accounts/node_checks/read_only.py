# SPDX-License-Identifier: Apache-2.0
"""File systems that fell to read-only: mounted to be written to, and the file system refuses.

After an error a file system sets its own flag (the words after the dash in mountinfo) and leaves
the mount's, so ``rw ... - xfs /dev/sda2 ro`` is nobody's wish; ext4 says ``emergency_ro`` since
6.15.  Images on loop devices are a job's own affair.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.readings import mountinfo

_FALLEN: Final = frozenset({"ro", "emergency_ro", "shutdown"})
_LOOP: Final = "/dev/loop"
_NEVER_WRITTEN: Final = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "romfs", "udf"})


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Each such file system once, by its first mount."""
    found = mountinfo.read(host)
    if isinstance(found, Unread):
        yield unseen(found)
        return
    told = set()
    for mount in found.mounts:
        has_fallen = "rw" in mount.options and not _FALLEN.isdisjoint(mount.super_options)
        is_image = mount.source.startswith(_LOOP)
        is_asked = mount.mount_point in wanted.writable
        is_read_only = has_fallen or "ro" in mount.options
        is_fault = (has_fallen and not is_image and mount.fs_type not in _NEVER_WRITTEN) or (
            is_asked and is_read_only
        )
        if is_fault and mount.device not in told:
            told.add(mount.device)
            yield NodeFault(f"{mount.mount_point} ({mount.fs_type}) is read-only")
    there = {mount.mount_point for mount in found.mounts}
    for path in wanted.writable:
        if path not in there:
            yield NodeFault(f"{path} is not mounted")
