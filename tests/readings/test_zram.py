import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, case, tree

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import zram
from seawall.readings.zram import Zram, parse_mm_stat


def read_case(text: str) -> Zram:
    value = zram.read(case(text))
    assert isinstance(value, Zram)
    return value


def test_a_device_of_6_1() -> None:
    with tree(DEBIAN_6_1) as host:
        value = zram.read(host)
    assert isinstance(value, Zram)
    (device,) = value.devices
    assert (device.name, device.disksize) == ("zram0", 128 << 20)
    assert (device.orig_data_size, device.compr_data_size) == (4096, 73)
    assert device.mem_used_total == 12288
    assert device.mem_limit is None
    assert (device.same_pages, device.huge_pages) == (0, 0)
    assert value.unread == ()


def test_a_kernel_that_prints_fewer_columns() -> None:
    assert dict(parse_mm_stat(b"1 2 3 4 5 6 7\n")) == {
        "orig_data_size": 1, "compr_data_size": 2, "mem_used_total": 3, "mem_limit": 4,
        "mem_used_max": 5, "same_pages": 6, "pages_compacted": 7,
    }  # fmt: skip
    (device,) = read_case(
        "=== /sys/block/zram0/disksize\n9\n=== /sys/block/zram0/mm_stat\n1 2 3 4\n"
    ).devices
    assert (device.mem_limit, device.same_pages, device.huge_pages) == (4, None, None)


def test_a_kernel_before_4_2_has_a_file_for_each_value() -> None:
    (device,) = read_case(
        "=== /sys/block/zram0/disksize\n4096\n=== /sys/block/zram0/orig_data_size\n100\n"
        "=== /sys/block/zram0/mem_used_total\n50\n"
    ).devices
    assert (device.orig_data_size, device.mem_used_total) == (100, 50)
    assert device.compr_data_size is None


def test_none_is_not_unread_and_unread_is_not_none() -> None:
    assert read_case("=== /sys/block/sda/size\n1\n").devices == ()
    with tree(EL8) as host:
        assert isinstance(zram.read(host), Unread)
    value = read_case(
        "=== /sys/block/zram0/disksize\n9\n=== /sys/block/zram0/mm_stat !refused\n"
        "=== /sys/block/zram1/disksize\nx\n"
    )
    assert [device.name for device in value.devices] == ["zram0"]
    assert value.devices[0].mem_used_total is None
    assert [(u.path, u.why) for u in value.unread] == [
        ("/sys/block/zram0/mm_stat", "refused"),
        ("/sys/block/zram1/disksize", "malformed"),
    ]


@pytest.mark.parametrize("data", [b"", b"1 2\n", b"1 2 x 4\n"])
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse_mm_stat(data)
