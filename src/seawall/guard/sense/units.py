# SPDX-License-Identifier: Apache-2.0
"""A unit is no group as long as others' are below it, and is told about all the same.

The watcher tells once who somebody is: a unit that was forgotten meanwhile would come back
without its role, and nobody would protect it.
"""

from seawall.guard.sense.member import GroupMember
from seawall.guard.sense.tree import GroupTree
from seawall.guard.tick_facts import Group


def show_or_hide(
    tree: GroupTree, members: dict[str, GroupMember], by_path: dict[str, Group]
) -> None:
    """Of the units that turned since the last tick: what the judge sees."""
    for unit in tree.turned:
        member = members.get(unit.path)
        if member is None or member.folder is not unit:
            continue
        if unit.inner:
            by_path.pop(unit.path, None)
            member.at_limit_since = member.group.at_limit_seconds = 0.0
        else:
            by_path[unit.path] = member.group
            member.is_new = True
    tree.turned.clear()
