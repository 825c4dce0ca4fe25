import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, VM_6_18, content

from seawall.problems import ParseProblem
from seawall.readings.diskstats import Disk, parse


def test_eighteen_columns() -> None:
    disks = parse(content(EL8, "/proc/diskstats")).disks
    assert [disk.name for disk in disks] == ["sr0", "sda", "sda1"]
    assert disks[1] == Disk(
        name="sda",
        reads_completed=8933,
        read_bytes=856916 * 512,
        reading_seconds=3.507,
        writes_completed=30254,
        written_bytes=2253152 * 512,
        writing_seconds=26.1,
        in_flight=0,
        busy_seconds=8.217,
        weighted_seconds=15.616,
    )


def test_twenty_columns() -> None:
    line = next(
        line for line in content(VM_6_18, "/proc/diskstats").decode().splitlines() if "vda" in line
    )
    assert len(line.split()) == 20
    vda = next(d for d in parse(content(VM_6_18, "/proc/diskstats")).disks if d.name == "vda")
    assert vda.reads_completed == int(line.split()[3])
    assert vda.busy_seconds == int(line.split()[12]) / 1000
    assert [disk.name for disk in parse(content(DEBIAN_6_1, "/proc/diskstats")).disks] == ["zram0"]


def test_fourteen_columns_of_kernels_before_4_18() -> None:
    line = b"   8       0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n"
    (disk,) = parse(line).disks
    assert (disk.name, disk.in_flight, disk.weighted_seconds) == ("cciss/c0d0", 9, 0.011)


def test_a_machine_without_disks() -> None:
    assert parse(b"").disks == ()


@pytest.mark.parametrize(
    "data",
    [b"8 0 sda 1 2 3 4\n", b"8 0 sda 1 2 3 4 5 6 7 8 9 10\n", b"8 0 sda 1 2 3 4 5 6 7 8 9 x 1"],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)
