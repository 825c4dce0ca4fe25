import pytest
from tests.readings.kernel_files import (
    DEBIAN_6_1,
    UBUNTU_3_2,
    VM_6_18,
    case,
    content,
    this_machine,
    tree,
)

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import host_limits
from seawall.readings.host_limits import (
    HostLimit,
    HostLimits,
    parse_arp,
    parse_file_nr,
    parse_loadavg_threads,
    parse_neighbour_entries,
)

SYS = "/proc/sys"
ARP = """IP address       HW type     Flags       HW address            Mask     Device
192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0
192.0.2.9        0x1         0x0         00:00:00:00:00:00     *        eth0
"""


def named(value: HostLimits | Unread) -> dict[str, HostLimit]:
    assert isinstance(value, HostLimits)
    return {limit.name: limit for limit in value.limits}


def test_limits_of_6_1() -> None:
    with tree(DEBIAN_6_1) as host:
        value = host_limits.read(host)
    limits = named(value)
    assert list(limits) == [
        "threads", "pids", "open files", "ptys", "container ptys",
        "inotify instances", "inotify watches", "neighbours ipv4", "neighbours ipv6",
    ]  # fmt: skip
    assert limits["threads"].used == limits["pids"].used == 68
    assert limits["pids"].limit == 32768
    assert limits["pids"].source == f"/proc/loadavg + {SYS}/kernel/pid_max"
    assert (limits["open files"].used, limits["open files"].limit) == (0, 45234)
    assert (limits["ptys"].limit, limits["container ptys"].limit) == (4096, 3072)
    assert (limits["neighbours ipv4"].used, limits["neighbours ipv4"].limit) == (0, 1024)
    assert limits["neighbours ipv6"].source.startswith("/proc/net/stat/ndisc_cache + ")


def test_inotify_is_limited_per_user_and_has_no_use_for_the_host() -> None:
    with tree(DEBIAN_6_1) as host:
        value = host_limits.read(host)
    limits = named(value)
    assert isinstance(value, HostLimits)
    assert (limits["inotify instances"].used, limits["inotify instances"].limit) == (None, 128)
    assert not value.unread


def test_conntrack_is_a_limit_only_where_its_table_is() -> None:
    folder = f"{SYS}/net/netfilter"
    text = f"=== {folder}/nf_conntrack_max\n262144\n=== {folder}/nf_conntrack_count\n262000\n"
    limit = named(host_limits.read(case(text)))["conntrack"]
    assert (limit.used, limit.limit) == (262000, 262144)


def test_neighbours_fall_back_to_the_list_of_this_namespace() -> None:
    text = f"=== {SYS}/net/ipv4/neigh/default/gc_thresh3\n1024\n=== /proc/net/arp\n{ARP}"
    limit = named(host_limits.read(case(text)))["neighbours ipv4"]
    assert (limit.used, limit.source) == (
        2, f"/proc/net/arp + {SYS}/net/ipv4/neigh/default/gc_thresh3",
    )  # fmt: skip


def test_a_use_that_cannot_be_read_is_none_and_named() -> None:
    text = f"=== {SYS}/kernel/pid_max\n4194304\n=== /proc/loadavg !refused\n"
    value = host_limits.read(case(text))
    assert named(value)["pids"].used is None
    assert isinstance(value, HostLimits)
    assert [(u.path, u.why) for u in value.unread] == [("/proc/loadavg", "refused")]


def test_a_reader_in_another_network_namespace_is_blind_there() -> None:
    text = (
        "=== /proc/1/ns/net -> net:[1]\n=== /proc/self/ns/net -> net:[2]\n"
        f"=== {SYS}/net/netfilter/nf_conntrack_max\n1\n=== {SYS}/kernel/pid_max\n9\n"
    )
    value = host_limits.read(case(text))
    assert isinstance(value, HostLimits)
    assert "conntrack" not in named(value)
    assert [u.path for u in value.unread if u.why == "not_captured"] == [f"{SYS}/net"]


def test_nothing_to_read() -> None:
    with tree(UBUNTU_3_2) as host:
        value = host_limits.read(host)
    assert isinstance(value, Unread)
    assert value.why == "absent"


def test_this_machine_counts_at_least_this_process() -> None:
    with this_machine() as host:
        limits = named(host_limits.read(host))
    for name in ("threads", "pids", "open files"):
        used = limits[name].used
        assert used is not None
        assert 1 <= used < limits[name].limit


def test_loadavg_and_file_nr() -> None:
    assert parse_loadavg_threads(content(VM_6_18, "/proc/loadavg")) == 5101
    assert parse_file_nr(b"5642\t0\t2466190\n") == (5642, 2466190)
    assert parse_file_nr(b"100\t40\t9223372036854775807\n") == (60, 9223372036854775807)


def test_neighbour_entries_are_hexadecimal_and_the_same_on_each_line() -> None:
    assert parse_neighbour_entries(content(VM_6_18, "/proc/net/stat/arp_cache")) == 2
    assert parse_neighbour_entries(b"entries  allocs\n0000040a 00000000 0\n0000040a 0 0\n") == 1034
    assert parse_arp(ARP.encode()) == 2


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        (parse_loadavg_threads, b"0.00 0.00 0.00 1 2\n"),
        (parse_loadavg_threads, b"0.00 0.00 0.00 1/x 2\n"),
        (parse_file_nr, b"1 2\n"),
        (parse_neighbour_entries, b"entries allocs\n"),
        (parse_neighbour_entries, b"0000 0 0\n"),
        (parse_arp, b""),
    ],
)
def test_malformed(parse: object, data: bytes) -> None:
    assert callable(parse)
    with pytest.raises(ParseProblem):
        parse(data)
