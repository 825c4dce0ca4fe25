"""Who took the kernel's memory: a container beside innocents at full load, on this machine.

One trace with three culprits: a runc container over its limit, a program whose children take
rings, hand them on and exit, and one that gives its socket to another workload.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.containers import node as nodes
from tests.containers.ring_container import MIB, RingContainer, ring_container
from tests.end_to_end import blamed
from tests.end_to_end.innocents import (
    Innocents,
    Member,
    forking_hog,
    innocents,
    passing_hog,
    why_no_rings,
)
from tests.end_to_end.verbs import ENVIRONMENT
from tests.lab.running import wait_for

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
SIZE, FORKED, PASSED = 256 * MIB, 96 * MIB, 64 * MIB
TRACE_SECONDS = 12
TRACING = "/sys/kernel/tracing"


@dataclass(frozen=True)
class Seen:
    """What was at work, and what Seawall said of it."""

    others: Innocents
    container: RingContainer
    forker: Member
    passer: Member
    keeper: Member
    who: dict[str, Any]
    memory: dict[str, Any]
    pods: list[dict[str, Any]]
    instances: list[str]
    """Of tracefs, when the trace is over."""

    @property
    def culprits(self) -> tuple[str, ...]:
        return self.container.cgroup, self.forker.path, self.passer.path


def instances(node: nodes.Node) -> list[str]:
    return sorted(node.need("ls", f"{TRACING}/instances").split())


def arm(node: nodes.Node) -> None:
    """tracefs in the node's own mount namespace; skips by name where there is none."""
    ran = node.run("sh", "-c", f"mount -t tracefs tracefs {TRACING} && ls {TRACING}/instances")
    if ran.status:
        pytest.skip(f"no tracefs: mount -t tracefs tracefs {TRACING}: {ran.err.decode().strip()}")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    if why := nodes.missing("runc") or why_no_rings():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("who")
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(nodes.node(folder))
        arm(node)
        container = stack.enter_context(ring_container(node, folder, SIZE))
        forker = stack.enter_context(forking_hog(FORKED))
        passer, keeper = stack.enter_context(passing_hog(PASSED, folder))
        others = stack.enter_context(innocents(folder))
        before = instances(node)
        with tracing(node) as who:
            wait_for("its trace", lambda: set(instances(node)) - set(before), 30)
            time.sleep(1)  # they are made first and switched on then
            container.go()
            forker.go()
            passer.go()
            out, err = who.communicate(timeout=120)
        others.assert_busy()
        assert who.returncode == 0, err.decode()
        yield Seen(
            others, container, forker, passer, keeper, json.loads(out),
            node.seawall("memory", "--json").answered().document, node.rows(),
            instances(node),
        )  # fmt: skip


@contextlib.contextmanager
def tracing(node: nodes.Node) -> Iterator[subprocess.Popen[bytes]]:
    """``memory --who`` while others act."""
    words = ["memory", "--who", "--for", str(TRACE_SECONDS), "--json"]
    process = subprocess.Popen(
        ["nsenter", "-t", str(node.pid), "-m", "--wd=/", sys.executable, "-m", "seawall", *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_container_is_named_with_all_that_it_holds(seen: Seen) -> None:
    blamed.assert_held(seen.who, seen.container.cgroup, SIZE, seen.container.name)


def test_one_that_forks_exits_and_hands_its_sockets_on_is_found(seen: Seen) -> None:
    blamed.assert_held(seen.who, seen.forker.path, FORKED)


def test_whoever_allocated_stays_to_blame(seen: Seen) -> None:
    blamed.assert_held(seen.who, seen.passer.path, PASSED)
    assert blamed.claimed(seen.who, seen.keeper.path, "most_bytes") == 0


def test_no_innocent_is_blamed(seen: Seen) -> None:
    for page in (seen.who, seen.memory):
        blamed.assert_none_blamed(page, seen.others.groups.values())
    blamed.assert_only(seen.who, seen.culprits, most=64 * MIB)


def test_the_stack_says_how(seen: Seen) -> None:
    rows = [row for row in seen.who["by_stack"] if "packet_set_ring" in row["frames"]]
    total = sum(row["bytes"] for row in rows)
    expected = SIZE + FORKED + PASSED
    assert abs(total - expected) <= 0.02 * expected
    named = {name for row in rows for name in row["workloads"]}
    assert any(seen.container.name in str(name) for name in named), named
    assert not [n for n in named for path in seen.others.groups.values() if path in str(n)]


def test_without_tracing_the_kernel_is_asked_for_the_rings(seen: Seen) -> None:
    blamed.assert_held(seen.memory, seen.container.cgroup, SIZE, seen.container.name)
    (claim,) = [c for c in seen.memory["claims"] if c["cgroup"] == seen.container.cgroup]
    assert (claim["class"], claim["confidence"]) == ("ring", "exact")
    assert claim["give_back"]


def test_who_only_holds_a_socket_is_not_charged_by_memory_either(seen: Seen) -> None:
    assert blamed.claimed(seen.memory, seen.keeper.path, "least_bytes") == 0


def test_pods_shows_what_it_really_takes(seen: Seen) -> None:
    (row,) = [row for row in seen.pods if row["cgroup"] == seen.container.cgroup]
    assert row["name"] == seen.container.name
    assert row["charge_bytes"] < 100 * MIB
    assert abs(row["uncounted_bytes"] - SIZE) <= 0.02 * SIZE
    assert row["shadow_charge_bytes"] == row["charge_bytes"] + row["uncounted_bytes"]
    assert row["shadow_charge_bytes"] > row["limit_bytes"], "over its limit, and nobody counts it"
    innocent = set(seen.others.groups.values())
    for row in seen.pods:
        if row["cgroup"] in innocent:
            assert row.get("uncounted_bytes", 0) <= 64 * MIB, row


def test_nothing_of_the_trace_is_left(seen: Seen) -> None:
    """Whoever else traces meanwhile is alive."""
    dead = [name for name in seen.instances if is_left(name)]
    assert dead == []


def is_left(name: str) -> bool:
    """Whether an instance is named after a process that has gone."""
    words = name.split("-")
    return words[0] == "seawall" and not Path(f"/proc/{words[1]}").exists()
