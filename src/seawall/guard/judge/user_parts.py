# SPDX-License-Identifier: Apache-2.0
"""Of a user who is to go (``user_slices``), which session or unit: docs/decisions/0048.

The one that carries what the user is blamed for goes, and no other one of the same user instead:
where that may not be acted on, or was before, the user stays.
"""

from collections.abc import Iterable, Mapping, Sequence

from seawall.guard.judge.look import Look
from seawall.guard.judge.policy_state import PolicyState
from seawall.guard.judge.proof import LEAST_GROWTH
from seawall.guard.judge.row import OVER_LIMIT, Row
from seawall.guard.judge.sentences import plain
from seawall.guard.tick_facts import Group, Node, UserSlice


def why_no_part(
    state: PolicyState, group: Group, *, uncounted: bool, at: Node | None = None
) -> str:
    """Why nothing of this user may be ended, in words; empty: it may, or it is no user.

    ``uncounted``: for what it holds uncounted; else for what it took since the look back ``at``
    that moment.
    """
    if not isinstance(group, UserSlice):
        return ""
    look = state.window.best(at) if at is not None else state.window.looks[1]
    part = carrier_of(group, look, uncounted=uncounted)
    if part is None:
        return "what it took is in none of its sessions and units"
    against = state.protection.reason(part) or state.hold.why_done(part)
    return f"{plain(part.name)} has it: {against}" if against else ""


def carrier_of(user: UserSlice, look: Look, *, uncounted: bool) -> Group | None:
    """The part that took most, of what its end gives back; None: most of it is in no part."""
    parts = user.parts
    if not parts or 2 * sum(part.taken_bytes for part in parts) < user.taken_bytes:
        return None
    if uncounted:
        return max(parts, key=lambda part: (part.outside.certain_bytes, _back(part)))
    return max(parts, key=lambda part: (_took(part, look), _back(part)))


def parts_of(users: Iterable[Group], look: Look, *, uncounted: bool) -> Mapping[str, Group]:
    """By the path of each user among them, the part that goes."""
    found = {}
    for user in users:
        if isinstance(user, UserSlice):
            part = carrier_of(user, look, uncounted=uncounted)
            if part is not None:
                found[user.path] = part
    return found


def parts_of_rows(rows: Sequence[Row], look: Look) -> Mapping[str, Group]:
    """The same, by what each of them is blamed for."""
    found: dict[str, Group] = {}
    for row in rows:
        found |= parts_of((row.group,), look, uncounted=row.tier == OVER_LIMIT)
    return found


def _back(part: Group) -> int:
    return part.hard_bytes + part.outside.certain_bytes


def _took(part: Group, look: Look) -> int:
    """Less than a blur is nothing."""
    took = min(part.taken_bytes + part.outside.certain_bytes - look.part_before(part), _back(part))
    return took if took >= LEAST_GROWTH else 0
