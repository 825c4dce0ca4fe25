# SPDX-License-Identifier: Apache-2.0
"""The ledger with the line that is dear: data in pipes, asked process by process.

Rules do without it (``ledger.py``): pipes hold little unless somebody fills them on purpose,
and asking takes up to 0.2 s.
"""

from dataclasses import dataclass, replace

from seawall.accounts.node_memory.ledger import Ledger, LedgerLine
from seawall.accounts.node_memory.ledger_lines import CHARGED
from seawall.accounts.node_memory.ledger_parts import NOT_CAPTURED
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.pipes import PipeData


@dataclass(frozen=True, slots=True)
class FullLedger:
    """The topic; ``ledger`` has everything that can be asked."""

    ledger: Ledger


def account(ledger: Ledger, kernel: Kernel, pipes: PipeData | Unread) -> FullLedger:
    """``ledger`` with a line for pipes where no counter of the kernel has them already.

    A lower bound: what could not be asked, and pipes that are on their way through a socket,
    stay in uncounted memory.  v1's charged kernel pages have pipes in them: these are taken off.
    """
    if isinstance(pipes, Unread):
        return FullLedger(ledger)
    size = pipes.pages * kernel.page_size
    source = f"FIONREAD of {pipes.pipes} pipes in /proc/*/fd"
    lines = [*ledger.lines, LedgerLine("pipes", size, source)]
    charged = ledger.line(CHARGED)
    if charged is not None:
        twice = min(charged.bytes, size)
        lines[ledger.lines.index(charged)] = replace(charged, bytes=charged.bytes - twice)
    rest = ledger.line(NOT_CAPTURED)
    if rest is not None:
        at = ledger.lines.index(rest)
        lines[at] = replace(rest, bytes=max(rest.bytes - size, 0))
    notes = ledger.notes
    if pipes.processes_left_out:
        words = f"pipes of {pipes.processes_left_out} process(es) could not be asked"
        notes = (*notes, f"{words}: in uncounted memory")
    explained = sum(line.bytes for line in lines)
    return FullLedger(
        replace(
            ledger, lines=tuple(lines), notes=notes,
            residual_bytes=ledger.total_bytes - explained,
        )
    )  # fmt: skip
