"""Slurm's RSS by plugin and release, of a job's cgroup on both versions."""

from tests.accounts.test_memory_groups import tree

from seawall.accounts.numbers.tool_numbers import ToolNumber
from seawall.accounts.numbers.tool_numbers_processes import Resident
from seawall.accounts.numbers.tool_numbers_slurm import slurm_numbers

V1 = b"""why: a job that reads, writes and holds
=== /sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.usage_in_bytes
1000000
=== /sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.max_usage_in_bytes
1500000
=== /sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.stat
total_rss 400000
total_cache 500000
total_inactive_file 300000
total_active_file 150000
total_shmem 50000
"""
V2 = b"""why: the same on version 2
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
memory
=== /sys/fs/cgroup/j/memory.current
1000000
=== /sys/fs/cgroup/j/memory.peak
1500000
=== /sys/fs/cgroup/j/memory.stat
anon 400000
file 500000
anon_thp 200000
swapcached 7000
inactive_file 300000
active_file 150000
"""
RESIDENT = Resident(
    processes=2, missing=0, bytes=450_000, source="VmRSS in /proc/PID/status", by_kind={},
    shares_bytes=None, shares_processes=0, shares_resident_bytes=0,
)  # fmt: skip


def rows(case: bytes, path: str) -> dict[str, ToolNumber]:
    group = tree(case).by_path[path]
    return {row.name: row for row in slurm_numbers(group, RESIDENT)}


def test_v1_has_neither_page_cache_nor_tmpfs_and_its_maximum_has_both() -> None:
    found = rows(V1, "/slurm/uid_7/job_1")
    assert {name: row.bytes for name, row in found.items()} == {
        "RSS by jobacct_gather/linux": 450_000,
        "RSS by jobacct_gather/cgroup": 400_000,
        "MaxRSS of 24.11 and later": 1_500_000,
    }
    assert found["RSS by jobacct_gather/cgroup"].formula == "total_rss"


def test_v2_is_another_number_in_each_release() -> None:
    found = rows(V2, "/j")
    assert {name: row.bytes for name, row in found.items()} == {
        "RSS by jobacct_gather/linux": 450_000,
        "RSS by jobacct_gather/cgroup 22.05": 607_000,
        "RSS by jobacct_gather/cgroup 23.02": 407_000,
        "RSS by jobacct_gather/cgroup 23.11 and later": 1_000_000,
        "RSS by jobacct_gather/cgroup 26.05, JobAcctGatherParams=no_file_cache": 550_000,
        "MaxRSS of 24.11 and later": 1_500_000,
    }
    twice = found["RSS by jobacct_gather/cgroup 22.05"]
    assert twice.formula == "anon + anon_thp + swapcached"


def test_each_row_is_the_sum_of_its_inputs() -> None:
    for case, path in ((V1, "/slurm/uid_7/job_1"), (V2, "/j")):
        for row in rows(case, path).values():
            assert row.bytes == sum(part.bytes * part.sign for part in row.inputs)
            assert all(part.source.startswith(("/sys/fs/cgroup", "VmRSS")) for part in row.inputs)


def test_what_a_kernel_does_not_print_is_no_row() -> None:
    bare = b"\n".join(
        line for line in V2.split(b"\n") if not line.startswith((b"swapcached", b"inactive_file"))
    )
    bare = bare.replace(b"=== /sys/fs/cgroup/j/memory.peak\n1500000\n", b"")
    found = rows(bare, "/j")
    assert found["RSS by jobacct_gather/cgroup 23.02"].formula == "anon"
    assert not any("no_file_cache" in name or "MaxRSS" in name for name in found)
