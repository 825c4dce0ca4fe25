"""Lines of the kernel's log that tell of broken hardware, and those that only look like them."""

import json
import os
from typing import Any

import pytest
from tests.host.as_nobody import as_nobody

from seawall.host.kernel_faults import fault_of, kernel_faults


def record(text: str, priority: int = 4, microseconds: int = 12_500_000) -> bytes:
    return f"{priority},77,{microseconds},-;{text}\n SUBSYSTEM=pci\n".encode()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
         ["xid", "0000:3b:00", 79]),
        ("NVRM: Xid (0000:3b:00): 31, Ch 00000010", ["xid", "0000:3b:00", 31]),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15", ["driver_loaded", "", 0]),
        ("INFO: task python3:4711 blocked for more than 122 seconds.", ["hung", "122", 122]),
        ("blk_update_request: I/O error, dev sda, sector 5 op 0x0:(READ)", ["disk", "sda", 0]),
        ("I/O error, dev nvme0n1, sector 5", ["disk", "nvme0n1", 0]),
        ("critical medium error, dev sdb, sector 9", ["disk", "sdb", 0]),
        ("EXT4-fs error (device sda2): ext4_find_entry:1455: inode #2: comm ls: x",
         ["disk", "sda2", 0]),
        ("XFS (dm-1): Corruption detected. Unmount and run xfs_repair", ["disk", "dm-1", 0]),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff", ["disk", "nvme0", 0]),
        ("mce: CPU12: Package temperature above threshold, cpu clock throttled (total events = 3)",
         ["thermal", "12", 12]),
        (("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
         "task_memcg=/system.slice/sssd.service,task=sssd,pid=5,uid=0"),
         ["daemon_oom", "sssd.service", 0]),
    ],
)  # fmt: skip
def test_a_fault_is_a_kind_and_a_short_word(text: str, told: list[Any]) -> None:
    assert fault_of(record(text)) == [12.5, *told]


@pytest.mark.parametrize(
    "text",
    [
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
            "oom_memcg=/slurm/uid_5,task_memcg=/system.slice/sssd.service,task=x,pid=5,uid=0"
        ),
        (
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
            "task_memcg=/slurm/uid_5/job_7/step_0,task=x,pid=5,uid=0"
        ),
        "python3: NVRM: Xid (PCI:0000:3b:00): 79, pid=1",
        "Linux version 6.1",
        "",
    ],
)
def test_what_is_none_leaves_nothing(text: str) -> None:
    assert fault_of(record(text)) is None


def test_what_a_program_wrote_has_another_facility() -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1"
    assert fault_of(record(text, priority=3)) is not None
    assert fault_of(record(text, priority=1 << 3 | 3)) is None


@pytest.mark.parametrize("data", [b"", b"x", b"4,1,", b"\xff;\xff", b"4,1,1,-;" + b"a" * 70_000])
def test_what_is_no_record_is_passed_over(data: bytes) -> None:
    assert fault_of(data) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel's log is root's")
def test_the_log_of_this_machine_is_read_to_its_end() -> None:
    told = kernel_faults()
    assert isinstance(told, dict)
    assert told["is_whole"] is True
    assert json.dumps(told)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user")
def test_whoever_may_not_read_it_is_told_so() -> None:
    told = as_nobody(lambda: str(kernel_faults()))
    assert told.startswith(("PermissionError", "{'now'"))
