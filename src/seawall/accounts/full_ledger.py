# SPDX-License-Identifier: Apache-2.0
"""The ledger with the line that is dear: data in pipes, asked process by process.

Rules do without it (``ledger.py``): pipes hold little unless somebody fills them on purpose,
and asking takes up to 0.2 s.
"""

from dataclasses import dataclass

from seawall.accounts.ledger import Ledger, sum_ledger
from seawall.host.host import Unread
from seawall.readings.arcstats import Arcstats
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_charge import KernelCharge
from seawall.readings.meminfo import Meminfo
from seawall.readings.numa import NumaNodes
from seawall.readings.pipes import PipeData
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zoneinfo


@dataclass(frozen=True, slots=True)
class FullLedger:
    """The topic; ``ledger`` has everything that can be asked."""

    ledger: Ledger


def account(
    meminfo: Meminfo,
    kernel: Kernel,
    vmstat: Vmstat | Unread,
    zoneinfo: Zoneinfo | Unread,
    vmallocinfo: Vmallocinfo | Unread,
    arcstats: Arcstats | Unread,
    numa: NumaNodes | Unread,
    charge: KernelCharge | Unread,
    pipes: PipeData | Unread,
) -> FullLedger:
    """The same sum, pipes included."""
    return FullLedger(
        sum_ledger(meminfo, kernel, vmstat, zoneinfo, vmallocinfo, arcstats, numa, charge, pipes)
    )
