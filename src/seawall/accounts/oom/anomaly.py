# SPDX-License-Identifier: Apache-2.0
"""What is wrong about a kill: a stable id and a sentence or two."""

from typing import NamedTuple


class Anomaly(NamedTuple):
    """``id`` is part of the contract of ``--json``."""

    id: str
    text: str
