# SPDX-License-Identifier: Apache-2.0
"""Users as workloads (``user_slices``): each is the sum of the sessions and units below its slice.

What the kernel charges to ``user-UID.slice`` has containers and jobs below it in it; they are
workloads of their own, and what is theirs is taken off.  Uncounted memory is told of the parts.
"""

from collections.abc import Iterable

from seawall.guard.sense.member import GroupMember
from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group, Outside, UserSlice

_SOURCES_MOST = 8
_PARTS_MOST = 4
"""Of a user, that are read in a tick; of others a careful guess decides."""


def gather_users(members: dict[str, GroupMember]) -> None:
    """Who belongs to whom, after folders came or went; users stand last in ``members``, so that
    what is apart from one is read before its own charge.
    """
    users = [member for member in members.values() if member.folder.is_user_slice]
    for member in users:
        del members[member.folder.path]
        members[member.folder.path] = member
        member.apart = []
        if isinstance(member.group, UserSlice):
            member.group.parts = []
    for member in members.values():
        folder = member.folder
        user = members.get(folder.user) if folder.user and not folder.is_user_slice else None
        if user is None or folder.inner or not isinstance(user.group, UserSlice):
            continue
        (user.group.parts if folder.is_part else user.apart).append(member.group)


def sum_users(members: dict[str, GroupMember]) -> None:
    """Uncounted memory of each user, of those parts that are there in this tick."""
    for member in members.values():
        group = member.group
        if isinstance(group, UserSlice):
            group.outside, group.outside_slope = outside_of(group.parts)


def outside_of(parts: Iterable[Group]) -> tuple[Outside, float]:
    """The sum, and how fast it grows."""
    certain = likely = most = 0
    slope = 0.0
    sources: dict[str, None] = {}
    for part in parts:
        outside = part.outside
        if outside.most_bytes:
            certain += outside.certain_bytes
            likely += outside.likely_bytes
            most += outside.most_bytes
            slope += part.outside_slope
            sources.update(dict.fromkeys(outside.sources.split(", ")))
    if not most:
        return NOTHING_OUTSIDE, 0.0
    return Outside(certain, likely, most, ", ".join(list(sources)[:_SOURCES_MOST])), slope


def swapped_of(groups: Iterable[Group]) -> int:
    """What of them is in swap."""
    return sum(group.swapped_bytes or 0 for group in groups)


def largest_parts(user: UserSlice) -> list[Group]:
    """Those that may be the one that goes."""
    return sorted(
        user.parts, key=lambda part: -part.taken_bytes - part.outside.certain_bytes
    )[:_PARTS_MOST]  # fmt: skip
