"""Majors by driver, the driver by major."""

from pathlib import Path

import pytest
from tests.case_host import CaseHost
from tests.readings.device_samples import PROC_DEVICES

from seawall.host.recording import Round
from seawall.problems import ParseProblem
from seawall.readings import char_devices
from seawall.readings.char_devices import CharDevices


def test_both_sections() -> None:
    found = char_devices.parse(PROC_DEVICES)
    assert (found.char[195], found.char[234], found.char[4]) == (
        "nvidia",
        "nvidia-uvm",
        "/dev/vc/0",
    )
    assert found.block == {7: "loop", 8: "sd", 259: "blkext"}
    assert found.majors_of("nvidia-caps") == (237,)
    assert found.majors_of("loop") == ()


def test_a_major_of_three_names_is_found_by_each_of_them() -> None:
    found = char_devices.parse(PROC_DEVICES)
    for name in ("nvidia", "nvidiactl", "nvidia-modeset"):
        assert found.majors_of(name) == (195,)


def test_a_driver_of_several_majors() -> None:
    assert CharDevices({9: "a", 3: "a", 4: "b"}, {}).majors_of("a") == (3, 9)


def test_a_section_alone_and_none() -> None:
    """A kernel without block layer prints one; a file without any is another one."""
    assert char_devices.parse(b"Character devices:\n  1 mem\n").char == {1: "mem"}
    for data in (b"", b"  1 mem\n", b"nothing"):
        with pytest.raises(ParseProblem):
            char_devices.parse(data)


def test_names_may_hold_spaces_and_anything() -> None:
    found = char_devices.parse(b"Character devices:\n240 my \xff\x1b[31m device\n 7\n")
    assert found.char == {240: "my \udcff\x1b[31m device"}


def test_of_this_kernel() -> None:
    data = Path("/proc/devices").read_bytes()
    found = char_devices.read(CaseHost(Round(files={"/proc/devices": data})))
    assert isinstance(found, CharDevices)
    assert (found.char[1], found.majors_of("misc")) == ("mem", (10,))
    names = sum(1 + len(found.more.get(major, ())) for major in found.char)
    assert names == data.split(b"Block")[0].count(b"\n") - 2, "heading and blank line are no names"
