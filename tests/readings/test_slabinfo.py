import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, SEED_5_10, VM_6_18, case, content

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import meminfo, slabinfo
from seawall.readings.slabinfo import SlabCache, parse

HEADING = b"slabinfo - version: 2.1\n# name ...\n"
TAIL = b" : tunables    0    0    0 : slabdata      2      3      0"


@pytest.mark.parametrize("kernel", [EL8, SEED_5_10, DEBIAN_6_1, VM_6_18])
def test_every_cache_is_read(kernel: str) -> None:
    data = content(kernel, "/proc/slabinfo")
    rows = [line.split() for line in data.decode().splitlines()[2:]]
    caches = parse(data).caches
    assert [cache.name for cache in caches] == [row[0] for row in rows]
    assert [cache.num_objs for cache in caches] == [int(row[2]) for row in rows]
    assert [cache.num_slabs for cache in caches] == [int(row[14]) for row in rows]


def test_one_cache_in_full() -> None:
    xfs = next(c for c in parse(content(EL8, "/proc/slabinfo")).caches if c.name == "xfs_inode")
    assert xfs == SlabCache(
        name="xfs_inode",
        active_objs=30039,
        num_objs=30528,
        objsize_bytes=1024,
        objperslab=16,
        pagesperslab=4,
        active_slabs=1908,
        num_slabs=1908,
    )
    assert xfs.bytes(4096) == 1908 * 4 * 4096
    assert xfs.bytes(65536) == 16 * xfs.bytes(4096)


def test_the_driver_cache_of_seed_1() -> None:
    """8,650,926 objects, each of which stands for one page: 33.00 GiB; 332 MiB of slab."""
    cache = parse(content(SEED_5_10, "/proc/slabinfo")).caches[0]
    assert cache.name == "nvidia_pte_cache-2782818403"
    assert cache.num_objs * 4096 / 2**30 == pytest.approx(33.0, abs=0.01)
    assert cache.bytes(4096) == 339252 * 1024
    memory = meminfo.parse(content(SEED_5_10, "/proc/meminfo"))
    assert memory.slab is not None
    assert cache.bytes(4096) < memory.slab


@pytest.mark.parametrize("name", [b"a", b"kmalloc-rcl-8k", b":a-0000104", b"two words", b"\xffx"])
def test_a_name_is_any_word(name: bytes) -> None:
    line = name + b" 10 12 96 42 1" + TAIL + b"\n"
    cache = parse(HEADING + line).caches[0]
    assert cache.name.encode("utf-8", "surrogateescape") == name
    assert (cache.active_objs, cache.num_slabs) == (10, 3)


def test_debug_kernels_add_statistics() -> None:
    extra = b" : globalstat  10 20 3 0 0 1 0 0 0 : cpustat 1 2 3 4\n"
    assert parse(HEADING + b"kmem 10 12 96 42 1" + TAIL + extra).caches[0].active_slabs == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEADING,
        b"slabinfo - version: 1.1\nkmem 10 12 96 42 1" + TAIL,
        HEADING + b"kmalloc-64  100  200\n",
        HEADING + b"kmem x 12 96 42 1" + TAIL,
        HEADING + b"kmem 10 12 96 42 1 : tunables 0 0 0 : slabdata 1 \n",
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


def test_refused_to_an_ordinary_user_is_not_empty() -> None:
    value = slabinfo.read(case("=== /proc/slabinfo !refused\n"))
    assert isinstance(value, Unread)
    assert value.why == "refused"
