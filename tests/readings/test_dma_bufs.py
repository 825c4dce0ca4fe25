"""dma-bufs from each of the three places that tell of them, and names that lie."""

import pytest
from tests.readings.kernel_files import case
from tests.readings.parser_samples import BUFINFO, DMABUF_FDINFO

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings.dma_bufs import DmaBuf, DmaBufs, FdInfo, parse_bufinfo, parse_fdinfo, read
from seawall.readings.driver_files import DriverFile, DriverFiles, Holder

NODE = DriverFile("dma_heap", 250, 0, 1, (5,))
OPEN = DriverFiles(
    {
        42: Holder(42, 1, (NODE,), ((17, 7), (17, 8))),
        43: Holder(43, 1, (), ((17, 3), (0, 9))),
        44: Holder(44, 1, (NODE,), ()),
    },
    {},
    0,
)
NOBODY = DriverFiles({}, {}, 0)
FDINFO = f"=== /proc/42/fdinfo/8\n{DMABUF_FDINFO.decode()}"
MAPS = """=== /proc/44/maps
7f82acd78000-7f82ad578000 rw-s 00000000 00:0c 18                         /dmabuf:camera
"""
UNREAD = Unread("driver_files", "refused")


def test_debugfs_tells_all() -> None:
    assert parse_bufinfo(BUFINFO) == {17: (8192, "system"), 18: (67108864, "udmabuf")}
    host = case(f"why: x\n=== /sys/kernel/debug/dma_buf/bufinfo\n{BUFINFO.decode()}{MAPS}")
    assert read(host, OPEN) == DmaBufs(
        (DmaBuf(17, 8192, "system", (42, 43)), DmaBuf(18, 67108864, "udmabuf", (44,))), True, 1
    )


def test_sysfs_tells_all() -> None:
    host = case(
        "why: x\n=== /sys/kernel/dmabuf/buffers/17/size\n8192\n"
        "=== /sys/kernel/dmabuf/buffers/17/exporter_name\nsystem\n"
        "=== /sys/kernel/dmabuf/buffers/19/size\nmany\n"
        "=== /sys/kernel/dmabuf/buffers/19/exporter_name\nsystem\n"
    )
    found = read(host, OPEN)
    assert isinstance(found, DmaBufs)
    assert found.buffers == (DmaBuf(17, 8192, "system", (42, 43)),)


def test_else_descriptors_tell_of_those_that_are_open() -> None:
    found = read(case(f"why: x\n{FDINFO}"), OPEN)
    assert isinstance(found, DmaBufs)
    assert found.buffers == (DmaBuf(17, 8192, "system", (42, 43)),)
    assert not found.lists_all


def test_a_refused_list_is_said() -> None:
    found = read(case(f"why: x\n=== /sys/kernel/debug/dma_buf/bufinfo !refused\n{FDINFO}"), OPEN)
    assert isinstance(found, DmaBufs)
    assert [one.why for one in found.unread] == ["refused"]
    assert len(found.buffers) == 1


def test_nothing_anywhere() -> None:
    assert read(case("why: x\n"), NOBODY) == DmaBufs((), False, 0)
    found = read(case("why: x\n"), UNREAD)
    assert isinstance(found, Unread)
    assert found.why == "absent"


def test_a_name_cannot_make_up_a_buffer() -> None:
    """DMA_BUF_SET_NAME takes 31 bytes of anything, line ends included."""
    name = b"x\n9\t0\t0\t1\tsystem\t9\t"
    lie = b"00008192\t00080002\t00080007\t00000003\tsystem\t00000017\t" + name + b"\n"
    assert parse_bufinfo(lie) == {17: (8192, "system")}
    lie = DMABUF_FDINFO + b"size:\t99\nexp_name:\tnone\n"
    assert parse_fdinfo(lie) == FdInfo(8192, "system")


@pytest.mark.parametrize("data", [b"", b"pos:\t0\nflags:\t02\n", b"size:\t-4\nexp_name:\tx\n"])
def test_a_descriptor_that_is_something_else_by_now(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse_fdinfo(data)
