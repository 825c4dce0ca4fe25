# SPDX-License-Identifier: Apache-2.0
"""File systems that fell to read-only: mounted to be written to, and the file system refuses.

After an error ext4 and others set the file system's own flag (the words after the dash in
mountinfo) and leave the mount's, so ``rw ... - ext4 /dev/sda2 ro`` is nobody's wish.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.readings import mountinfo

_NEVER_WRITTEN: Final = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "romfs", "udf"})


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Each such file system once, by its first mount."""
    found = mountinfo.read(host)
    if isinstance(found, Unread):
        yield unseen(found)
        return
    told = set()
    for mount in found.mounts:
        has_fallen = "rw" in mount.options and "ro" in mount.super_options
        is_asked = mount.mount_point in wanted.writable
        is_read_only = "ro" in (*mount.options, *mount.super_options)
        is_fault = (has_fallen and mount.fs_type not in _NEVER_WRITTEN) or (
            is_asked and is_read_only
        )
        if is_fault and mount.device not in told:
            told.add(mount.device)
            yield NodeFault(f"{mount.mount_point} ({mount.fs_type}) is read-only")
    there = {mount.mount_point for mount in found.mounts}
    for path in wanted.writable:
        if path not in there:
            yield NodeFault(f"{path} is not mounted")
