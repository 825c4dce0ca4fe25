"""Packet rings in the network of a container: its own are charged to it, a visitor's are not."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers.node import Node
from tests.containers.ring_container import MIB, RingContainer, ring_container
from tests.end_to_end.cgroups import cgroup

pytestmark = pytest.mark.system
HOLDER = Path(__file__).parents[1] / "end_to_end/ring_holder.py"
SIZE = 48 * MIB
VISITORS = 80 * MIB


@pytest.fixture
def container(node: Node, tmp_path: Path) -> Iterator[RingContainer]:
    with ring_container(node, tmp_path, SIZE) as made:
        yield made


@pytest.fixture
def visitor(container: RingContainer) -> Iterator[str]:
    """A process of the host that went into the container's network, as ``nsenter -n`` does."""
    enter = ["nsenter", "-t", str(container.pid), "-n", sys.executable, str(HOLDER)]
    with cgroup(f"seawall-visitor-{os.getpid()}", 200 * MIB) as group:
        run = subprocess.Popen(enter, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            group.add(run.pid)
            assert run.stdin
            assert run.stdout
            run.stdin.write(json.dumps(["ring", 1, [65536, VISITORS // 65536, 2048], None]) + "\n")
            run.stdin.flush()
            assert int(run.stdout.readline())
            yield "/" + group.path.name
        finally:
            run.kill()
            run.communicate()


def rings(node: Node, holder: str, expected: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The claims on rings whose holder begins so, and the page.

    Claims are held against the residual, which others on this machine move while it is read:
    so the page is asked for again when it is off by more than the mark's 2 %.
    """
    for _ in range(5):
        page: dict[str, Any] = node.seawall("memory", "--json").answered().document
        found = [
            c for c in page["claims"] if c["class"] == "ring" and c["holder"].startswith(holder)
        ]
        if abs(sum(c["bytes"] for c in found) - expected) <= 0.02 * expected:
            return found, page
    raise AssertionError([(c["holder"], c["bytes"]) for c in page["claims"]])


def test_what_the_container_took_and_nothing_else(
    node: Node, container: RingContainer, visitor: str
) -> None:
    pod = container.cgroup.rpartition("/")[0]
    (visitors,), page = rings(node, f"packet sockets of {pod}'s network", VISITORS)
    assert (visitors["workload"], visitors["cgroup"]) == (None, None)
    assert visitor in visitors["holder"]
    charged = {c["cgroup"] for c in page["claims"] if c["class"] == "ring"}
    assert not charged & {container.cgroup, visitor}, "the visitor's ring is not the container's"
    assert visitor in {row["cgroup"] for row in page["suspects"]}
    container.go()
    (own,), page = rings(node, container.name, SIZE)
    assert (own["cgroup"], own["workload"]) == (container.cgroup, container.name)
    assert own["confidence"] == "exact"
    assert own["least_bytes"] == own["bytes"]
    assert visitor not in {c["cgroup"] for c in page["claims"] if c["class"] == "ring"}
