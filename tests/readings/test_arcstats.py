import pytest
from tests.readings.kernel_files import case, content

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import arcstats
from seawall.readings.arcstats import parse

DATA = content("zfs", arcstats.PATH)


def row(name: str) -> int:
    return next(int(line.split()[2]) for line in DATA.decode().splitlines()
                if line.split()[0] == name)  # fmt: skip


def test_size_and_what_of_it_lies_in_slab() -> None:
    value = parse(DATA)
    assert (value.size, value.c) == (33743421984, 33676691456)
    assert (value.c_min, value.c_max) == (2104793216, 33676691456)
    assert value.slab_bytes == 192501600 + 1853657152 + 743366784 + 595791360


def test_the_rest_is_what_zfs_says_of_its_buffers() -> None:
    value = parse(DATA)
    assert value.slab_bytes is not None
    outside = value.size - value.slab_bytes
    assert outside == row("data_size") + row("metadata_size") + row("abd_chunk_waste_size")


def test_before_0_8_one_sum_stands_for_dnodes_dbufs_and_bonus() -> None:
    base = b"size 4 100\nc 4 1\nc_min 4 1\nc_max 4 1\n"
    assert parse(base + b"hdr_size 4 7\nother_size 4 20\n").slab_bytes == 27
    assert parse(base + b"dnode_size 4 3\nother_size 4 20\n").slab_bytes == 3
    assert parse(base).slab_bytes is None


def test_a_host_without_zfs() -> None:
    value = arcstats.read(case("why: none\n"))
    assert isinstance(value, Unread)
    assert value.why == "absent"


@pytest.mark.parametrize(
    "data", [b"", b"size 4 1\n", DATA.replace(b"33743421984", b"-1"), DATA.replace(b"c_max ", b"")]
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)
