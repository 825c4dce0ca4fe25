"""Real OOM kills on Debian's 6.1: of a cgroup v2, of a whole group, and of the whole machine."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
SCHEMA = json.loads((files("seawall.views") / "schemas/oom-explain.json").read_text())
MEMORY_MIB = 512

# One loop that writes all: the less code it needs, the less it waits for its own pages
# when the cache is gone.
JOB = r"""
hog() {
    sh -c "echo \$\$ > $1/cgroup.procs; echo $2 > /proc/\$\$/oom_score_adj
           exec python3.11 -c 'x = [bytes([1]) * (1 << 28) for _ in range(9)]'"
}
for name in alone together; do
    mkdir /sys/fs/cgroup/$name && echo 64M > /sys/fs/cgroup/$name/memory.max
done
echo 1 > /sys/fs/cgroup/together/memory.oom.group
hog /sys/fs/cgroup/alone 0
(echo 0 > /sys/fs/cgroup/together/cgroup.procs; exec sleep 600) &
sleep 1
hog /sys/fs/cgroup/together 0
hog /sys/fs/cgroup 1000
sleep 1
seawall oom explain --live --json > $OUT/live.json 2> $OUT/live.err; echo $? > $OUT/status
dmesg > $OUT/dmesg
grep MemTotal /proc/meminfo > $OUT/memtotal
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_job(image, JOB, tmp_path_factory.mktemp("job"), memory_mib=MEMORY_MIB)


@pytest.fixture(scope="module")
def reports(node: Outcome) -> list[dict[str, Any]]:
    assert node.text("status").strip() == "0", node.text("live.err")
    page = json.loads(node.text("live.json"))
    jsonschema.validate(page, SCHEMA)
    assert page["log"] == "/dev/kmsg"
    found = page["reports"]
    assert [one["kind"] for one in found] == ["memcg", "memcg", "global"], node.text("dmesg")
    assert isinstance(found, list)
    return found


def ids(report: dict[str, Any]) -> set[str]:
    return {anomaly["id"] for anomaly in report["anomalies"]}


def test_every_kill_is_of_the_hog_and_by_its_points(reports: list[dict[str, Any]]) -> None:
    for one in reports:
        most = max(one["tasks"], key=lambda task: task.get("points") or -(1 << 62))
        assert most["pid"] == one["chosen_pid"]
        assert most["comm"] == "python3.11"
        assert one["formula"] == "5.9"
        assert not ids(one) & {"choice-differs", "cut-report", "unaccounted-memory", "not-short"}


def test_kill_of_a_cgroup(reports: list[dict[str, Any]]) -> None:
    one = reports[0]
    assert (one["memcg"], one["limit_bytes"], one["total_pages"]) == ("/alone", 64 << 20, 16_384)
    assert [task["comm"] for task in one["tasks"]] == ["python3.11"]


def test_kill_of_a_whole_group(reports: list[dict[str, Any]]) -> None:
    one = reports[1]
    assert sorted(kill["comm"] for kill in one["killed"]) == ["python3.11", "sleep"]
    assert "memory.oom.group is set on /together" in " ".join(one["explanation"])


def test_kill_of_the_machine_and_its_residual(reports: list[dict[str, Any]], node: Outcome) -> None:
    """What the report does not print (percpu, vmalloc) is little on a small machine."""
    one = reports[2]
    total = int(node.text("memtotal").split()[1]) * 1024
    assert abs(one["total_pages"] * 4096 - total) < 0.01 * total
    assert -one["residual_error_bytes"] < one["residual_bytes"] < 0.08 * total
    assert one["limit_bytes"] is None
