# SPDX-License-Identifier: Apache-2.0
"""A host as files that stand still, for ``seawall top --root``."""

import os
from pathlib import Path

ID = "1f" * 32
GIB = 1 << 30


def frozen(root: Path, groups: dict[str, dict[str, str]]) -> Path:
    """A host as files: cgroup v2."""
    files = {
        "proc/meminfo": "MemTotal: 8388608 kB\nMemFree: 1048576 kB\nMemAvailable: 2097152 kB\n"
        "Buffers: 0 kB\nCached: 1048576 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        "proc/vmstat": "nr_free_pages 262144\noom_kill 3\n",
        "proc/pressure/memory": "some avg10=25.00 avg60=0.00 avg300=0.00 total=1\n"
        "full avg10=1.00 avg60=0.00 avg300=0.00 total=1\n",
        "proc/pressure/io": "some avg10=1.00 avg60=0.00 avg300=0.00 total=1\n"
        "full avg10=1.00 avg60=0.00 avg300=0.00 total=1\n",
        "proc/sys/kernel/osrelease": "6.1.0-42-cloud-amd64\n",
        "proc/sys/kernel/hostname": "node-17\n",
        "proc/sys/kernel/random/boot_id": "b0075d3d-0000-4000-8000-000000000000\n",
        "proc/uptime": "1000.00 900.00\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cgroup.procs": "1\n",
    }  # fmt: skip
    for path, values in groups.items():
        for name, text in values.items():
            files[f"sys/fs/cgroup{path}/{name}"] = text + "\n"
        files[f"sys/fs/cgroup{path}/cgroup.procs"] = ""
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    os.utime(root / "proc/uptime", (1_700_000_000, 1_700_000_000))
    return root


def group(charge: int, limit: str = "max", kills: int = 0, stall: float = 0.0) -> dict[str, str]:
    return {
        "memory.current": str(charge), "memory.max": limit,
        "memory.events": f"low 0\nhigh 0\nmax 0\noom 0\noom_kill {kills}\noom_group_kill 0",
        "memory.pressure": f"some avg10={stall:.2f} avg60=0.00 avg300=0.00 total=0\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0",
        "memory.stat": "anon 4096\nfile 8192\nactive_file 0\ninactive_file 0\nfile_dirty 0\n"
        "file_writeback 0",
    }  # fmt: skip


def frozen_node(root: Path) -> Path:
    """A container, two units, and one whose name steers terminals."""
    return frozen(
        root,
        {
            f"/kubepods.slice/cri-containerd-{ID}.scope": group(3 * GIB, str(4 * GIB), kills=2),
            "/system.slice/kubelet.service": group(300 << 20, stall=31.5),
            "/system.slice/ssh.service": group(20 << 20, str(21 << 20)),
            "/system.slice/e\x1b[31mvil\n.service": group(10 << 20),
        },
    )
