import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, case, content, tree

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import pressure
from seawall.readings.pressure import HostPressure, Pressure, Stall, parse

SOME = "some avg10=2.50 avg60=0.70 avg300=0.15 total=571830\n"


def test_percent_becomes_fraction_and_microseconds_seconds() -> None:
    assert parse(SOME.encode()) == Pressure(Stall(0.025, 0.007, 0.0015, 0.57183), None)


def test_cpu_has_a_full_line_since_5_13() -> None:
    value = parse(content(DEBIAN_6_1, "/proc/pressure/cpu"))
    assert value.some == Stall(0.0279, 0.007, 0.0015, 0.57183)
    assert value.full == Stall(0.0, 0.0, 0.0, 0.0)


def test_read_all_three() -> None:
    with tree(DEBIAN_6_1) as host:
        value = pressure.read(host)
    assert isinstance(value, HostPressure)
    assert isinstance(value.memory, Pressure)
    assert isinstance(value.io, Pressure)


def test_one_that_is_missing_is_named_and_the_others_are_read() -> None:
    value = pressure.read(case(f"=== /proc/pressure/io !refused\n=== /proc/pressure/cpu\n{SOME}"))
    assert isinstance(value, HostPressure)
    assert isinstance(value.cpu, Pressure)
    assert isinstance(value.io, Unread)
    assert (value.io.path, value.io.why) == ("/proc/pressure/io", "refused")
    assert isinstance(value.memory, Unread)


def test_a_kernel_without_psi_is_unread_as_a_whole() -> None:
    with tree(EL8) as host:
        value = pressure.read(host)
    assert isinstance(value, Unread)
    assert (value.path, value.why) == ("/proc/pressure", "absent")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "some"),
        (b"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "some"),
        (b"some avg10=0.00 avg60=0.00 total=0\n", "avg300"),
        (b"some avg10=nan avg60=0.00 avg300=0.00 total=0\n", "avg10"),
        (b"some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n", "total"),
    ],
)
def test_malformed(data: bytes, expected: str) -> None:
    with pytest.raises(ParseProblem, match=expected):
        parse(data)
