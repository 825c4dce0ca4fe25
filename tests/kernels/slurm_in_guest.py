"""The distribution's Slurm in a guest: munged, slurmctld and one slurmd, without systemd."""

import re
import secrets
import shutil
import subprocess
from pathlib import Path

from tests.kernels.built_modules import hold_tracepoints

PLUGINS = Path("/usr/lib/x86_64-linux-gnu/slurm-wlm")
PROGRAMS = (
    "/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/slurmstepd",
    "/usr/bin/sbatch", "/usr/bin/scontrol", "/usr/bin/squeue", "/usr/bin/scancel", "/usr/bin/sinfo",
)  # fmt: skip
# What the plugins of this configuration need; others have libraries of half a gigabyte.
USED = re.compile(
    r"libslurmfull|auth_munge|cred_munge|cgroup_v[12]|proctrack_cgroup|task_(cgroup|none)|hash_k12"
    r"|jobacct_gather_(cgroup|none)|acct_gather_\w+_none|select_cons_tres|switch_none|mpi_none"
    r"|accounting_storage_none|jobcomp_none|topology_none|route_default|priority_basic"
    r"|preempt_none|sched_backfill|core_spec_none|job_container_none|mcs_none|power_none"
    r"|prep_script|site_factor_none|ext_sensors_none|gpu_generic|launch_slurm|cli_filter_none"
    r"|serializer_json|node_features"
)
USERS = "games:x:5:60:games:/tmp:/bin/sh\nalice:x:1000:1000::/tmp:/bin/sh\n"
GROUPS = "root:x:0:\ngames:x:60:\nalice:x:1000:\nnogroup:x:65534:\n"
CONFIGURATION = """
ClusterName=guest
SlurmctldHost=node-61(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=/run/munge/socket
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=0
PrologFlags=Contain
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SlurmdTimeout=300
MessageTimeout=60
UnkillableStepTimeout=120
KillWait=5
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
NodeName=n1 NodeHostname=node-61 NodeAddr=127.0.0.1 CPUs=8 RealMemory=1200
PartitionName=main Nodes=ALL Default=YES MaxTime=20 State=UP
"""
CGROUPS = "CgroupPlugin=cgroup/{}\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n{}"

START = r"""
ip addr add 10.9.9.9/32 dev lo
if [ -d /sys/fs/cgroup/cpu,cpuacct ]; then # the names that systemd adds, and Slurm looks for
    ln -s cpu,cpuacct /sys/fs/cgroup/cpu; ln -s cpu,cpuacct /sys/fs/cgroup/cpuacct
fi
mkdir -p /run/munge /run/slurm/state /run/slurm/spool /run/slurm/out /etc/slurm /var/spool
chmod 1777 /run/slurm/out /tmp; chmod 755 /run/munge /run/slurm
cp slurm.conf cgroup.conf /etc/slurm/; cp munge.key /run/munge/key; chmod 400 /run/munge/key
munged --foreground --key-file=/run/munge/key --socket=/run/munge/socket \
    --pid-file=/run/munge/pid --log-file=/run/munge/log --seed-file=/run/munge/seed &
until [ -e /run/munge/socket ]; do sleep 0.5; done
slurmctld -D -c > $OUT/slurmctld.log 2>&1 &
until scontrol ping 2>&1 | grep -q "is UP"; do echo "== waits for slurmctld"; sleep 2; done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then # what systemd would have made
    mkdir -p /sys/fs/cgroup/system.slice/slurmd.service
    for folder in /sys/fs/cgroup /sys/fs/cgroup/system.slice; do
        echo "+cpuset +cpu +memory +pids" > $folder/cgroup.subtree_control
    done
    home=/sys/fs/cgroup/system.slice/slurmd.service
else
    mkdir /sys/fs/cgroup/memory/slurmd
    home=/sys/fs/cgroup/memory/slurmd
fi
# Jobs get slurmd's oom_score_adj, and not that of the script.
sh -c "echo \$\$ > $home/cgroup.procs; echo 0 > /proc/\$\$/oom_score_adj; exec slurmd -D -N n1" \
    > $OUT/slurmd.log 2>&1 &
echo $! > /run/slurmd
for i in $(seq 120); do
    [ "$(sinfo --noheader --format=%t)" = idle ] && break
    echo "== waits for slurmd: $(sinfo --noheader --format=%t) $(tail -n 3 $OUT/slurmd.log)"
    sleep 2
done
echo "== slurm is there"
"""
"""Shell lines.  The address: with none but 127.0.0.1 getaddrinfo() of AI_ADDRCONFIG, as Slurm asks
it, knows no address at all.
"""


def missing() -> str:
    """What has to be installed for it; empty: it is."""
    if all(Path(program).exists() for program in PROGRAMS) and PLUGINS.is_dir():
        return ""
    return "no Slurm here: apt-get install munge slurmctld slurmd slurm-client"


def add_to_image(root: Path) -> None:
    """Programs, plugins, their libraries and users."""
    hold_tracepoints(root)
    files = [Path(program) for program in PROGRAMS]
    files += [file for file in PLUGINS.glob("*.so") if USED.match(file.name)]
    for file in files:
        _copy(file, root)
    listed = subprocess.run(
        ["ldd", *map(str, files)], check=True, capture_output=True, text=True
    ).stdout  # fmt: skip
    for library in set(re.findall(r"(/\S+\.so\S*) \(0x", listed)):
        _copy(Path(library), root)
    with (root / "etc/passwd").open("a") as passwd:
        passwd.write(USERS)
    (root / "etc/group").write_text(GROUPS)
    (root / "etc/hosts").write_text("127.0.0.1 localhost node-61\n")


def _copy(file: Path, root: Path) -> None:
    target = root / str(file)[1:]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)  # what a link leads to


def job_files(version: int) -> dict[str, bytes]:
    """What ``START`` takes from the job's folder; ``version``: of cgroups."""
    more = "IgnoreSystemd=yes\n" if version == 2 else ""
    return {
        "slurm.conf": CONFIGURATION.encode(),
        "cgroup.conf": CGROUPS.format(f"v{version}", more).encode(),
        "munge.key": secrets.token_bytes(128),
    }
