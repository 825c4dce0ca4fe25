"""``memory --watch`` on Debian's 6.1 under cgroup v2: kprobes and hist triggers."""

import json
from typing import Any

import pytest
from tests.end_to_end.innocents import guest_files, in_shell
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
SIZE = 256 * MIB
RATE = 8  # MiB a second: an emulator that is held up arms late, and what is taken before is lost
HOG = "/hog-slow"

JOB = rf"""
mkdir -p /run/seawall; T=/sys/kernel/tracing; mount -t tracefs tracefs $T
seawall memory --watch --json > $OUT/watch.lines 2> $OUT/watch.err & watcher=$!
until [ -s $OUT/watch.lines ]; do sleep 0.2; done
{in_shell("hog-slow", "rings", str(SIZE), str(RATE), "/run/go", limit_bytes=100 * MIB)}
sleep 2; touch /run/go
tries=0; until grep -q ready /run/hog-slow.out || [ $((tries += 1)) -gt 400 ]; do sleep 0.2; done
sleep 25; cp /run/seawall/claims $OUT/claims
kill -9 $watcher; sleep 4; ls $T/instances > $OUT/left
seawall memory --json > $OUT/memory.json 2> $OUT/memory.err
while read p; do kill -9 $p; done < /sys/fs/cgroup{HOG}/cgroup.procs
sleep 2; seawall memory --json > $OUT/gone.json 2> $OUT/gone.err
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(
        image, JOB, tmp_path_factory.mktemp("watch"), files=guest_files(), memory_mib=2048,
        timeout_seconds=220,
    )  # fmt: skip
    assert outcome.status == 0, outcome.console[-4000:]
    assert outcome.text("watch.err") == ""
    return outcome


def claimed(node: Outcome, name: str) -> int:
    claims: list[dict[str, Any]] = json.loads(node.text(name))["claims"]
    return sum(claim["bytes"] for claim in claims if claim["cgroup"] == HOG)


def test_it_arms_and_learns_who(node: Outcome) -> None:
    lines = [json.loads(line) for line in node.text("watch.lines").splitlines()]
    assert [line["event"] for line in lines][:2] == ["started", "armed"]
    assert {line["event"] for line in lines} <= {"started", "armed", "claim", "gone"}
    # What was taken before it was armed is nobody's.
    assert 0.5 * SIZE <= claimed(node, "claims") <= 1.02 * SIZE
    (claim,) = [c for c in json.loads(node.text("claims"))["claims"] if c["cgroup"] == HOG]
    assert "packet_set_ring" in claim["stack"]


def test_killed_it_leaves_its_claim_and_nothing_else(node: Outcome) -> None:
    assert node.text("left").split() == []
    assert claimed(node, "memory.json") == pytest.approx(claimed(node, "claims"), rel=0.05)


def test_a_claim_falls_when_the_memory_is_given_back(node: Outcome) -> None:
    assert claimed(node, "gone.json") == 0
