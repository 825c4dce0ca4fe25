"""Wait for what a control plane does in its own time."""

import time
from collections.abc import Callable


def wait_until(done: Callable[[], object], seconds: float, what: str) -> float:
    """How long it took."""
    began = time.monotonic()
    while not done():
        passed = time.monotonic() - began
        assert passed < seconds, f"after {passed:.0f} s still not: {what}"
        time.sleep(0.1)
    return time.monotonic() - began
