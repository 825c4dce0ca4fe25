# SPDX-License-Identifier: Apache-2.0
"""What of a group's memory only its end gives back."""

from seawall.guard.facts import Group

UNREAD_SHARE = 0.5
"""Of a charge whose parts were not read, so much is expected back."""


def hard_of(group: Group) -> int:
    """Bytes that only its end gives back, of its charge (a careful guess where it was not read)
    and in swap.
    """
    back = group.gives_back_bytes
    if back is None:
        back = int(group.charge_bytes * UNREAD_SHARE)
    return max(0, min(back, group.charge_bytes)) + group.only_in_swap_bytes
