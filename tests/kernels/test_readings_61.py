"""All reading verbs on Debian's 6.1, under cgroup version 1 and 2, and their bundle here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.top_pty import SOURCE
from tests.end_to_end.verbs import ENVIRONMENT
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
RESIDUAL_MOST_FRACTION = 0.003
READING_VERBS = ("why", "memory", "pods")
VERBS = (*READING_VERBS, "top")

CONTAINER = "4b1d7c2e9f60a8d3557e0c9b1f2a6d84e3c7b50f918a2d6c4e7f03b9a1d58c26"

JOB = r"""
at=/sys/fs/cgroup limit=memory.max
[ -d $at/memory ] && at=$at/memory limit=memory.limit_in_bytes
for part in kubepods burstable pod0e3f7a4c-8d2b-4f0e-9a51-6b2d1c0f9e87 CONTAINER; do
    at=$at/$part
    mkdir $at
    [ $limit$part = memory.maxCONTAINER ] || echo +memory > $at/cgroup.subtree_control
done 2> /dev/null
echo 100000000 > $at/$limit
(echo 0 > $at/cgroup.procs
 exec python3.11 -c "x = bytearray(40 << 20); import time; time.sleep(600)") &
sleep 3
for verb in why memory pods; do
    seawall $verb --json > $OUT/$verb.json 2> $OUT/$verb.err; echo $? > $OUT/$verb.status
    seawall $verb > $OUT/$verb.txt 2>&1
done
seawall top --json > $OUT/top.json 2> $OUT/top.err; echo $? > $OUT/top.status
seawall top --once > $OUT/top.txt 2>&1
seawall capture --for 2 -o $OUT/node.bundle 2> $OUT/capture.err; echo $? > $OUT/capture.status
seawall why --json --from $OUT/node.bundle > $OUT/from.json
[ -d /sys/fs/cgroup/memory ] && echo v1 > $OUT/tree || echo v2 > $OUT/tree
grep MemTotal /proc/meminfo > $OUT/memtotal
""".replace("CONTAINER", CONTAINER)


@pytest.fixture(scope="module", params=["v1", "v2"])
def node(
    request: pytest.FixtureRequest, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    folder = tmp_path_factory.mktemp("job")
    return run_job(image, JOB, folder, memory_mib=2048, cgroup=request.param)


def document(node: Outcome, name: str) -> dict[str, Any]:
    page = json.loads(node.text(name))
    assert isinstance(page, dict)
    return page


@pytest.mark.parametrize("verb", [*VERBS, "capture"])
def test_verb_answers(node: Outcome, verb: str) -> None:
    assert node.text(f"{verb}.status").strip() == "0", node.text(f"{verb}.err")
    assert "Traceback" not in node.text(f"{verb}.err")


@pytest.mark.parametrize("verb", VERBS)
def test_document_is_about_that_node(node: Outcome, verb: str) -> None:
    page = document(node, f"{verb}.json")
    assert page["schema"] == f"seawall.{verb}/1"
    assert page["host"]["node"] == "node-61"
    assert page["host"]["kernel"].startswith("6.1.")
    assert page["host"]["page_size"] == 4096


def test_top_has_the_container(node: Outcome) -> None:
    page = document(node, "top.json")
    schema = SOURCE / "seawall/views/schemas/top.json"
    jsonschema.validate(page, json.loads(schema.read_text()))
    (row,) = (row for row in page["workloads"] if CONTAINER in row["cgroup"])
    assert row["name"] == f"python3.11 in {CONTAINER[:12]}"
    assert row["limit_bytes"] == 100_000_000 // 4096 * 4096
    assert 40 << 20 <= row["charge_bytes"] <= row["limit_bytes"]
    assert row["oom_kills"] == 0
    assert (row["uncounted_bytes"], row["uncounted_source"]) == (0, "own_look")
    assert row["growth_bytes_per_second"] < 1 << 20
    # v1 has no pressure of a cgroup: it is not zero.
    is_v2 = node.text("tree").strip() == "v2"
    assert ("stall_share" in row) == (is_v2 and "memory" in page["stalls"])
    assert ("stall_share" in row["unread"]) != ("stall_share" in row)
    assert page["headroom"]["left_bytes"] > 1 << 30
    assert page["headroom"]["pace_bytes_per_second"] is not None
    assert page["uncounted"]["source"] == "own_look"


def test_top_as_text(node: Outcome) -> None:
    assert "Traceback" not in node.text("top.txt")
    assert CONTAINER[:12] in node.text("top.txt")


def test_residual_of_an_idle_node(node: Outcome) -> None:
    page = document(node, "memory.json")
    total = int(node.text("memtotal").split()[1]) << 10
    assert page["total_bytes"] == total
    assert sum(line["bytes"] for line in page["lines"]) + page["residual_bytes"] == total
    share = page["residual_bytes"] / total
    words = f"{page['residual_bytes'] >> 10} KiB, {share:.3%} of {total >> 20} MiB"
    print(f"{words}, error {page['residual_error_bytes'] >> 10} KiB")  # noqa: T201 - by -rP
    assert abs(share) < RESIDUAL_MOST_FRACTION, words


def test_nothing_critical_about_an_idle_node(node: Outcome) -> None:
    firing = [f for f in document(node, "why.json")["findings"] if f["verdict"] == "fires"]
    assert [f["headline"] for f in firing if f["severity"] == "critical"] == []


def test_pods_finds_the_container(node: Outcome) -> None:
    rows = document(node, "pods.json")["workloads"]
    found = [row for row in rows if row["cgroup"].endswith(f"/{CONTAINER}")]
    assert len(found) == 1
    (row,) = found
    assert row["limit_bytes"] == 100000000 // 4096 * 4096
    assert 40 << 20 < row["anon_bytes"] <= row["charge_bytes"] < 80 << 20
    assert row["qos"].lower() == "burstable"


def test_bundle_explained_here_gives_what_it_gave_there(node: Outcome, tmp_path: Path) -> None:
    bundle = tmp_path / "node.bundle"
    bundle.write_bytes(node.files["node.bundle"])
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "why", "--json", "--from", str(bundle)],
        env=ENVIRONMENT, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    there, here = document(node, "from.json"), json.loads(done.stdout)
    assert here["findings"] == there["findings"]
    assert here["host"] == there["host"]
    assert here["taken_at"] == there["taken_at"]
    live = {f["id"] for f in document(node, "why.json")["findings"]}
    assert {f["id"] for f in here["findings"]} == live
