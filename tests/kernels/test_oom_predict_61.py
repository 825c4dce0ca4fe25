"""``seawall oom predict`` on Debian's 6.1, all of whose processes the kernel rates itself."""

import json
from pathlib import Path

import pytest
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]

PLANTER = Path(__file__).parents[1] / "end_to_end" / "planted_sizes.py"
JOB = r"""
sizes="400:0 200:0 80:0 4:1000 30:700 4:350 120:-200 4:-999 64:-1000"
python3.11 $JOB/planted_sizes.py $sizes > $OUT/planted &
while ! grep -q ready $OUT/planted; do sleep 0.5; done
mkdir $AT/small && echo 134217728 > $AT/small/$LIMIT
sh -c "echo 0 > $AT/small/cgroup.procs; exec sleep 600" &
sleep 1
seawall oom predict --json > $OUT/node.json 2> $OUT/err
grep -H . /proc/[0-9]*/oom_score > $OUT/scores 2> /dev/null
seawall oom predict > $OUT/node.txt 2>> $OUT/err
seawall oom predict --json $AT/small > $OUT/small.json 2>> $OUT/err
"""


@pytest.fixture(scope="module", params=["v1", "v2"])
def node(
    request: pytest.FixtureRequest, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    at, limit = "/sys/fs/cgroup", "memory.max"
    if request.param == "v1":
        at, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
    job = (
        f"AT={at} LIMIT={limit}\ncat > $JOB/planted_sizes.py <<'END'\n{PLANTER.read_text()}\nEND\n"
    )
    folder = tmp_path_factory.mktemp("job")
    return run_job(image, job + JOB, folder, memory_mib=2048, cgroup=request.param)


def test_every_score_and_the_order_are_the_kernels(node: Outcome) -> None:
    page = json.loads(node.text("node.json"))
    agreement = page["agreement"]
    assert (agreement["differ"], agreement["order_agrees"]) == (0, True), agreement
    scores = {
        int(line.split("/")[2]): int(line.rpartition(":")[2])
        for line in node.text("scores").splitlines()
    }
    rows = [row for row in page["ranking"] if row["pid"] in scores]
    assert len(rows) >= 8
    assert {r["pid"] for r in rows if abs(r["oom_score"] - scores[r["pid"]]) > 1} == set()
    shown = [scores[row["pid"]] for row in rows]
    assert all(max(shown[at:]) <= one + 1 for at, one in enumerate(shown))
    immune = {one["pid"] for one in page["immune"]}
    assert 1 in immune
    assert all(scores[pid] == 0 for pid in immune if pid in scores)
    planted = [line.split() for line in node.text("planted").splitlines()[:-1]]
    assert {int(pid) for pid, _, adj in planted if adj == "-1000"} <= immune


def test_the_text_says_that_it_was_checked(node: Outcome) -> None:
    assert "all agree within 1; the order is the same." in " ".join(node.text("node.txt").split())
    assert node.text("err") == ""


def test_a_cgroup_with_a_limit(node: Outcome) -> None:
    page = json.loads(node.text("small.json"))
    assert (page["scope"], page["limit"]["bytes"]) == ("memcg", 134_217_728)
    assert [row["comm"] for row in page["ranking"]] == ["sleep"]
