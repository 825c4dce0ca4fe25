# SPDX-License-Identifier: Apache-2.0
"""What frames that stand for others may tell too much, beyond what chance does.

Where few are followed, who comes first may always get the ones that are: two that take in turn
halve a block between them.  The kernel's own sums (``hist.py``) are of every frame that a thread
took; by so much as the followed ones say more, they are somebody else's.  Where there are no such
sums, of what is there by chance half is certain at the most.
"""

from seawall.host.page_trace.follower import FollowerStatistics
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.hist import Sums
from seawall.host.page_trace.tracer_pace import PACE_STEP_MOST


def others_pages(
    ledger: FrameLedger, told: FollowerStatistics, sums: Sums | None, task: int, by_chance: int
) -> int:
    """Pages that may be others' of the ``by_chance`` frames that a task holds: of blocks smaller
    than the step, so that which were followed was chance.
    """
    step = ledger.frames.step
    # A few that are left out of our own accord halve nothing.
    unknown = by_chance * step // 2 if step > PACE_STEP_MOST else 0
    if sums is None or told.lost_taken:
        return unknown
    seen, took = ledger.gross.get(task, 0), sums.pages.get(ledger.tasks.rows[task].tid, 0)
    too_many = min(max(0, seen - took), by_chance * step)
    # Who found no room in them took more than they say.
    return min(unknown, too_many) if sums.dropped else too_many
