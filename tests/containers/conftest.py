"""A node whose /run and /var/log are its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.containers import node as nodes


@pytest.fixture
def node(tmp_path: Path) -> Iterator[nodes.Node]:
    if why := nodes.missing("runc"):
        pytest.skip(why)
    with nodes.node(tmp_path) as made:
        yield made
