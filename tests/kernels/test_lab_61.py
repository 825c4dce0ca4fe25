"""``seawall lab`` on Debian's 6.1 under cgroup v2, and where memory is not handed on."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
LIMIT = 64 * MIB
SCHEMA = json.loads((files("seawall.views.schemas") / "lab.json").read_text())

JOB = r"""
lab_pid() { ls /sys/fs/cgroup | grep seawall-lab- | cut -d- -f3; }
lab() { name=$1; shift; seawall lab "$@" --json > $OUT/$name.json 2> $OUT/$name.err
        echo $? > $OUT/$name.status
        find /sys/fs/cgroup -name 'seawall-lab-*' > $OUT/$name.left
        ls /run/seawall/lab >> $OUT/$name.left; }
lab hog hog --size 128MiB --limit 64MiB --for 30
lab swarm swarm --processes 60 --each 4MiB --limit 64MiB --uid 65534 --for 8
lab thrash thrash --programs 12 --code 4MiB --limit 32MiB --iops 200 --for 12
lab off hog --limit 16MiB --killer-off
lab rings rings --size 96MiB --limit 32MiB --rate 48MiB --for 5
lab egl egl --size 16MiB
lab cuda cuda-host --size 16MiB

echo 64M > /sys/block/zram0/disksize; mkswap /dev/zram0; swapon /dev/zram0
grep SwapFree /proc/meminfo > $OUT/swapfree
seawall lab hog --size 256MiB --step 90MiB --limit 64MiB --swap --for 20 --json > $OUT/swap.json &
until ls /sys/fs/cgroup/seawall-lab-*/memory.swap.max; do sleep 0.3; done
cat /sys/fs/cgroup/seawall-lab-*/memory.swap.max > $OUT/swap.max
wait; swapoff /dev/zram0

seawall lab fill --size 128MiB --limit 64MiB --for 60 --json > $OUT/fill.json &
until [ "$(cat /sys/fs/cgroup/seawall-lab-*/memory.current)" -gt 64000000 ]; do sleep 0.5; done
sleep 2; seawall why --json > $OUT/why.json; seawall pods --json > $OUT/pods.json
kill -INT $(lab_pid); wait

cd /sys/fs/cgroup; mkdir plain plain/inner deleg
echo -memory > plain/cgroup.subtree_control
lab plain hog --limit 16MiB --parent /plain
lab inner hog --limit 16MiB --parent /plain/inner
echo "+memory +pids" > cgroup.subtree_control
mkdir high; echo +memory > high/cgroup.subtree_control; echo 40M > high/memory.high
lab high hog --limit 32MiB --parent /high
echo +pids > deleg/cgroup.subtree_control
cat > /run/deleg.sh <<'END'
echo $$ > /sys/fs/cgroup/deleg/cgroup.procs
exec seawall lab hog --size ${1:-64MiB} --limit 32MiB --for 20 $2 --json
END
sh /run/deleg.sh > /dev/null 2> $OUT/threads.err
cat deleg/cgroup.subtree_control > $OUT/threads.left; echo -pids > deleg/cgroup.subtree_control
sh /run/deleg.sh 8MiB --dry-run > $OUT/delegplan.json
sh /run/deleg.sh > $OUT/deleg.json 2> $OUT/deleg.err; echo $? > $OUT/deleg.status
find deleg > $OUT/deleg.left
echo "handed on: $(cat deleg/cgroup.subtree_control)" >> $OUT/deleg.left
sh /run/deleg.sh 8MiB > /dev/null 2>> $OUT/dead.start & dead=$!; tries=0
until ls deleg/*-outside-*/cgroup.procs > /dev/null 2>&1 || [ $((tries += 1)) -gt 300 ]
do sleep 0.5; done
sleep 4; find deleg -name 'seawall-lab-*' > $OUT/dead.before
cat deleg/cgroup.subtree_control >> $OUT/dead.before
kill -9 $dead; sleep 1; lab dead clean; cat deleg/cgroup.subtree_control >> $OUT/dead.left

seawall lab hog --size 8MiB --limit 16MiB --for 60 --parent /plain/.. > /dev/null &
sleep 4; kill -9 $(lab_pid); sleep 1
cat /sys/fs/cgroup/seawall-lab-*/cgroup.procs > $OUT/orphans
lab clean clean
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("lab")
    return run_job(image, JOB, folder, memory_mib=1024, cgroup="v2", timeout_seconds=300)


def page_of(node: Outcome, name: str) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(node.text(f"{name}.json"))
    jsonschema.validate(page, SCHEMA)
    if page["what"] == "run":
        assert page["cgroup_version"] == 2
        assert page["removed"], page["left"]
        if not page["peak"]["sampled"]:
            assert page["peak"]["bytes"] <= page["plan"]["limit_bytes"]
    return page


@pytest.mark.parametrize("name", ["hog", "swarm", "thrash", "rings"])
def test_runs_leave_nothing(node: Outcome, name: str) -> None:
    assert node.text(f"{name}.status").strip() == "0", node.text(f"{name}.err")
    assert node.text(f"{name}.left").strip() == ""


def test_hog_is_killed(node: Outcome) -> None:
    page = page_of(node, "hog")
    assert page["processes"]["killed"] == 1
    assert page["last"]["oom_kills"] == 1
    assert page["limit_reached"]
    assert page["ended"] == "nobody_left"


def test_swarm_is_killed_one_by_one(node: Outcome) -> None:
    page = page_of(node, "swarm")
    fates = page["processes"]
    assert fates["started"] == 60
    assert fates["killed"] >= 5
    assert fates["killed"] + fates["survived"] == 60


