# SPDX-License-Identifier: Apache-2.0
"""Which cgroup a traced row is about: its folder's inode, asked each time, for a unit that is
restarted has the same path and another one.
"""

from dataclasses import replace

from seawall.accounts.traced import TracedRow
from seawall.accounts.watch.claims import Place
from seawall.host.host import Host, Unread
from seawall.readings.kept_claims import inode_of


class Inodes:
    """Of the folders of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def with_inode(self, row: TracedRow, place: Place) -> TracedRow:
        """Where only tasks in cgroups below the workload's own were traced."""
        folder = place.folder_of(row.cgroup)
        if row.cgroup_inode is not None or folder is None:
            return row
        inode = inode_of(self._host, folder)
        if isinstance(inode, Unread):
            return row
        return replace(row, cgroup_inode=inode)
