"""What a cgroup asked for, as the watcher tells it."""

import pytest

from seawall.accounts.workloads import Workload
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.watcher.requests import Asked, request_of

GIB = 1 << 30
CAPACITY = 16 * GIB
DB = Workload(cgroup="/batch.slice/db.service", kind="unit", name="db", unit="db.service")


@pytest.mark.parametrize(
    ("limit", "protected", "request_"),
    [
        (None, UNLIMITED, CAPACITY),
        (8 * GIB, UNLIMITED, 8 * GIB),
        (8 * GIB, GIB, GIB),
        (8 * GIB, None, None),
    ],
)
def test_what_is_protected(
    limit: int | None, protected: int | Unlimited | None, request_: int | None
) -> None:
    """MemoryLow=infinity: up to its limit, or all that there is."""
    assert request_of(DB, Asked(limit, protected), None, CAPACITY) == request_


@pytest.mark.parametrize("protected", [UNLIMITED, GIB])
def test_what_a_user_protects_is_a_wish(protected: int | Unlimited) -> None:
    assert request_of(DB, Asked(None, protected), 500, CAPACITY, is_delegated=True) is None
