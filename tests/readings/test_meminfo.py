import pytest
from tests.readings.kernel_files import (
    DEBIAN_6_1,
    EL8,
    EL8_64K,
    KERNELS,
    SEED_5_10,
    UBUNTU_3_2,
    VM_6_18,
    case,
    content,
    tree,
)

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import meminfo, vmstat
from seawall.readings.meminfo import Meminfo, parse

KIB = 1024


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_line_that_we_name_is_read(kernel: str) -> None:
    data = content(kernel, "/proc/meminfo")
    value = parse(data)
    seen = 0
    for line in data.decode().splitlines():
        name, _, rest = line.partition(":")
        field = meminfo.FIELDS.get(name.encode())
        if field is None:
            assert name in ("VmallocTotal", "VmallocChunk", "ShmemPmdMapped", "FilePmdMapped"), name
            continue
        words = rest.split()
        assert getattr(value, field) == int(words[0]) * (KIB if len(words) == 2 else 1), field
        seen += 1
    assert seen == sum(getattr(value, field) is not None for field in meminfo.FIELDS.values())


def test_what_a_kernel_does_not_print_is_none_and_not_zero() -> None:
    old, el8, seed, debian, new = (
        parse(content(kernel, "/proc/meminfo"))
        for kernel in (UBUNTU_3_2, EL8, SEED_5_10, DEBIAN_6_1, VM_6_18)
    )
    assert old.mem_available is None
    assert el8.mem_available == 1950080 * KIB
    assert old.percpu is None
    assert el8.percpu is None, "backported to el8 later than to this kernel"
    assert seed.percpu == 15360 * KIB
    assert el8.k_reclaimable is None
    assert debian.k_reclaimable is not None
    assert debian.sec_page_tables == 0
    assert debian.balloon is None
    assert new.balloon == 0
    assert el8.vmalloc_used == 0
    assert old.vmalloc_used == 121484 * KIB


def test_huge_pages_are_counted_in_pages_and_their_size_in_bytes() -> None:
    debian = parse(content(DEBIAN_6_1, "/proc/meminfo"))
    assert (debian.huge_pages_total, debian.hugepagesize) == (16, 2 << 20)
    assert debian.hugetlb == 16 * (2 << 20)
    arm = parse(content(EL8_64K, "/proc/meminfo"))
    assert arm.hugepagesize == 512 << 20


@pytest.mark.parametrize(
    ("kernel", "page_size"),
    [(UBUNTU_3_2, 4096), (EL8, 4096), (EL8_64K, 65536), (DEBIAN_6_1, 4096), (VM_6_18, 4096)],
)
def test_pages_of_vmstat_times_page_size_are_the_same_memory(kernel: str, page_size: int) -> None:
    """Two files of one machine, read a moment apart."""
    memory = parse(content(kernel, "/proc/meminfo"))
    counters = vmstat.parse(content(kernel, "/proc/vmstat")).counters
    for field, name in (("s_unreclaim", "nr_slab_unreclaimable"), ("shmem", "nr_shmem")):
        by_pages = counters[name] * page_size
        assert getattr(memory, field) == pytest.approx(by_pages, rel=0.2), field


def test_read_from_a_tree() -> None:
    with tree(EL8) as host:
        value = meminfo.read(host)
    assert isinstance(value, Meminfo)
    assert value.mem_total == 8164548 * KIB


def test_malformed_says_where_and_what() -> None:
    with pytest.raises(ParseProblem) as problem:
        parse(b"MemTotal: 8 kB\nMemFree: 7 MB\n")
    assert problem.value.line == 2
    assert "MemFree: NUMBER kB" in str(problem.value)
    with pytest.raises(ParseProblem, match="mem_free"):
        parse(b"MemTotal: 8 kB\n")
    value = meminfo.read(case("=== /proc/meminfo\nMemTotal: x kB\n"))
    assert isinstance(value, Unread)
    assert (value.path, value.why) == ("/proc/meminfo", "malformed")
