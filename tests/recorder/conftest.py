# SPDX-License-Identifier: Apache-2.0
"""What a test leaves open is closed."""

from collections.abc import Iterator

import pytest
from tests.recorder.pair import GUARDS


@pytest.fixture(autouse=True)
def close_guards() -> Iterator[None]:
    """After each test."""
    yield
    while GUARDS:
        GUARDS.pop().close()
