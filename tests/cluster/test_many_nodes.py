"""How a cluster of the size that Seawall is made for fits on the machine that tests it."""

import os
import time
from pathlib import Path

import pytest
from tests.cluster.control_plane import ControlPlane, Times
from tests.cluster.kwok_nodes import KwokNodes, condition

NODES = int(os.environ.get("SEAWALL_CLUSTER_NODES", "0"))
LONG = Times(grace=1200, lease=800)
"""A lease each ten seconds of 10,000 nodes would be a thousand writes a second."""

pytestmark = [
    pytest.mark.cluster, pytest.mark.timeout(900),
    pytest.mark.skipif(not NODES, reason="10,000 nodes: make cluster-scale"),
]  # fmt: skip


def test_ten_thousand_nodes_are_ready(program: Path, kwok: Path) -> None:
    with (
        ControlPlane(program, LONG, kwok=kwok) as plane,
        KwokNodes(plane) as nodes,
        plane.client() as client,
    ):
        began = time.monotonic()
        nodes.add(NODES)
        made = time.monotonic() - began
        listed = client.items("/api/v1/nodes")
        assert {condition(node) for node in listed} == {"True"}
        assert len(listed) == NODES
        whole = time.monotonic() - began
        sizes = {part: size >> 20 for part, size in plane.resident_bytes().items()}
        print(
            f"{NODES} nodes made in {made:.0f} s, listed after {whole:.0f}; resident MiB: {sizes}"
        )
        nodes.names.clear()  # the whole plane goes; nobody has to take its nodes away first
