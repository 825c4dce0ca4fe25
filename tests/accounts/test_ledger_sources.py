"""Lines that come from other files than meminfo: vmallocinfo, cgroups, pipes, NUMA nodes."""

import pytest
from tests.accounts.test_ledger import GIB, KIB, MIB, ledger_of, meminfo, size_of, zoneinfo
from tests.case_host import parse_case

from seawall.accounts.claims.claims import Claims
from seawall.readings.snapshot import Snapshot

STACK = b"0x0000000000000000-0x0000000000000000   20480 %s+0x1/0x2 pages=4 vmalloc N0=4\n"
OTHER = b"0x0000000000000000-0x0000000000000000 41947136 big_map+0x1/0x2 pages=10240 vmalloc N0=1\n"
IOREMAP = b"0x0000000000000000-0x0000000000000000 8192 acpi_os_map+0x1/0x2 phys=0x1 ioremap\n"
VMAP = b"0x0000000000000000-0x0000000000000000 8192 i915_gem+0x1/0x2 pages=500 vmap\n"
STACKS = 16_000 // 16  # KernelStack of the plain machine, 16 KiB each
MOUNT = b"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
MOUNT_V1 = b"31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"


@pytest.mark.parametrize(
    ("changes", "callers", "expected"),
    [
        # pages since 5.3, stacks inside, by name or by weight, or not
        ({}, b"dup_task_struct", 44_000 * KIB),
        ({}, b"of_a_later_kernel", 44_000 * KIB),
        ({}, None, 60_000 * KIB),
        # 0 from 4.4 to 5.2: the rows count, without vmap and ioremap, whose pages are others'
        ({"VmallocUsed": 0}, b"dup_task_struct", 40 * MIB),
        ({"VmallocUsed": 0}, None, 40 * MIB),
        # address space before 4.4
        ({"VmallocUsed": 9 << 20, "KReclaimable": None}, None, 40 * MIB),
    ],
)
def test_vmalloc_and_stacks_do_not_overlap(
    changes: dict[str, int | None], callers: bytes | None, expected: int
) -> None:
    rows = OTHER + IOREMAP + VMAP + (STACK % callers * STACKS if callers else b"")
    ledger = ledger_of(
        ("/proc/meminfo", meminfo(**changes)), zoneinfo(), ("/proc/vmallocinfo", rows)
    )
    assert size_of(ledger, "vmalloc") == expected
    assert size_of(ledger, "kernel stacks") == 16_000 * KIB
    assert not ledger.unknown


@pytest.mark.parametrize(
    ("machine", "release", "expected", "widened"),
    [
        (b'"x86_64"', b"6.1.0", 44_000 * KIB, False),
        (b'"aarch64"', b"5.10.0", 44_000 * KIB, False),
        (b'"x86_64"', b"4.8.0", 60_000 * KIB, False),
        (b'"mips64"', b"6.1.0", 44_000 * KIB, True),
    ],
)
def test_without_vmallocinfo_the_build_decides(
    machine: bytes, release: bytes, expected: int, widened: bool
) -> None:
    """And the ledger says what it assumed."""
    system = [("?machine", machine), ("/proc/sys/kernel/osrelease", release)]
    plain = ledger_of(("/proc/meminfo", meminfo()), zoneinfo())
    ledger = ledger_of(("/proc/meminfo", meminfo()), zoneinfo(), *system)
    assert size_of(ledger, "vmalloc") == expected
    more = ledger.residual_error_bytes - plain.residual_error_bytes
    assert more == (16_000 * KIB if widened else 0)
    if expected == 44_000 * KIB:
        assert any("stacks" in note for note in ledger.notes)


def test_a_cut_vmallocinfo_does_not_decide() -> None:
    ledger = ledger_of(("/proc/meminfo", meminfo()), zoneinfo(), ("/proc/vmallocinfo", IOREMAP))
    assert size_of(ledger, "vmalloc") == 44_000 * KIB


def test_stacks_that_exceed_vmalloc_are_not_in_it() -> None:
    ledger = ledger_of(("/proc/meminfo", meminfo(VmallocUsed=9_000)), zoneinfo())
    assert size_of(ledger, "vmalloc") == 9_000 * KIB


# --- cgroups and pipes ------------------------------------------------------------------


def stat(**values: int) -> bytes:
    return "\n".join(f"{name} {value}" for name, value in values.items()).encode()


