# SPDX-License-Identifier: Apache-2.0
"""Builds bundle.tar.gz beside it: 1,280 small processes in a full container, twice.

The report gives no files of this moment, so all of it is made by hand from its words: the
limits, the number and size of the processes, the container's id, the first rows of its
kernel's own table of processes, the kernel, and "system CPU 100 %".

    PYTHONPATH=src python docs/incidents/container-hangs/build.py
"""

import os
from typing import Final

from seawall.host.bundle_writer import write_bundle
from seawall.host.host import JSON
from seawall.host.recording import Round

OUT: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle.tar.gz")

CONTAINER: Final = "d96a8ea034f0610b31f1f669b7083d73f7caf7be92dae187ceb86416d05e1955"
MOUNT: Final = "/cgroup/memory"
HOGS: Final = range(20_001, 20_001 + 1280)
LIMIT: Final = 8 << 30
LIMIT_WITH_SWAP: Final = 10 << 30
# 8 MiB each do not fit: 6.4 MiB are resident, the rest is in the 2 GiB of swap.
HOG_RSS_PAGES: Final = 1638
HOG_SWAP_PAGES: Final = 410
# Of the smallest program: code, heap, libraries and stack lie far apart.
PAGE_TABLES: Final = 6
PAGE: Final = 4096
CPUS: Final = 24
TICKS: Final = 100
WINDOW_SECONDS: Final = 3

# pid, name, total_vm and rss in pages: rows of the published table that are not the load.
PUBLISHED: Final = (
    (15947, "init", 29022, 26),
    (19813, "agent", 42155, 101),
    (19818, "agentPlugInD", 2117, 28),
)

MANIFEST: Final[dict[str, JSON]] = {
    "story": "A container hangs instead of being OOM-killed: 1,280 processes of 8 MiB",
    "notes": [
        (
            "Made by hand from a published report, which gives numbers and no files: container of "
            "8 GiB and 2 GiB of swap, 1,280 processes of 8 MiB, CentOS 6.5, system CPU at 100 %. "
            "docs/incidents/container-hangs/build.py builds it."
        ),
        (
            "From the report's log of the kernel: 'Kill process 15947 (init) score 1 or sacrifice "
            "child', 'Killed process 16944, UID 0, (mingetty) total-vm:4064kB, anon-rss:4kB'."
        ),
    ],
    "provenance": {
        "/proc/15947/stat": "converted",
        "/proc/19813/stat": "converted",
        "/proc/19818/stat": "converted",
        "**": "constructed",
    },
}


def moment(passed_seconds: int) -> Round:
    """The machine, so many seconds after the first look."""
    files = {**host_files(passed_seconds), **cgroup_files(passed_seconds)}
    files |= process_files(passed_seconds) | badness_files()
    round_ = Round(files={path: text.encode() for path, text in files.items()})
    round_.names |= folders(list(files))
    round_.probes |= {
        ("now", ""): {"monotonic_seconds": 864_000.0 + passed_seconds},
        ("page_size", ""): PAGE,
        ("clock_ticks", ""): TICKS,
        ("machine", ""): "x86_64",
        ("reader", ""): {"uid": 0, "capabilities": ["DAC_READ_SEARCH", "SYS_PTRACE"]},
    }
    return round_


def host_files(passed_seconds: int) -> dict[str, str]:
    """A node with plenty of memory: only the container is short."""
    meminfo = {
        "MemTotal": 65_847_004, "MemFree": 43_180_552, "Buffers": 310_448, "Cached": 11_020_336,
        "SwapCached": 20_112, "Active": 14_920_180, "Inactive": 6_540_224,
        "Active(anon)": 8_400_116, "Inactive(anon)": 1_730_240, "Active(file)": 6_520_064,
        "Inactive(file)": 4_809_984, "Unevictable": 0, "Mlocked": 0, "SwapTotal": 8_388_604,
        "SwapFree": 6_291_452, "Dirty": 212, "Writeback": 0, "AnonPages": 10_129_620,
        "Mapped": 88_012, "Shmem": 736, "Slab": 1_020_224, "SReclaimable": 820_112,
        "SUnreclaim": 200_112, "KernelStack": 21_600, "PageTables": 96_220, "NFS_Unstable": 0,
        "Bounce": 0, "WritebackTmp": 0, "CommitLimit": 41_312_104, "Committed_AS": 16_220_100,
        "VmallocTotal": 34_359_738_367, "VmallocUsed": 410_220, "VmallocChunk": 34_325_100_220,
        "HardwareCorrupted": 0, "AnonHugePages": 0,
    }  # fmt: skip
    mounts = (
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 -",
        "23 22 0:3 / /proc rw,relatime - proc proc rw",
        f"26 22 0:20 / {MOUNT} rw,relatime - cgroup cgroup rw,memory",
    )
    return {
        "/proc/meminfo": "".join(f"{k + ':':<16}{v:>8} kB\n" for k, v in meminfo.items()),
        "/proc/vmstat": "pgscan_kswapd_normal 0\npgscan_direct_normal 0\nallocstall 0\n",
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
        "/dev/sda2                               partition\t8388604\t2097152\t-1\n",
        "/proc/uptime": f"{864_000 + passed_seconds}.00 {14_000_000}.00\n",
        "/proc/sys/kernel/osrelease": "2.6.32-431.el6.x86_64\n",
        "/proc/sys/kernel/random/boot_id": "5eed0003-0000-4000-8000-000000000003\n",
        "/sys/devices/system/cpu/online": f"0-{CPUS - 1}\n",
        "/sys/devices/system/cpu/possible": f"0-{CPUS - 1}\n",
        "/proc/1/mountinfo": "\n".join(mounts) + "\n",
    }


