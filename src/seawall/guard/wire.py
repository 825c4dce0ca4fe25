# SPDX-License-Identifier: Apache-2.0
"""What the guard tells the recorder (``seawall/recorder``): datagrams of a socket pair.

A datagram that begins with ``{`` is a JSON object with ``t``:

=======  ==========================================================================
``t``    further keys
=======  ==========================================================================
start    settings {...}, last_decision: before the first tick, and when settings were read anew
names    rows [[index, path, inode, name, pod, protected_by, hopeless_why, sources]]: what an
         index of the rows of later ticks means; those that are new or changed
outcome  number of the tick, outcome (an ``Outcome`` as nested lists, ``plan.py``): what
         ``Judge.learn`` was told, in its order, always behind its tick
line     text of a line of the decision journal, without the newline
bye      the guard ends
=======  ==========================================================================

One that begins with ``T`` is a tick, or a part of one: HEAD, the node as JSON (a list in the
order of ``Node``, null for None), and a row of ROW for each group that there is.  A tick in
several parts has the node in each.  Both ends are of one version; nothing of this is on a disk.

The recorder tells the guard ``{"t": "hello", "pid": ..., "next": N}``: from here on it listens,
and the next tick gets the number N; and ``{"t": "state", ...}`` for the status, now and then.
"""

import struct
from typing import Final

DATAGRAM_MOST_BYTES: Final = 60_000
HEAD: Final = struct.Struct("<cBHHQdI")
"""``T``; 0 peace, 1 near, 2 blind, 3 short, 4 holding (the judge's state after the tick); part;
parts; number of the tick; Unix seconds; bytes of the node's JSON."""
STATES: Final = ("peace", "near", "blind", "short", "holding")
ROW: Final = struct.Struct("<Iqdqqqqqqdiiiddddd")
"""index, charge_bytes, charge_slope, limit_bytes, request_bytes, gives_back_bytes, the outside's
certain, likely and most bytes, outside_slope, adj, class_rank, processes, started_seconds,
at_limit_seconds, events_max, stall, progress_per_second.  None is NONE, of a float NaN."""
NONE: Final = -(1 << 31)
"""No byte count, adj or count of processes is that."""
