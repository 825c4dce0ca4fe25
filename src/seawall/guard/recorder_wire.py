# SPDX-License-Identifier: Apache-2.0
"""What the guard tells the recorder (``seawall/recorder``): datagrams of a socket pair.

Each begins with PART: a kind, which part it is, whether it is the last one, and a number.  What a
message has to say is the bytes behind PART of all its parts, one after the other.

====  ==========================================================================
kind  its bytes
====  ==========================================================================
T     a tick with that number: TICK; a ROW for each group that has changed; the order (an index
      of four bytes for each group that there is, as the judge went through them; none: as in
      the tick before); the node as JSON (a list in the order of ``Node``, null for None)
L     a line of the decision journal, without its newline; the number is that of the tick that it
      tells of, or of the last before it
J     a JSON object with ``t``
====  ==========================================================================

=======  ==========================================================================
``t``    further keys
=======  ==========================================================================
start    settings {...}, last_decision (whose number the judge counts on from), mind {...} (what
         the judge remembers just before the next tick; null: the same judge goes on, with other
         settings): before the first tick, when settings were read anew, and behind a gap
names    rows [[index, path, inode, name, pod, protected_by, hopeless_why, sources]]: what an
         index of the rows of later ticks means; those that are new or changed
outcome  outcome (an ``Outcome`` as nested lists, ``orders.py``): what ``Judge.learn`` was told, in
         its order, always behind its tick, whose number it has
bye      the guard ends
=======  ==========================================================================

A tick tells the difference to the one with the number ``base``; 0: it is whole, and what was told
before it does not matter any more.  Whoever missed the base waits for a whole one: the guard
sends one, with all names, after each message that could not be sent.

The recorder tells the guard JSON objects, each a datagram: ``{"t": "hello", "pid": P, "next": N}``:
from here on it listens, and the next tick gets the number N or a higher one (a second hello: all
is told anew); and
``{"t": "state", "frame": N, "unix": S, "monotonic": M, "problem": "", "remark": ""}`` at least
every 20 s: the last tick that is surely on the disk, when that was written (Unix seconds, and by
the clock that nobody sets), why nothing is written, and what else is to be said of it, in words,
or empty.
Both ends are of one version: a recorder that says another one before its hello (``entry.py``) is
told nothing.  Nothing of this is on a disk.
"""

import struct
from typing import Final

from seawall.guard.watcher_channel import DATAGRAM_MOST_BYTES

PART: Final = struct.Struct("<cHBQ")
"""Kind, part (from 0), 1 if it is the last, number."""
PART_MOST_BYTES: Final = DATAGRAM_MOST_BYTES - PART.size
TICK: Final = struct.Struct("<BdQII")
"""The place in STATES of the judge's state after the tick, Unix seconds of the look, base, rows,
indices in the order."""
LATE_MOST_SECONDS: Final = 60.0
"""What follows from a look is told so long after it, at most; else a clock was set since."""
STATES: Final = ("peace", "near", "blind", "short", "holding")
INDEX: Final = struct.Struct("<I")
ROW: Final = struct.Struct("<IqqqdqqqqqqdiiiddddBd")
"""index, charge_bytes, swapped_bytes, swap_cached_bytes, charge_slope, limit_bytes, request_bytes,
gives_back_bytes, the outside's certain, likely and most bytes, outside_slope, adj, class_rank,
processes, started_seconds, at_limit_seconds, events_max, stall, 1 if the progress is known,
progress_per_second."""
NONE: Final = -(1 << 31)
"""In the place of None: no byte count, adj or count of processes is that."""
