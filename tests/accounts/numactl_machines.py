# SPDX-License-Identifier: Apache-2.0
"""Machines from what ``numactl -H`` printed of them in public."""

import re

GH200 = """available: 9 nodes (0-8)
node 0 cpus: 0 1 2 3 4 5 6 7
node 0 size: 490037 MB
node 0 free: 484432 MB
node 1 cpus:
node 1 size: 97280 MB
node 1 free: 97279 MB
""" + "".join(f"node {n} cpus:\nnode {n} size: 0 MB\nnode {n} free: 0 MB\n" for n in range(2, 9))
"""A commit to the kernel's drivers/base/arch_numa.c; seven of its nodes are for MIG."""

GB200 = """available: 34 nodes (0-33)
node 0 cpus: 0 1 2 3
node 0 size: 489935 MB
node 0 free: 370318 MB
node 1 cpus: 72 73 74 75
node 1 size: 489795 MB
node 1 free: 465004 MB
""" + "".join(
    f"node {n} cpus:\nnode {n} size: {188416 * (n % 8 == 2)} MB\n"
    f"node {n} free: {188416 * (n % 8 == 2) - (n == 2)} MB\n"
    for n in range(2, 34)
)
"""NVIDIA's TensorRT-LLM, docs/source/blogs, on expert parallelism."""

CXL = """available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
node 0 size: 63678 MB
node 0 free: 59542 MB
node 1 cpus:
node 1 size: 16122 MB
node 1 free: 15627 MB
"""
"""The commit to the kernel that brought SMBA (x86/resctrl)."""

_ROW = re.compile(r"node (\d+) (cpus|size|free):([ \d]*)")


def machine(
    numactl: str, gpus: tuple[int, ...] = (), used_mib: int = 0, **more_mib: int
) -> list[tuple[str, bytes]]:
    """Files of such a machine; ``gpus``: nodes that a GPU's driver names.  Of each of these the
    driver has taken ``used_mib`` that no counter shows; all else that is not free is anonymous.
    """
    nodes: dict[int, dict[str, str]] = {}
    for number, what, value in _ROW.findall(numactl):
        nodes.setdefault(int(number), {})[what] = value.strip()
    files, sums = [], dict.fromkeys(("total", "free", "anon"), 0)
    for number, row in nodes.items():
        total, free = int(row["size"]) << 10, int(row["free"]) << 10
        anon = total - free
        free -= (used_mib << 10) * (number in gpus)
        for name, value in (("total", total), ("free", free), ("anon", anon)):
            sums[name] += value
        folder = f"/sys/devices/system/node/node{number}"
        fields = {"MemTotal": total, "MemFree": free, "AnonPages": anon, "FilePages": 0,
                  "Shmem": 0, "SwapCached": 0, "Active(file)": 0, "Inactive(file)": 0,
                  "Dirty": 0, "Writeback": 0, "Slab": 0, "SReclaimable": 0}  # fmt: skip
        text = "\n".join(f"Node {number} {name}: {value} kB" for name, value in fields.items())
        files += [
            (f"{folder}/meminfo", text.encode()),
            (f"{folder}/cpulist", row["cpus"].replace(" ", ",").encode()),
        ]
    for number in gpus:
        status = f"Node:      {number}\nStatus:    online\nAddress:   0\nSize:      0\n"
        path = f"/proc/driver/nvidia/gpus/{number:04x}:01:00.0/numa_status"
        files.append((path, status.encode()))
    lines = {"MemTotal": sums["total"], "MemFree": sums["free"], "MemAvailable": sums["free"],
             "Buffers": 0, "Cached": 0, "SwapCached": 0, "Active": sums["anon"], "Inactive": 0,
             "Unevictable": 0, "Dirty": 0, "Writeback": 0, "AnonPages": sums["anon"], "Shmem": 0,
             "KReclaimable": 0, "Slab": 0, "SReclaimable": 0, "SUnreclaim": 0, "KernelStack": 0,
             "PageTables": 0, "VmallocUsed": 0, "Percpu": 0, "Hugetlb": 0}  # fmt: skip
    lines |= {name: value << 10 for name, value in more_mib.items()}
    text = "\n".join(f"{name}: {value} kB" for name, value in lines.items())
    return [("/proc/meminfo", text.encode()), *files]


def case(*sections: tuple[str, bytes]) -> bytes:
    """For ``parse_case``."""
    return b"why: test\n" + b"".join(
        b"=== %s\n%s\n" % (name.encode(), body) for name, body in sections
    )
