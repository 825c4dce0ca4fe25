"""How a cluster of the size that Seawall is made for fits on the machine that tests it, and what
the watch of all its nodes costs.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.control_plane import ControlPlane, Times
from tests.cluster.kwok_nodes import Hardware, KwokNodes, condition

REPOSITORY = Path(__file__).parents[2]
RESIDENT_MOST_MIB = 64
NODES = int(os.environ.get("SEAWALL_CLUSTER_NODES", "0"))
PEER_PYTHON = os.environ.get("SEAWALL_PEER_PYTHON", "")
"""One that has the clients of `peer_watch_figures`: pip install kubernetes lightkube kopf."""
PEERS = ("kubernetes", "lightkube", "kopf")
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
        for peer in PEERS if PEER_PYTHON else ():
            peer_costs(plane, peer)
        nodes.names.clear()  # the whole plane goes; nobody has to take its nodes away first


def watch_costs(plane: ControlPlane, form: str) -> None:
    """In a process of its own, twice: what is measured is not what the tests hold."""
    figures = figures_of(
        plane, [sys.executable, "-m", "tests.cluster.node_watch_figures"], form, "20"
    )
    assert figures["nodes"] == NODES
    assert figures["peak_mib"] < RESIDENT_MOST_MIB


def peer_costs(plane: ControlPlane, peer: str) -> None:
    program = [PEER_PYTHON, "-m", "tests.cluster.peer_watch_figures"]
    assert figures_of(plane, program, peer, "20", str(NODES))["nodes"] == NODES


def figures_of(plane: ControlPlane, program: list[str], *words: str) -> dict[str, Any]:
    access = [f"https://127.0.0.1:{plane.port}", str(plane.folder / "tls.crt"),
              plane.tokens["admin"]]  # fmt: skip
    run = subprocess.run(
        [*program, *access, *words], capture_output=True, text=True, check=False, timeout=700,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "src:."}, cwd=REPOSITORY,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    figures: dict[str, Any] = json.loads(run.stdout)
    print(figures)
    return figures
