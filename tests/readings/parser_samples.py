"""For every parser of the readings: real bytes that it takes, and what they are made of."""

import json
from dataclasses import dataclass, replace

from tests.readings import device_samples as devices
from tests.readings.kernel_files import DEBIAN_6_1, EL8, UBUNTU_3_2, VM_6_18, content
from tests.readings.oom_logs import log
from tests.readings.sysrq_samples import BLOCKED_OLD, KSWAPD_2_6_39, X86_5_16

from seawall.readings import saved_claims
from seawall.readings.base import Base, document_of

NODE = "/sys/devices/system/node/node1"


@dataclass(frozen=True)
class Sample:
    data: bytes
    skips_unknown_lines: bool = False
    """Lines that it does not know may stand anywhere below the first ``heading`` ones."""
    heading: int = 0
    each_line_by_itself: bool = False
    """A damaged line cannot change what the other lines give."""
    leaves_of_a_line: int = 1
    """How many values a single line gives at most."""
    but: bytes = b"\n"
    """A line with this word decides over others, and may."""


def table(data: bytes, leaves: int, heading: int = 0) -> Sample:
    return Sample(
        data,
        skips_unknown_lines=True,
        heading=heading,
        each_line_by_itself=True,
        leaves_of_a_line=leaves,
    )


def strict_table(data: bytes, leaves: int) -> Sample:
    """A format in which every line has one shape, so that no line is unknown."""
    return Sample(data, each_line_by_itself=True, leaves_of_a_line=leaves)


BASE = Base(
    boot_id="b", residual_bytes=1, residual_error_bytes=2, learned_at_unix_seconds=3.5, how="asked"
)
KEPT = saved_claims.SavedClaims(
    boot_id="b", written_at_unix_seconds=3.5, base_residual_bytes=-1, residual_bytes=1 << 30,
    blind="", claims=(
        saved_claims.SavedClaim(
            holder="a/b/c", workload="a/b/c", cgroup="/x", folder="/sys/fs/cgroup/x",
            cgroup_inode=7, driver=None, kind="ring", what="packet ring", within="residual",
            bytes=2, least_bytes=1, most_bytes=3, source="s", stack=("packet_set_ring",),
            learned_at_unix_seconds=1.0,
        ),
    ),
)  # fmt: skip
GUARD_STATUS = json.dumps(
    {
        "schema": "seawall.guard-status-page/1", "host": {"boot_id": "b"}, "unix_seconds": 3.5,
        "since_unix_seconds": 1.5, "pid": 7, "mode": "enforce", "mode_why": "", "state": "peace",
        "can_kill": True, "can_kill_words": "proved", "watcher": "w", "config": "/c",
        "headroom_bytes": -5, "headroom_seconds": 4.5, "residual_bytes": None,
        "residual_grown_bytes": 9, "decisions": 1, "kills": 1, "returned_bytes": 11,
        "last_decision": {"decision": "d", "at": "t", "trigger": "node_short", "how": "acted",
                          "sentence": "s", "result": "r"},
        "top": [{"name": "n", "cgroup": "/x", "sources": "s", "counted_bytes": 2,
                 "limit_bytes": None, "outside_certain_bytes": 3, "outside_most_bytes": 4}],
        "blind": ["b"], "problems": [], "others": [], "scope": ["/"],
    }
).encode()  # fmt: skip
MOUNTINFO = rb"""24 30 0:22 / /sys rw,nosuid,nodev shared:7 - sysfs sysfs rw
30 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
36 32 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
91 30 0:45 / /mnt/a\040b rw master:1 propagate_from:2 - overlay overlay rw,lowerdir=/l
"""
PROC_CGROUP = b"""12:memory:/kubepods/besteffort/pod1/abc
3:cpu,cpuacct:/user.slice
1:name=systemd:/system.slice/a:b.service
0::/
"""
CGROUPS = b"""#subsys_name\thierarchy\tnum_cgroups\tenabled
cpuset\t3\t9\t1
memory\t11\t312\t1
hugetlb\t0\t1\t0
"""
MAPS = rb"""00400000-0040b000 r-xp 00000000 fe:00 2195791 /usr/bin/a b
0040b000-0040c000 rw-p 0000b000 fe:00 2195791 /usr/bin/a b
7f82acd78000-7f82ad578000 r--s 00000000 00:27 2244801 /data/x\012y (deleted)
7ffd5b1d6000-7ffd5b1f7000 rw-p 00000000 00:00 0 [stack]
7f82ae8fa000-7f82ae8fb000 r--p 00000000 00:00 0
"""
STAT = (
    b"4711 (a) b\n(c) S 1 4711 4711 0 -1 4194560 2010 3311 14 2 5 3 1 2 20 0 7 0 1234 "
    b"171139072 3325 18446744073709551615 1 1 0 0 0 0 671173123 4096 1260 0 0 0 17 1 0 0 0 0 0 "
    b"0 0 0 0 0 0 0 0\n"
)
STATUS = b"""Name:\trunc:[2:INIT]
Umask:\t0022
State:\tS (sleeping)
Tgid:\t4711
Pid:\t4711
PPid:\t1
Uid:\t1000\t1000\t1000\t1000
NSpid:\t4711\t7
VmPeak:\t  171000 kB
VmLck:\t       0 kB
VmPin:\t       4 kB
VmRSS:\t   13300 kB
RssAnon:\t    9000 kB
RssFile:\t    4000 kB
RssShmem:\t     300 kB
VmPTE:\t     116 kB
VmSwap:\t       8 kB
HugetlbPages:\t    2048 kB
Threads:\t7
SigQ:\t0/96365
"""
IO = b"""rchar: 3000
wchar: 2000
syscr: 10
syscw: 11
read_bytes: 4096
write_bytes: 8192
cancelled_write_bytes: 512
"""
ROLLUP = b"""55d0c0a00000-7ffd0e5f9000 ---p 00000000 00:00 0                          [rollup]
Rss:                3000 kB
Pss:                1200 kB
Pss_Dirty:           400 kB
Pss_Anon:            400 kB
Pss_File:            700 kB
Pss_Shmem:           100 kB
Shared_Clean:       1800 kB
Shared_Dirty:         16 kB
Private_Clean:       500 kB
Private_Dirty:       684 kB
Referenced:         3000 kB
Anonymous:           600 kB
Swap:                 12 kB
SwapPss:               0 kB
Locked:                0 kB
"""
SWAPS = b"""Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/zram0                              partition\t131068\t\t0\t\t-2
/var/swap\\040one\\040(deleted)         file\t\t1024\t\t512\t\t5
"""
ARP = b"""IP address       HW type     Flags       HW address            Mask     Device
192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0
192.0.2.9        0x1         0x0         00:00:00:00:00:00     *        eth0
"""
OCI = b"""{"ociVersion": "1.0.2", "annotations": {"io.kubernetes.cri.sandbox-name": "p",
"io.kubernetes.cri.container-type": "container"}, "linux": {"cgroupsPath": "/k/p"}}"""
RUNC = b'{"id": "abc", "cgroup_paths": {"memory": "/sys/fs/cgroup/memory/k"}}'
CRIO = b'[{"id": "%s", "names": ["k8s_POD_p_ns_uid_0"]}]' % (b"a1" * 32)

