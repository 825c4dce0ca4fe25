import pytest
from tests.readings.kernel_files import DEBIAN_6_1, VM_6_18, content

from seawall.problems import ParseProblem
from seawall.readings import meminfo
from seawall.readings.swaps import SwapArea, parse

HEADING = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


def test_swap_on_zram() -> None:
    (area,) = parse(content(DEBIAN_6_1, "/proc/swaps")).areas
    assert area == SwapArea(
        filename="/dev/zram0", type="partition", size_bytes=131068 * 1024, used_bytes=0, priority=-2
    )
    memory = meminfo.parse(content(DEBIAN_6_1, "/proc/meminfo"))
    assert memory.swap_total == area.size_bytes


def test_no_swap_is_an_empty_tuple() -> None:
    assert parse(content(VM_6_18, "/proc/swaps")).areas == ()


def test_names_are_unescaped() -> None:
    rows = (
        rb"/var/swap\040one\040(deleted)           file    1024 512 -2" + b"\n"
        rb"/a\134b\011c\012d                       file    2 1 5" + b"\n"
        b"/dev/mapper/zram0-not                    partition 2 1 100\n"
    )
    areas = parse(HEADING + rows).areas
    assert [a.filename for a in areas] == [
        "/var/swap one (deleted)", "/a\\b\tc\nd", "/dev/mapper/zram0-not",
    ]  # fmt: skip
    assert [a.priority for a in areas] == [-2, 5, 100]
    assert (areas[0].size_bytes, areas[0].used_bytes) == (1 << 20, 1 << 19)


@pytest.mark.parametrize(
    "data",
    [b"", b"/dev/sda2 partition 1 1 1\n", HEADING + b"/dev/sda2 partition 1 x 1\n",
     HEADING + b"/dev/sda2 partition 1\n"],
)  # fmt: skip
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)
