"""How a cluster of the size that Seawall is made for fits on the machine that tests it, and what
the watch of all its nodes costs.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.control_plane import ControlPlane, Times
from tests.cluster.kwok_nodes import Hardware, KwokNodes, condition

REPOSITORY = Path(__file__).parents[2]
RESIDENT_MOST_MIB = 64
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
        labels = {f"example.com/label-{number}": f"value-{number}" for number in range(35)}
        nodes.add(NODES, Hardware(labels=labels, images=40))
        made = time.monotonic() - began
        listed = client.items("/api/v1/nodes")
        assert {condition(node) for node in listed} == {"True"}
        assert len(listed) == NODES
        whole = time.monotonic() - began
        sizes = {part: size >> 20 for part, size in plane.resident_bytes().items()}
        print(
            f"{NODES} nodes made in {made:.0f} s, listed after {whole:.0f}; resident MiB: {sizes}"
        )
        for form in ("watch-list", "pages"):
            watch_costs(plane, form)
        nodes.names.clear()  # the whole plane goes; nobody has to take its nodes away first


def watch_costs(plane: ControlPlane, form: str) -> None:
    """In a process of its own, twice: what is measured is not what the tests hold."""
    program = [sys.executable, "-m", "tests.cluster.node_watch_figures"]
    words = [f"https://127.0.0.1:{plane.port}", str(plane.folder / "tls.crt"),
             plane.tokens["admin"], form, "20"]  # fmt: skip
    run = subprocess.run(
        [*program, *words], capture_output=True, text=True, check=True, timeout=300,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "src:."}, cwd=REPOSITORY,
    )  # fmt: skip
    found = json.loads(run.stdout)
    print(found)
    assert found["nodes"] == NODES
    assert found["peak_mib"] < RESIDENT_MOST_MIB