def test_charged_kernel_pages_of_version_2() -> None:
    """kernel less its parts; zswap is in nr_zspages, sock and anon are no parts of it."""
    text = stat(anon=5, kernel=GIB, kernel_stack=MIB, pagetables=2 * MIB, sec_pagetables=3 * MIB,
                percpu=4 * MIB, sock=99, vmalloc=5 * MIB, slab=6 * MIB, zswap=7 * MIB)  # fmt: skip
    ledger = ledger_of(
        ("/proc/meminfo", meminfo()), zoneinfo(), ("/proc/1/mountinfo", MOUNT),
        ("/sys/fs/cgroup/cgroup.controllers", b"memory"), ("/sys/fs/cgroup/memory.stat", text),
        ("?pipes", b'{"pipes": 3, "pages": 9, "processes_left_out": 0}'),
    )  # fmt: skip
    assert size_of(ledger, "charged kernel pages") == GIB - 28 * MIB
    assert size_of(ledger, "pipes") is None, "they are in the charge already"


def test_version_2_before_the_counter() -> None:
    ledger = ledger_of(
        ("/proc/meminfo", meminfo()), zoneinfo(), ("/proc/1/mountinfo", MOUNT),
        ("/sys/fs/cgroup/cgroup.controllers", b"memory"),
        ("/sys/fs/cgroup/memory.stat", stat(anon=5, slab=8)),
        ("?pipes", b'{"pipes": 3, "pages": 9, "processes_left_out": 2}'),
    )  # fmt: skip
    assert size_of(ledger, "charged kernel pages") is None
    assert size_of(ledger, "pipes") == 9 * 4096
    assert any("pipes of 2 process" in note for note in ledger.notes)


@pytest.mark.parametrize(("usage", "expected"), [(500 * MIB, 0), (2 * GIB, None)])
def test_version_1_tells_only_what_exceeds_everything_else(
    usage: int, expected: int | None
) -> None:
    ledger = ledger_of(
        ("/proc/meminfo", meminfo()), zoneinfo(), ("/proc/1/mountinfo", MOUNT_V1),
        ("/sys/fs/cgroup/memory/memory.kmem.usage_in_bytes", b"%d" % usage),
    )  # fmt: skip
    known = (500_000 + 16_000 + 50_000 + 9_000 + 44_000) * KIB
    assert size_of(ledger, "charged kernel pages") == (
        usage - known if expected is None else expected
    )


def test_absurd_answers_about_pipes_are_no_line() -> None:
    for answer in (b"null", b'{"pipes": -1, "pages": 9, "processes_left_out": 0}', b"[1]"):
        ledger = ledger_of(("/proc/meminfo", meminfo()), ("?pipes", answer))
        assert size_of(ledger, "pipes") is None


# --- NUMA nodes -------------------------------------------------------------------------

NODE = "/sys/devices/system/node/node{}/{}"


def node(number: int, cpus: bytes, **fields: int) -> list[tuple[str, bytes]]:
    text = "\n".join(f"Node {number} {name}: {value} kB" for name, value in fields.items())
    return [
        (NODE.format(number, "meminfo"), text.encode()),
        (NODE.format(number, "cpulist"), cpus),
    ]


HALF = {
    "MemTotal": 8 << 20, "MemFree": 2 << 20, "FilePages": 2 << 20, "Shmem": 1 << 20,
    "AnonPages": 3 << 20, "SwapCached": 0, "Slab": 100_000,
}  # fmt: skip


def test_node_with_cpus_keeps_its_residual() -> None:
    ledger = ledger_of(
        ("/proc/meminfo", meminfo()), zoneinfo(), *node(0, b"0-1", **HALF), *node(1, b"2-3", **HALF)
    )
    assert ledger.line("gpu memory") is None
    for part in ledger.nodes:
        assert {line.name for line in part.unknown} >= {"percpu", "vmalloc"}
        assert part.residual_error_bytes >= (9_000 + 60_000) * KIB
        assert sum(line.bytes for line in part.lines) + part.residual_bytes == part.total_bytes


# --- claims -----------------------------------------------------------------------------


def test_a_drivers_slab_cache_bounds_its_claim() -> None:
    slabinfo = (
        b"slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> <objperslab> "
        b"<pagesperslab>\nnvidia_pte_cache 262144 262144 40 102 1 : tunables 0 0 0 : slabdata 1 1 0"
    )
    text = b"why: t\n=== /proc/meminfo\n" + meminfo() + b"\n=== /proc/slabinfo\n" + slabinfo
    claims = Snapshot(parse_case(text).rounds[0]).get(Claims)
    assert isinstance(claims, Claims)
    [claim] = claims.claims
    assert "NVIDIA" in claim.holder
    assert (claim.least_bytes, claim.most_bytes, claim.confidence) == (0, GIB, "bound")
    assert claim.workload is None
