import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, case, content, this_machine, tree

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import meminfo, numa, vmstat
from seawall.readings.numa import NumaNodes, parse_cpulist, parse_meminfo

NODE = "/sys/devices/system/node/node"


def test_two_nodes_of_which_one_has_no_cpu() -> None:
    with tree(DEBIAN_6_1) as host:
        value = numa.read(host)
    assert isinstance(value, NumaNodes)
    assert [(node.number, node.has_cpus) for node in value.nodes] == [(0, True), (1, False)]
    assert value.unread == ()
    for node in value.nodes:
        assert node.hugetlb_bytes == 8 * (2 << 20)
        assert node.fields["HugePages_Total"] == 8
        free_pages = node.vmstat["nr_free_pages"]
        assert node.fields["MemFree"] == pytest.approx(free_pages * 4096, rel=0.01)


def test_nodes_add_up_to_the_host() -> None:
    with tree(DEBIAN_6_1) as host:
        value, whole = numa.read(host), meminfo.read(host)
    assert isinstance(value, NumaNodes)
    assert not isinstance(whole, Unread)
    assert sum(node.fields["MemTotal"] for node in value.nodes) == whole.mem_total
    assert sum(node.hugetlb_bytes or 0 for node in value.nodes) == whole.hugetlb


def test_this_machine_adds_up_to_its_vmstat() -> None:
    with this_machine() as host:
        value, whole = numa.read(host), vmstat.read(host)
    if isinstance(value, Unread):
        pytest.skip(f"needs CONFIG_NUMA: {value.detail}")
    assert not isinstance(whole, Unread)
    free = sum(node.vmstat["nr_free_pages"] for node in value.nodes)
    assert free == pytest.approx(whole.counters["nr_free_pages"], rel=0.1)


def test_a_file_that_is_missing_is_none_and_one_that_is_refused_is_named() -> None:
    text = f"=== {NODE}3/meminfo\nNode 3 MemTotal: 8 kB\n=== {NODE}3/vmstat !refused\n"
    value = numa.read(case(text + f"=== {NODE}4/meminfo\nNode 4 MemTotal: 8\n"))
    assert isinstance(value, NumaNodes)
    (node,) = value.nodes
    assert (node.number, node.has_cpus, node.hugetlb_bytes) == (3, None, None)
    assert node.vmstat == {}
    assert [(u.path, u.why) for u in value.unread] == [
        (f"{NODE}3/vmstat", "refused"),
        (f"{NODE}4/meminfo", "malformed"),
    ]


def test_one_unreadable_size_makes_all_huge_pages_unknown() -> None:
    pages = f"{NODE}0/hugepages/hugepages"
    text = f"=== {NODE}0/meminfo\nNode 0 MemTotal: 8 kB\n=== {pages}-2048kB/nr_hugepages\n3\n"
    value = numa.read(case(text + f"=== {pages}-1048576kB/nr_hugepages\n2\n"))
    assert isinstance(value, NumaNodes)
    assert value.nodes[0].hugetlb_bytes == 3 * (2 << 20) + 2 * (1 << 30)
    value = numa.read(case(text + f"=== {pages}-1048576kB/nr_hugepages !refused\n"))
    assert isinstance(value, NumaNodes)
    assert value.nodes[0].hugetlb_bytes is None


def test_without_the_folder_it_is_unread() -> None:
    with tree(EL8) as host:
        assert isinstance(numa.read(host), Unread)


def test_every_line_is_read() -> None:
    data = content(DEBIAN_6_1, f"{NODE}1/meminfo")
    assert len(parse_meminfo(data)) == len(data.splitlines())


@pytest.mark.parametrize(
    "data",
    [b"", b"Node 0 MemFree: 1 kB\n", b"Node 0 MemTotal: 1\n", b"Node 0 MemTotal: 1 MB\n",
     b"Node 0 MemTotal: -1 kB\n"],
)  # fmt: skip
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse_meminfo(data)


def test_cpulist() -> None:
    assert parse_cpulist(b"0-3,8\n")
    assert not parse_cpulist(b"\n")
    with pytest.raises(ParseProblem):
        parse_cpulist(b"all\n")
