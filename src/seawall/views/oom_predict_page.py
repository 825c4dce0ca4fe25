# SPDX-License-Identifier: Apache-2.0
"""What ``seawall oom predict`` shows, whichever way."""

from typing import Final, NamedTuple

from seawall.accounts.oom.prediction import Prediction
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread

DESCRIBED_MOST: Final = 100
"""Rows of processes that are only described: they are all alike."""


class PredictPage(NamedTuple):
    """The prediction, or what it lacks."""

    prediction: Prediction | None
    missing: Unread | None
    """Why there is no prediction."""
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
    described: str
    """The processes in the words in which they were described; empty for a host."""
