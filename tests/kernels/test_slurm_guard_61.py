"""A whole node of Slurm under a guard: a real job takes what its cgroup does not count.

Debian's 6.1 and Slurm 22.05; on cgroup v1 without PSI, as RHEL 8 has them: nothing tells the guard
of pressure.  One job takes packet rings until the node is short, another one of another user works
beside it, and the agent leaves records for the judge.  slurmstepd has an oom_score_adj of -1000
here, as on every real node.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernels import slurm_in_guest, vm
from tests.kernels.guard_node import packet_diag

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(1500)]
ON_V2 = pytest.mark.skipif(
    not os.environ.get("SEAWALL_SCENARIOS"),
    reason="the same on cgroup v2, two minutes: SEAWALL_SCENARIOS=1",
)
MEMORY_MIB = 1536
LOADS = Path(__file__).parents[1] / "end_to_end/kernel_loads.py"
GUARD = """mode = "enforce"
scope = ["{scope}"]
blackbox = ""
slurm_conf = "/etc/slurm/slurm.conf"
"""

JOB = (
    r"""
echo -1000 > /proc/$$/oom_score_adj
mount -t tracefs tracefs /sys/kernel/tracing; mount -t debugfs debugfs /sys/kernel/debug
insmod $JOB/af_packet_diag.ko
ls -d /proc/pressure > $OUT/pressure 2>/dev/null
"""
    + slurm_in_guest.START
    + r"""
cp $JOB/guard.toml /run/guard.toml; chmod 600 /run/guard.toml
home=/sys/fs/cgroup/memory/guard
[ -d /sys/fs/cgroup/memory ] || home=/sys/fs/cgroup/guard
mkdir $home
sh -c "echo \$\$ > $home/cgroup.procs
    exec seawall guard run --config /run/guard.toml" > $OUT/guard.log 2>&1 &
until grep -q "can kill: proved" /run/seawall/status; do
    echo "== waits for the guard: $(tail -n 1 $OUT/guard.log)"; sleep 2
done
echo "== the guard is there"
mkdir /run/slurm/evidence; printf '[slurm]\nevidence = "/run/slurm/evidence"\n' > /run/slurm.toml
chmod 644 /run/slurm.toml
seawall agent --slurm --node-name n1 --config /run/slurm.toml > $OUT/agent.log 2>&1 &
while sleep 1; do cat /run/slurm/evidence/n1.json && echo; done > $OUT/records 2>/dev/null &
chmod 755 $JOB $JOB/kernel_loads.py
beside='i=0; while :; do i=$((i+1)); echo tick $i; sleep 1; done'
sbatch --parsable --uid=alice --mem=100 --output=/run/slurm/out/beside --wrap="$beside"
take="unshare -U -r -n python3.11 -S -E $JOB/kernel_loads.py rings 4294967296 20 now"
hog=$(sbatch --parsable --uid=games --mem=200 --output=/run/slurm/out/hog \
    --wrap="echo begins; sleep 15; $take")
echo "== jobs are there"
for i in $(seq 240); do
    echo "== waits $i"; sleep 2
    scontrol show job $hog | grep -q -E "JobState=(RUNNING|PENDING|CONFIGURING)" || break
done
sleep 20
scontrol -o show job > $OUT/jobs
cp /run/slurm/out/hog $OUT/hog; cp /run/slurm/out/beside $OUT/beside; sleep 5
wc -l < /run/slurm/out/beside > $OUT/later
kill -0 $(cat /run/slurmd) && echo lives > $OUT/slurmd
cp /run/seawall/decisions.jsonl $OUT/; cp /run/seawall/status $OUT/
dmesg > $OUT/dmesg
echo "== done"
"""
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[vm.Image]:
    if why := vm.missing() or slurm_in_guest.missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("slurm-node")
    yield vm.build_image(folder, slurm_in_guest.add_to_image)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("version", "scope", "has_psi"),
    [(1, "/slurm_n1", False), pytest.param(2, "/system.slice", True, marks=ON_V2)],
)
def test_the_job_goes_and_its_user_reads_why(
    image: vm.Image, tmp_path: Path, version: int, scope: str, has_psi: bool
) -> None:
    files = slurm_in_guest.job_files(version)
    files |= {
        "kernel_loads.py": LOADS.read_bytes(), "af_packet_diag.ko": packet_diag(image),
        "guard.toml": GUARD.format(scope=scope).encode(),
    }  # fmt: skip
    outcome = vm.run_job(
        image, JOB, tmp_path, files=files, memory_mib=MEMORY_MIB, cgroup=f"v{version}",
        kernel_words=f"psi={int(has_psi)}", timeout_seconds=600, silence_seconds=300,
    )  # fmt: skip
    outcome.at("== done")
    assert ("/proc/pressure" in outcome.text("pressure").splitlines()) is has_psi

    states = dict(re.findall(r"JobId=\d+ .*?UserId=(\w+)\(.*?JobState=(\w+)", outcome.text("jobs")))
    assert states == {"games": "FAILED", "alice": "RUNNING"}
    assert outcome.text("slurmd") == "lives\n"
    ticks = len(outcome.text("beside").splitlines())
    assert int(outcome.text("later")) > ticks > 10
    assert "Out of memory" not in outcome.text("dmesg")

    rows = [json.loads(line) for line in outcome.text("decisions.jsonl").splitlines()]
    orders = [order for row in rows for order in row.get("orders") or () if order["step"] == "kill"]
    assert {order["name"].split("@")[1] for order in orders} == {"games"}
    assert {row["trigger"] for row in rows if row.get("orders")} == {"node_short"}
    lines = [line for line in outcome.text("hog").splitlines() if line.startswith("seawall: ")]
    assert len(lines) >= 1
    assert "node-61: " in lines[0]
    assert "by seawall guard at 20" in lines[0]
    assert "uncounted memory" in lines[0]

    named = re.findall(r"slurm:\d+", "".join(re.findall(r'"distress":.*', outcome.text("records"))))
    assert set(named) == {"slurm:2"}, "what the agent left for the judge"
