# SPDX-License-Identifier: Apache-2.0
"""Probes that look into other processes: asked through the expendable child.

A new one is a function of its argument, in a module of its own, and a row in the table.  The
modules are imported in the child, when they are asked: on a thrashing node each file counts.
"""

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from seawall.host.host import JSON


class SlowProbe(NamedTuple):
    """``answer`` may hang, and may raise OSError when nothing may be asked at all."""

    answer: Callable[[str], JSON]
    deadline_seconds: float


def _pipes(_: str) -> JSON:
    from seawall.host.pipes import data_in_pipes  # noqa: PLC0415 - see above

    return data_in_pipes(os.sysconf("SC_PAGE_SIZE"))


def _descriptors(_: str) -> JSON:
    from seawall.host.descriptors import open_descriptors  # noqa: PLC0415 - see above

    return open_descriptors()


SLOW_PROBES: Final = {
    "pipes": SlowProbe(_pipes, 0.4),
    "descriptors": SlowProbe(_descriptors, 0.6),
}