def test_thrash_waits_for_the_held_disk(node: Outcome) -> None:
    page = page_of(node, "thrash")
    assert page["disk"] == {"device": "254:0", "iops": 200, "why_not": ""}
    assert page["processes"]["killed"] == 0
    assert page["limit_reached"]
    first = next(m for m in page["moments"] if m["seconds"] > 5)
    last = page["last"]
    rate = (last["major_faults"] - first["major_faults"]) / (last["seconds"] - first["seconds"])
    assert 50 < rate < 300


def test_rings_are_in_no_charge_of_v2_either(node: Outcome) -> None:
    page = page_of(node, "rings")
    assert page["done_bytes"] == 96 * MIB
    assert page["processes"]["survived"] == 1
    assert page["last"]["oom_kills"] == 0
    assert max(m["usage_bytes"] for m in page["moments"]) < 16 * MIB
    available = page["available"]
    assert available["before_bytes"] - available["least_bytes"] > 80 * MIB
    assert available["before_bytes"] - available["after_bytes"] < 32 * MIB


@pytest.mark.parametrize(
    ("name", "library"), [("egl", "libEGL.so.1"), ("cuda", "libcuda.so.1")]
)  # fmt: skip
def test_a_driver_that_is_not_there_is_named(node: Outcome, name: str, library: str) -> None:
    assert node.text(f"{name}.status").strip() == "2"
    assert f"{library} is missing" in node.text(f"{name}.err")
    assert node.text(f"{name}.left").strip() == ""


def test_fill_is_cache_and_why_says_so(node: Outcome) -> None:
    page = page_of(node, "fill")
    assert page["ended"] == "interrupted"
    assert page["last"]["oom_kills"] == 0
    assert page["last"]["file_bytes"] > 0.8 * LIMIT
    findings = json.loads(node.text("why.json"))["findings"]
    firing = [f for f in findings if f["verdict"] == "fires"]
    about = [f for f in firing if f["workload"] == page["cgroup"]]
    assert [f["id"] for f in about] == ["SW201"], firing
    assert not [f for f in firing if f["severity"] == "critical"]
    rows = json.loads(node.text("pods.json"))["workloads"]
    (row,) = [row for row in rows if row["cgroup"] == page["cgroup"]]
    assert row["limit_bytes"] == LIMIT


def test_the_killer_cannot_be_switched_off_on_v2(node: Outcome) -> None:
    assert node.text("off.status").strip() == "2"
    assert "only v1 can" in node.text("off.err")


def test_where_memory_is_not_handed_on_it_says_what_to_write(node: Outcome) -> None:
    assert node.text("plain.status").strip() == "2"
    said = node.text("plain.err")
    assert "echo +memory > /sys/fs/cgroup/plain/cgroup.subtree_control" in said
    assert "--parent / would do" in said
    assert node.text("inner.status").strip() == "2"
    assert "no memory controller there" in node.text("inner.err")


def test_a_delegated_cgroup_is_given_back_as_it_was(node: Outcome) -> None:
    assert node.text("deleg.status").strip() == "0", node.text("deleg.err")
    page = page_of(node, "deleg")
    assert page["cgroup"].startswith("/deleg/seawall-lab-")
    assert page["processes"]["killed"] == 1
    left = node.text("deleg.left")
    assert "seawall-lab" not in left
    assert left.splitlines()[-1].strip() == "handed on:"
    steps = " ".join(page_of(node, "delegplan")["steps"])
    assert "move this program into it" in steps
    assert "/sys/fs/cgroup/deleg/cgroup.subtree_control" in steps


def test_what_the_owner_hands_on_is_not_touched(node: Outcome) -> None:
    assert "does not hand memory on" in node.text("threads.err")
    assert node.text("threads.left").split() == ["pids"]


def test_a_clean_takes_back_what_a_dead_run_handed_on(node: Outcome) -> None:
    *cgroups, handed_on = node.text("dead.before").splitlines()
    assert {"memory", "pids"} <= set(handed_on.split())
    _, outside = sorted(cgroups)
    assert set(outside.partition("-outside-")[2].split("-")) == set(handed_on.split())
    assert node.text("dead.status").strip() == "0", node.text("dead.err")
    rows = page_of(node, "dead")["leftovers"]
    assert len([row for row in rows if row["removed"] and "/deleg/" in row["path"]]) == 2
    assert node.text("dead.left").split() == [], "nothing, and nothing is handed on"


def test_swap_is_bounded(node: Outcome) -> None:
    page = page_of(node, "swap")
    free = int(node.text("swapfree").split()[1]) << 10
    bound = page["plan"]["swap_bytes"]
    assert bound == free // 2 // 4096 * 4096
    assert 24 * MIB < bound < 32 * MIB
    assert int(node.text("swap.max")) == bound
    assert page["processes"]["killed"] == 1, "64 MiB and the swap are less than 256 MiB"
    assert page["last"]["oom_kills"] == 1


def test_memory_high_above_counts_as_a_limit(node: Outcome) -> None:
    assert node.text("high.status").strip() == "2"
    said = node.text("high.err")
    assert "more than 20.0 MiB, half of what the memory limit of /high leaves (40.0 MiB)" in said
    assert "--limit 19MiB at most" in said


def test_its_own_sigkill_and_clean(node: Outcome) -> None:
    assert node.text("orphans").strip() == "", "a process outlived the lab"
    rows = page_of(node, "clean")["leftovers"]
    assert rows
    assert all(row["removed"] for row in rows)
    assert node.text("clean.left").strip() == ""
