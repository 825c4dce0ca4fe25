# SPDX-License-Identifier: Apache-2.0
"""Room for further stacks: in a watcher's life there are more of them than are remembered, and
of what is held only a few.
"""

from typing import Final

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import Happening, TakenPages
from seawall.host.page_trace.frame_ledger import FrameLedger

_STACK: Final = 6  # of a happening that is TAKEN


def most_after(kept: int) -> int:
    """At how many it is looked again which are used, when so many were; every frame is gone
    through for it.
    """
    if 4 * kept > 3 * decode.STACKS_MOST:
        return decode.STACKS_MOST + 1  # hardly any went: not again before all are forgotten
    return max(decode.STACKS_MOST // 2, (kept + decode.STACKS_MOST) // 2)


def without_unused(
    taken: TakenPages, ledger: FrameLedger, late: list[Happening]
) -> tuple[list[Happening], int]:
    """Forget stacks through which nothing is held; ``late``, what is not applied yet, as it is
    numbered then, and how many are left.
    """
    waiting = {one[_STACK] for one in late if one[1] == decode.TAKEN}
    numbers = taken.keep_stacks(ledger.stacks() | waiting)
    ledger.renumber_stacks(numbers)
    renumbered = [
        (*one[:_STACK], numbers[one[_STACK]]) if one[1] == decode.TAKEN else one for one in late
    ]
    return renumbered, len(numbers)
