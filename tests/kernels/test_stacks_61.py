"""`seawall stacks --sysrq` on Debian's 6.1, while the node thrashes: where it is stuck."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
DISK_IOPS = 2000
ROOM_MIB = 40
WALKERS = 16
OF_A_THRASH = {"page_fault_disk", "file_read", "reclaim", "reclaim_cgroup", "disk"}

JOB = f"""
cat /proc/sys/kernel/sysrq > $OUT/sysrq
echo 0 > /proc/sys/kernel/sysrq
seawall stacks --for 1.5 --every 0.5 --sysrq --json > $OUT/quiet.json
dd if=/dev/urandom of=/opt/text bs=1M count=96 2> /dev/null; sync
python3.11 thrash.py hold {ROOM_MIB} > /run/held &
for n in 1 2 3 4 5 6 7 8 9 10; do grep -q holding /run/held && break; sleep 1; done
python3.11 thrash.py walk /opt/text {WALKERS} &
sleep 3
echo 3 > /proc/sys/vm/drop_caches
sleep 2
echo "=== stacks begins"
seawall stacks --for 8 --sysrq --json > $OUT/thrash.json
echo "=== stacks ended $?"
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("job")
    program = Path(__file__).with_name("guest") / "thrash.py"
    job = {"thrash.py": program.read_bytes()}
    return run_job(image, JOB, folder, files=job, disk_iops=DISK_IOPS)


def document(node: Outcome, name: str) -> dict[str, Any]:
    page = json.loads(node.text(name))
    schema = json.loads((files("seawall.views") / "schemas/stacks.json").read_text())
    jsonschema.validate(page, schema)
    assert isinstance(page, dict)
    return page


def test_the_majority_waits_for_file_data_or_frees_memory(node: Outcome) -> None:
    page = document(node, "thrash.json")
    shares = {group["kind"]: group["share"] for group in page["groups"]}
    seconds = node.at("=== stacks ended 0") - node.at("=== stacks begins")
    print(f"{seconds:.0f} s, {page['samples']} samples", shares)  # noqa: T201 - shown by -rP
    assert page["samples"] >= 3
    assert sum(shares.get(kind, 0) for kind in OF_A_THRASH) > 0.5, shares
    (fault,) = [group for group in page["groups"] if group["kind"] == "page_fault_disk"]
    assert any(frame in fault["frames"] for frame in ("filemap_fault", "do_fault", "__do_fault"))
    assert len({task["pid"] for task in fault["tasks"]}) >= WALKERS / 2
    assert "unknown" not in shares


def test_sysrq_tells_where_the_cpus_are(node: Outcome) -> None:
    page = document(node, "thrash.json")
    assert node.text("sysrq").strip() != "0"
    traces = page["sysrq"]
    assert {trace["cpu"] for trace in traces} == {0, 1}
    # One CPU is the one that asked; it shows who wrote, and nobody else is `own`.
    own = [trace for trace in traces if trace["state"] == "own"]
    assert len(own) == len({trace["question"] for trace in traces})
    assert all("write_sysrq_trigger" in trace["frames"] for trace in own)
    others = [trace for trace in traces if trace["state"] != "own"]
    assert others
    assert all(trace["state"] in ("running", "idle", "user_mode") for trace in others)
    assert all(trace["frames"] and trace["kind"] for trace in others if trace["state"] == "running")
    assert not any("on a CPU were" in row["what"] for row in page["could_not_see"])


def test_a_quiet_node_has_idle_cpus_and_asks_whatever_the_keyboard_may(node: Outcome) -> None:
    """kernel.sysrq was 0: that is the keyboard's mask, not root's."""
    page = document(node, "quiet.json")
    assert page["sysrq"]
    assert {trace["state"] for trace in page["sysrq"]} >= {"own"}
    assert "idle" in {trace["state"] for trace in page["sysrq"]}
    kinds = {group["kind"] for group in page["groups"]}
    assert not kinds & {"reclaim", "reclaim_cgroup", "compaction", "oom", "driver"}
