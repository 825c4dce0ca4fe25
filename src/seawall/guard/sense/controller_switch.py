# SPDX-License-Identifier: Apache-2.0
"""The memory controller is switched off below a cgroup, or off and on again.

``-memory`` in cgroup.subtree_control (admin-guide/cgroup-v2.rst) takes the files of the cgroups
below away and leaves their folders; ``+memory`` makes new files in the same folders, with limits
and promises as of a new cgroup.  A file that was opened before answers ENODEV from then on, as one
of a folder that is gone does.  As long as nobody counts, nothing is known: what was counted last
would look like a workload that stands still, and its limit like one that still holds.
"""

from seawall.guard.sense.member import GroupMember, Names, read_limit
from seawall.guard.sense.tree import GroupTree


def let_go(lost: list[GroupMember], tree: GroupTree, names: Names) -> None:
    """Of those whose charge answers ENODEV: the tree forgets who is gone, and the others' files
    are opened again later.
    """
    for member in lost:
        folder = member.folder
        tree.check(folder.path)
        if tree.folders.get(folder.path) is folder:
            member.forget_counts()
            read_limit(folder, names)
            member.settle_limit()
