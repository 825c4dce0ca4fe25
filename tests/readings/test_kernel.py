import os

import pytest
from tests.readings.kernel_files import (
    DEBIAN_6_1,
    EL8,
    EL8_64K,
    UBUNTU_3_2,
    VM_6_18,
    case,
    this_machine,
    tree,
)

from seawall.readings import kernel
from seawall.readings.kernel import Kernel, count_list


def read_tree(name: str) -> Kernel:
    with tree(name) as host:
        value = kernel.read(host)
    assert isinstance(value, Kernel)
    return value


@pytest.mark.parametrize(
    ("name", "page_size"),
    [(UBUNTU_3_2, 4096), (EL8, 4096), (EL8_64K, 65536), (DEBIAN_6_1, 4096), (VM_6_18, 4096)],
)
def test_page_size_of_a_bare_tree_is_inferred_and_says_so(name: str, page_size: int) -> None:
    value = read_tree(name)
    assert (value.page_size, value.page_size_source) == (page_size, "inferred")


def test_page_size_is_assumed_only_when_nothing_tells() -> None:
    value = kernel.read(case("=== ?page_size\n4095\n"))
    assert isinstance(value, Kernel)
    assert (value.page_size, value.page_size_source) == (4096, "assumed")
    value = kernel.read(case("=== ?page_size\n65536\n"))
    assert isinstance(value, Kernel)
    assert (value.page_size, value.page_size_source) == (65536, "probe")
    assert value.unread == ()


def test_assumed_page_size_is_told() -> None:
    value = kernel.read(case("=== ?page_size\n4095\n"))
    assert isinstance(value, Kernel)
    [unread] = value.unread
    assert (unread.path, unread.detail) == ("page_size", "assumed to be 4096 bytes")


@pytest.mark.parametrize(
    ("release", "page_size", "source"),
    [
        ("5.14.0-427.13.1.el9_4.aarch64+64k", 65536, "release"),
        ("6.8.0-31-generic-64k", 65536, "release"),
        ("6.4.0-150600.21-64kb", 65536, "release"),
        ("6.12.1+16k+", 16384, "release"),
        ("6.1.0-64kernel", 4096, "assumed"),
        ("6.1.64-1-amd64", 4096, "assumed"),
    ],
)
def test_release_hints_at_the_page_size(release: str, page_size: int, source: str) -> None:
    text = f"=== ?page_size\nnull\n=== /proc/sys/kernel/osrelease\n{release}\n"
    value = kernel.read(case(text))
    assert isinstance(value, Kernel)
    assert (value.page_size, value.page_size_source) == (page_size, source)
    assert bool(value.unread) is (source == "assumed")


def test_a_tree_tells_release_cpus_and_uptime_and_nothing_of_this_machine() -> None:
    value = read_tree(DEBIAN_6_1)
    assert value.release == "6.1.0-56-amd64"
    assert value.version == (6, 1)
    assert (value.cpus_online, value.cpus_possible) == (4, 4)
    assert value.uptime_seconds is not None
    assert 1 < value.uptime_seconds < 60
    assert value.machine is None
    assert read_tree(UBUNTU_3_2).release is None
    assert read_tree(UBUNTU_3_2).version == (0, 0)


def test_this_machine_agrees_with_uname_and_sysconf() -> None:
    with this_machine() as host:
        value = kernel.read(host)
    assert isinstance(value, Kernel)
    uname = os.uname()
    assert (value.release, value.node_name) == (uname.release, uname.nodename)
    assert value.machine == uname.machine
    assert value.page_size == os.sysconf("SC_PAGE_SIZE")
    assert value.cpus_online == os.sysconf("SC_NPROCESSORS_ONLN")
    assert value.reader_uid == os.geteuid()


@pytest.mark.parametrize(
    ("text", "count"),
    [("0-3", 4), ("0", 1), ("0-3,8", 5), ("", 0), ("3-1", None), ("0-", None), ("x", None)],
)
def test_count_list(text: str, count: int | None) -> None:
    assert count_list(text) == count


def test_hostile_words_become_none_or_stay_text() -> None:
    text = "=== /proc/uptime\nnan\n=== /proc/sys/kernel/osrelease\n\x1b[31m5.4\n"
    value = kernel.read(case(text + "=== ?now\n[]\n=== ?clock_ticks\n0\n=== ?reader\n3\n"))
    assert isinstance(value, Kernel)
    assert value.uptime_seconds is None
    assert value.version == (0, 0)
    assert value.taken_at_unix_seconds is None
    assert value.clock_ticks == 100
    assert value.reader_uid is None