def cgroup_files(passed_seconds: int) -> dict[str, str]:
    """The container at both of its limits, and each second 41,000 charges refused."""
    folder = f"{MOUNT}/docker/{CONTAINER}"
    swap = LIMIT_WITH_SWAP - LIMIT
    counted = {
        "cache": 0, "rss": LIMIT, "mapped_file": 0, "swap": swap, "inactive_anon": LIMIT // 2,
        "active_anon": LIMIT - LIMIT // 2, "inactive_file": 0, "active_file": 0, "unevictable": 0,
    }  # fmt: skip
    stat = [f"{key} {value}" for key, value in counted.items()]
    stat += [f"hierarchical_memory_limit {LIMIT}", f"hierarchical_memsw_limit {LIMIT_WITH_SWAP}"]
    stat += [f"total_{key} {value}" for key, value in counted.items()]
    members = [*(pid for pid, *_ in PUBLISHED), 20_000, *HOGS]
    return {
        f"{MOUNT}/cgroup.procs": "1\n",
        f"{MOUNT}/docker/cgroup.procs": "",
        f"{folder}/cgroup.procs": "".join(f"{pid}\n" for pid in sorted(members)),
        f"{folder}/memory.limit_in_bytes": f"{LIMIT}\n",
        f"{folder}/memory.usage_in_bytes": f"{LIMIT}\n",
        f"{folder}/memory.max_usage_in_bytes": f"{LIMIT}\n",
        f"{folder}/memory.memsw.limit_in_bytes": f"{LIMIT_WITH_SWAP}\n",
        f"{folder}/memory.memsw.usage_in_bytes": f"{LIMIT_WITH_SWAP}\n",
        f"{folder}/memory.failcnt": f"{18_220_114 + 41_000 * passed_seconds}\n",
        f"{folder}/memory.oom_control": "oom_kill_disable 0\nunder_oom 1\n",
        f"{folder}/memory.stat": "\n".join(stat) + "\n",
    }


def process_files(passed_seconds: int) -> dict[str, str]:
    """/proc/PID/stat: every processor is spent in the kernel by processes that wait for memory."""
    rows = {
        1: stat_line(1, "init", "S", 0, 4872, 380, 120),
        2: stat_line(2, "kthreadd", "S", 0, 0, 0, 40, flags=0x208040),
        20_000: stat_line(20_000, "hog", "S", 15947, 982, 60, 40),
    }
    for pid, name, total_vm, rss in PUBLISHED:
        rows[pid] = stat_line(pid, name, "S", 1, total_vm, rss, 30)
    spent = passed_seconds * CPUS * TICKS
    for number, pid in enumerate(HOGS):
        # The processors' time over the window, shared out evenly: 5 or 6 ticks each.
        share = (number + 1) * spent // len(HOGS) - number * spent // len(HOGS)
        state = "R" if number % 3 == 0 else "D"
        rows[pid] = stat_line(pid, "hog", state, 20_000, 3031, HOG_RSS_PAGES, 200 + share)
    return {f"/proc/{pid}/stat": row for pid, row in rows.items()}


def badness_files() -> dict[str, str]:
    """What the kernel counts badness from, and the score of 1 that comes out for all but init.

    2.6.32 tells no parts of VmRSS; RHEL 6 tells VmSwap.
    """
    rows = {1: ("init", 380, 0, 0), 20_000: ("hog", 60, 0, 30000)}
    rows |= {pid: (name, rss, 0, 0) for pid, name, _, rss in PUBLISHED}
    rows |= dict.fromkeys(HOGS, ("hog", HOG_RSS_PAGES, HOG_SWAP_PAGES, 30000))
    files: dict[str, str] = {}
    for pid, (name, rss, swap, uid) in rows.items():
        files[f"/proc/{pid}/status"] = (
            f"Name:\t{name}\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{pid}\n"
            f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nVmRSS:\t{rss * 4:8} kB\n"
            f"VmPTE:\t{PAGE_TABLES * 4:8} kB\nVmSwap:\t{swap * 4:8} kB\nThreads:\t1\n"
        )
        files[f"/proc/{pid}/oom_score_adj"] = "0\n"
        files[f"/proc/{pid}/oom_score"] = f"{0 if pid == 1 else 1}\n"
    return files


def stat_line(  # noqa: PLR0913 - a row of the kernel's
    pid: int,
    name: str,
    state: str,
    parent: int,
    vm_pages: int,
    rss_pages: int,
    stime: int,
    flags: int = 0x400140,
) -> str:
    """44 fields, as 2.6.32 prints them."""
    fields = [
        f"{pid} ({name}) {state}", parent, pid, pid, 0, -1, flags, rss_pages, 0, 0, 0, 2, stime,
        0, 0, 20, 0, 1, 0, 80_000_000 + pid, vm_pages * PAGE, rss_pages, 2**64 - 1,
        *[0] * 12, 17, pid % CPUS, 0, 0, 0, 0, 0,
    ]  # fmt: skip
    return " ".join(map(str, fields)) + "\n"


def folders(paths: list[str]) -> dict[str, tuple[str, ...]]:
    """What listing each folder answers; those of folders end with ``/``."""
    found: dict[str, set[str]] = {}
    for path in paths:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            last = depth == len(parts) - 1
            name = parts[depth] if last else parts[depth] + "/"
            found.setdefault("/" + "/".join(parts[:depth]), set()).add(name)
    return {folder: tuple(sorted(names)) for folder, names in found.items()}


def rounds() -> list[Round]:
    """Two moments, so that rates exist."""
    return [moment(0), moment(WINDOW_SECONDS)]


if __name__ == "__main__":
    with open(OUT, "wb") as out:
        write_bundle(rounds(), MANIFEST, out)
