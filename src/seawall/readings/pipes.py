# SPDX-License-Identifier: Apache-2.0
"""The probe ``pipes``: data that lies in pipes, where no file of the kernel counts it.

On cgroup v2 with ``kernel`` in memory.stat (5.18+) the pages of pipes are in a counter that is
exact and free of cost; then nothing is asked.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings import kernel_charge
from seawall.readings.kernel_charge import KernelCharge

PROBE: Final = "pipes"
_REFUSED_AT: Final = "/proc/1/fd"
_PAGES_MOST: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeData:
    """What is in pipes now, at least."""

    pipes: int
    pages: int
    """Pages of the asked kernel that the data fills; a page that is not full counts whole."""
    processes_left_out: int
    """Not asked: for lack of time, or because they may not be traced."""


def read(host: Host) -> PipeData | Unread:
    """Unread (``absent``) as well where a counter of the kernel makes it needless."""
    charge = kernel_charge.read(host)
    if isinstance(charge, KernelCharge) and charge.parts_bytes is not None:
        return Unread(PROBE, "absent", "memory.stat of cgroup v2 counts them")
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        # Named by what was refused: that tells which capability would help.
        path = _REFUSED_AT if answer.why == "refused" else PROBE
        return Unread(path, answer.why, answer.detail)
    values = answer if isinstance(answer, dict) else {}
    numbers = [values.get(name) for name in ("pipes", "pages", "processes_left_out")]
    known = [n for n in numbers if isinstance(n, int) and 0 <= n < _PAGES_MOST]
    if len(known) < len(numbers):
        return Unread(PROBE, "malformed", "expected three counts")
    return PipeData(pipes=known[0], pages=known[1], processes_left_out=known[2])