# Versions 1.0 (kernel document mm/allocation-profiling.rst) and 2.0, large sites only.
ALLOCINFO = b"""allocinfo - version: 1.0
#     <size>  <calls> <tag info>
   127664128    31168 mm/page_ext.c:270 func:alloc_page_ext
    56373248     4737 mm/slub.c:2259 func:alloc_slab_page
     4206592        4 net/netfilter/nf_conntrack_core.c:2567 func:nf_ct_alloc_hashtable
     4136960     1010 drivers/staging/ctagmod/ctagmod.c:20 [ctagmod] func:ctagmod_start
     2383872     2328 fs/ext4/super.c:1408 [ext4] func:ext4_alloc_inode accurate:no
"""


# The example in drivers/gpu/drm/xe/xe_drm_client.c, shortened.
XE_FDINFO = b"""pos:\t0
flags:\t0100002
drm-driver:\txe
drm-client-id:\t3
drm-pdev:\t0000:03:00.0
drm-resident-system:\t0
drm-total-gtt:\t192 KiB
drm-resident-gtt:\t192 KiB
drm-shared-vram0:\t16 MiB
drm-cycles-rcs:\t28257900
drm-total-cycles-rcs:\t7655183225
"""
NVIDIA_VERSION = b"""\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)
"""
NVIDIA_GPU = b"""Model: \t\t NVIDIA GB10
IRQ:   \t\t 371
GPU UUID: \t GPU-2dee1e25-b3b5-007e-2b55-79f2d0f2ebe5
Bus Type: \t PCIe
"""
TTM_POOL = b"""\t  --- 0--- --- 1--- --- 2---
wc\t:      340       12        0
uc\t:        0        0        0
wc 32\t:        0        0        0
uc 32\t:        0        0        0

total\t:      364 of  3145728
"""

