# SPDX-License-Identifier: Apache-2.0
"""What the processes beside the guard have in common at their start."""

import gc
from typing import Final

from seawall import own_process

_PDEATHSIG: Final = 1


def settle() -> None:
    """What the start took for a moment is given back, and what stays is not looked at again by the
    collector; before memory is locked.
    """
    gc.collect()
    gc.freeze()
    own_process.trim()
