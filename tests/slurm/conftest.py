"""One Slurm for all tests of the folder; a test that needs another cgroup.conf makes its own."""

from collections.abc import Iterator

import pytest
from tests.slurm.slurm_room import SlurmRoom, missing


@pytest.fixture(scope="session")
def room() -> Iterator[SlurmRoom]:
    if why := missing():
        pytest.skip(why)
    with SlurmRoom() as room:
        yield room