SOCKSTAT = b"""sockets: used 17
TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 103199
UDP: inuse 0 mem 33
UDPLITE: inuse 0
RAW: inuse 0
FRAG: inuse 0 memory 0
"""
# drivers/dma-buf/dma-buf.c of 6.1: dma_buf_debug_show and dma_buf_show_fdinfo.
BUFINFO = b"""
Dma-buf Objects:
size    \tflags   \tmode    \tcount   \texp_name\tino     \tname
00008192\t00080002\t00080007\t00000003\tsystem\t00000017\tcamera
\tAttached Devices:
\t0000:00:02.0
Total 1 devices attached

67108864\t00000002\t00080007\t00000001\tudmabuf\t00000018\t<none>
\tAttached Devices:
Total 0 devices attached


Total 2 objects, 67117056 bytes
"""
DMABUF_FDINFO = b"""pos:\t0
flags:\t02100002
mnt_id:\t11
ino:\t17
size:\t8192
count:\t3
exp_name:\tsystem
name:\tcamera
"""
TASK_STACK = b"""[<0>] folio_wait_bit_common+0x110/0x310
[<0>] filemap_fault+0x739/0x1650
[<0>] nvidia_ioctl+0x1a4/0x9e0 [nvidia]
"""
SAMPLES: dict[str, list[Sample]] = {
    "slurm_jobs.parse_users": [Sample(b"root:x:0\nalice:x:1000\n", skips_unknown_lines=True)],
    "slurm_jobs.parse_job_environment": [Sample(b"SLURM_JOB_ID=7\0SLURM_JOB_UID=1000\0")],
    "slurm_node_rows.parse": [
        Sample(
            b"n1\x1fh1\x1fidle+drain\x1f1795977429\x1f(null)\x1f(null)\x1fseawall: gpu: x\x1f\n"
            b"n2\x1fh2\x1fidle\x1fUnknown\x1f(null)\x1f(null)\x1fnone\x1f\n"
        )
    ],
    "sockstat.parse": [table(SOCKSTAT, 1)],
    "dma_bufs.parse_bufinfo": [table(BUFINFO, 3)],
    "dma_bufs.parse_fdinfo": [Sample(DMABUF_FDINFO, skips_unknown_lines=True)],
    "oom_score_adj.parse": [Sample(b"-998\n")],
    "kernel_log.parse": [Sample(log("memcg-v1-6.18.44-kmsg"))],
    "oom_score.parse": [Sample(b"667\n")],
    "memcg_swappiness.parse": [Sample(b"60\n")],
    "cgroup_cpu.parse_max": [Sample(b"150000 100000\n")],
    "allocinfo.parse": [table(ALLOCINFO, 8)],
    "arcstats.parse": [table(content("zfs", "/proc/spl/kstat/zfs/arcstats"), 1)],
    "base.parse": [Sample(document_of(BASE))],
    "guard_status.parse": [Sample(GUARD_STATUS)],
    "saved_claims.parse": [Sample(saved_claims.document_of(KEPT))],
    "buddyinfo.parse": [table(content(DEBIAN_6_1, "/proc/buddyinfo"), 13)],
    "cgroup.parse_proc_cgroup": [strict_table(PROC_CGROUP, 2)],
    "container_names.parse_config": [Sample(OCI)],
    "container_names.parse_containers": [Sample(CRIO)],
    "container_names.parse_state": [Sample(RUNC)],
    "driver_modules.parse_flavour": [Sample(NVIDIA_VERSION)],
    "gpu_query.parse_module": [Sample(NVIDIA_VERSION, skips_unknown_lines=True)],
    "driver_modules.parse_pools": [
        Sample(b"ResmanDebugLevel: 4294967295\nEnableSystemMemoryPools: 529\n")
    ],
    "driver_modules.parse_reference_count": [Sample(b"3\n")],
    "driver_modules.parse_version": [Sample(b"590.48.01\n")],
    "driver_pools.parse_count": [Sample(b"0 512 0\n71 9 4\n")],
    "driver_pools.parse_gtt_used": [Sample(b"14974976\n")],
    "driver_pools.parse_ttm_pool": [Sample(TTM_POOL)],
    "drm_clients.parse": [table(XE_FDINFO, 7)],
    "nvml.parse_information": [Sample(NVIDIA_GPU)],
    "gpu_memory_nodes.parse": [
        Sample(
            b"Node:      2\nStatus:    online\nAddress:   380000000000\nSize:      2e00000000\n",
            skips_unknown_lines=True,
        ),
    ],
    "diskstats.parse": [table(content(kernel, "/proc/diskstats"), 10) for kernel in (EL8, VM_6_18)],
    "host_limits.parse_arp": [Sample(ARP, skips_unknown_lines=True, heading=1)],
    "host_limits.parse_file_nr": [Sample(b"5642\t0\t2466190\n")],
    "host_limits.parse_loadavg_threads": [Sample(b"0.87 0.70 0.39 1/5101 11844\n")],
    "host_limits.parse_neighbour_entries": [
        Sample(content(VM_6_18, "/proc/net/stat/arp_cache"), skips_unknown_lines=True, heading=1)
    ],
    "host_limits.parse_number_file": [Sample(b"32768\n")],
    "meminfo.parse": [
        table(content(kernel, "/proc/meminfo"), 1) for kernel in (UBUNTU_3_2, DEBIAN_6_1, VM_6_18)
    ],
    "mountinfo.parse": [strict_table(MOUNTINFO, 16)],
    "numa.parse_count": [Sample(b"8\n")],
    "numa.parse_cpulist": [Sample(b"0-3,8\n")],
    "numa.parse_meminfo": [table(content(DEBIAN_6_1, f"{NODE}/meminfo"), 1)],
    "pressure.parse": [table(content(DEBIAN_6_1, "/proc/pressure/cpu"), 4)],
    "proc_cgroups.parse": [Sample(CGROUPS, each_line_by_itself=True)],
    "process.parse": [Sample(STAT)],
    "process_maps.parse": [Sample(MAPS)],
    "process_extra.parse_io": [table(IO, 1)],
    "process_extra.parse_smaps_rollup": [table(ROLLUP, 1)],
    "process_status.parse": [table(STATUS, 2)],
    "slabinfo.parse": [table(content(kernel, "/proc/slabinfo"), 8) for kernel in (EL8, DEBIAN_6_1)],
    "swaps.parse": [table(SWAPS, 5, heading=1)],
    "sysrq_backtraces.parse": [Sample(X86_5_16), Sample(BLOCKED_OLD), Sample(KSWAPD_2_6_39)],
    "task_stacks.parse": [table(TASK_STACK, 2)],
    "sysctl_vm.parse": [Sample(b"-1\n")],
    "sysctl_vm.parse_hexadecimal": [Sample(b"0x0007\n")],
    "sysctl_vm.parse_kilobytes": [Sample(b"67584\n")],
    "vmallocinfo.parse": [
        table(content(kernel, "/proc/vmallocinfo"), 10) for kernel in (EL8, DEBIAN_6_1)
    ],
    "vmstat.parse": [table(content(kernel, "/proc/vmstat"), 1) for kernel in (EL8, VM_6_18)],
    "wchan.parse": [Sample(b"balance_dirty_pages\n")],
    "zoneinfo.parse": [
        # A zone whose "present" is 0 is left out.
        replace(table(content(kernel, "/proc/zoneinfo"), 6), but=b"present")
        for kernel in (UBUNTU_3_2, EL8, DEBIAN_6_1)
    ],
    "cdi_specs.parse": [
        Sample(devices.CDI_JSON),
        Sample(devices.CDI_OLD),
        Sample(devices.CDI_NEW),
    ],
    "char_devices.parse": [
        Sample(devices.PROC_DEVICES, skips_unknown_lines=True),
    ],
    "device_cgroups.parse": [strict_table(devices.DEVICES_LIST, 5)],
    "docker_devices.parse_environment": [Sample(devices.CONFIG_V2)],
    "docker_devices.parse_hostconfig": [Sample(devices.HOSTCONFIG)],
    "kubelet_devices.parse": [Sample(devices.CHECKPOINT)],
    "oci_devices.parse_config": [Sample(devices.OCI_CONFIG)],
    "oci_devices.parse_state": [Sample(devices.RUNC_STATE)],
    "boot_time.parse": [Sample(devices.STAT, skips_unknown_lines=True)],
    "runtime_versions.parse": [Sample(devices.DPKG)],
    "scope_devices.parse": [Sample(devices.SCOPE, skips_unknown_lines=True)],
    "zram.parse_disksize": [Sample(b"134217728\n")],
    "zram.parse_mm_stat": [Sample(content(DEBIAN_6_1, "/sys/block/zram0/mm_stat"))],
}
