# SPDX-License-Identifier: Apache-2.0
"""From where on a workload must jump to the eye, in ``pods`` and in ``top``."""

from typing import Final

NEAR_FRACTION: Final = 0.05
"""Of the limit, still free once all cache is dropped: the next allocation may kill."""
CLOSE_FRACTION: Final = 0.10
STALL_FRACTION: Final = 0.20
"""Of the last 10 s, some task waiting for memory."""
