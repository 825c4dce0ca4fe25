"""A client that never reads, beside the server that answers it, on Debian's 6.1 under cgroup v2.

v2 charges the client with a budget (``sock`` of memory.stat); the pages are in no counter, and a
trace sees the server take them.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
FILLER = Path(__file__).parents[1] / "end_to_end/queue_filler.py"
SOCKETS = 600
HELD_LEAST = 80 * MIB  # 101 and more, as a busy emulator has time for them

JOB = rf"""
mount -t tracefs tracefs /sys/kernel/tracing
echo "200000 250000 300000" > /proc/sys/net/ipv4/udp_mem
G=/sys/fs/cgroup
start() {{
    mkdir $G/$1; name=$1; shift
    (echo go; sleep 600) | sh -c 'echo $$ > '$G/$name'/cgroup.procs; exec python3.11 "$@"' \
        sh $JOB/queue_filler.py "$@" > /run/$name.out &
    until grep -q . /run/$name.out; do sleep 0.2; done
}}
start innocent udp server
seawall memory --json > $OUT/before.json 2> $OUT/before.err
seawall memory --who --for 45 --json > $OUT/who.json 2> $OUT/who.err & who=$!
sleep 8
start attacker udp client $(cat /run/innocent.out) {SOCKETS}
wait $who
seawall memory --json > $OUT/after.json 2> $OUT/after.err
seawall pods --json > $OUT/pods.json 2> $OUT/pods.err
COLUMNS=80 seawall pods > $OUT/pods.txt 2> $OUT/pods.err
cat /sys/fs/cgroup/attacker/memory.stat > $OUT/attacker.stat
cat /sys/fs/cgroup/innocent/memory.stat > $OUT/innocent.stat
cat /proc/net/sockstat > $OUT/sockstat
echo "== done"
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(
        image, JOB, tmp_path_factory.mktemp("queues"), files={FILLER.name: FILLER.read_bytes()},
        memory_mib=1536, timeout_seconds=400,
    )  # fmt: skip
    assert outcome.status == 0, outcome.console[-4000:]
    return outcome


def page_of(node: Outcome, name: str) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(node.text(f"{name}.json"))
    return page


def claims_of(page: dict[str, Any], cgroup: str) -> list[dict[str, Any]]:
    return [claim for claim in page["claims"] if claim["cgroup"] == cgroup]


def sock_of(node: Outcome, name: str) -> int:
    stat = dict(line.split() for line in node.text(f"{name}.stat").splitlines())
    return int(stat["sock"])


def test_the_kernel_charges_the_client_and_the_memory_is_uncounted(node: Outcome) -> None:
    """What the rest is measured by."""
    assert sock_of(node, "attacker") > HELD_LEAST
    assert sock_of(node, "innocent") < 8 * MIB
    moved = page_of(node, "after")["residual_bytes"] - page_of(node, "before")["residual_bytes"]
    assert moved > HELD_LEAST // 2


@pytest.mark.parametrize("name", ["after", "who"])
def test_the_client_is_named_and_its_charge_has_it(node: Outcome, name: str) -> None:
    (claim,) = [c for c in claims_of(page_of(node, name), "/attacker") if c["class"] == "socket"]
    assert claim["confidence"] == "exact"
    assert claim["counted"] is True
    assert claim["bytes"] >= claim["least_bytes"] > HELD_LEAST // 2
    assert abs(claim["most_bytes"] - sock_of(node, "attacker")) < 0.2 * claim["most_bytes"]


@pytest.mark.parametrize("name", ["after", "who"])
def test_the_server_is_clean(node: Outcome, name: str) -> None:
    """A trace saw it take all of that."""
    page = page_of(node, name)
    for claim in claims_of(page, "/innocent"):
        assert (claim["bytes"], claim["least_bytes"]) == (0, 0), claim
        assert claim["confidence"] == "bound"
    (client,) = [c for c in claims_of(page, "/attacker") if c["class"] == "socket"]
    left = page["residual_bytes"] - client["least_bytes"]
    for claim in claims_of(page, "/innocent"):
        assert claim["most_bytes"] <= max(left, 0) + 16 * MIB
    assert "/innocent" not in {suspect["cgroup"] for suspect in page["suspects"]}


def test_pods_says_the_same(node: Outcome) -> None:
    rows = {row["cgroup"]: row for row in page_of(node, "pods")["workloads"]}
    assert rows["/innocent"]["uncounted_bytes"] == 0
    assert rows["/attacker"]["charge_bytes"] > HELD_LEAST
    line = next(line for line in node.text("pods.txt").splitlines() if "/innocent" in line)
    assert not line.startswith("!")
