# SPDX-License-Identifier: Apache-2.0
"""Probes that look into other processes or at the disk: asked through the expendable child.

A new one is a function of its argument, in a module of its own, and a row in the table.
"""

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from seawall.host import descriptors, pipes
from seawall.host.host import JSON


class SlowProbe(NamedTuple):
    """``answer`` may hang, and may raise OSError when nothing may be asked at all."""

    answer: Callable[[str], JSON]
    deadline_seconds: float


def _pipes(_: str) -> JSON:
    return pipes.data_in_pipes(os.sysconf("SC_PAGE_SIZE"))


def _descriptors(_: str) -> JSON:
    return descriptors.open_descriptors()


SLOW_PROBES: Final = {
    "pipes": SlowProbe(_pipes, pipes.DEADLINE_SECONDS),
    "descriptors": SlowProbe(_descriptors, descriptors.DEADLINE_SECONDS),
}
