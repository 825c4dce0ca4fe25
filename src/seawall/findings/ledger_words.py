# SPDX-License-Identifier: Apache-2.0
"""What findings about uncounted memory say where the ledger's own file lacks lines."""

from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Finding, blind
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH
from seawall.words import first

_SHOWN = 4


def cut_ledger(*ledgers: Ledger) -> Finding | None:
    """BLIND, where counters are missing that every kernel has: what they count would be blamed on
    the kernel.
    """
    missing = next((ledger.missing for ledger in ledgers if ledger.missing), ())
    if not missing:
        return None
    words = f"it lacks {first(missing, _SHOWN)}"
    unread = Unread(PATH, "not_captured", words)
    return blind(f"uncounted memory cannot be said from this {PATH}: {words}", unread)
