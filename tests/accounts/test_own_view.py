"""A workload's own view: what is promised from inside, and which failure that tells."""

import errno

import pytest

from seawall.accounts.devices.own_view import Promise, paths_to_try, promises, refusals
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Tried

DRIVERS = CharDevices({195: "nvidia", 511: "nvidia-uvm"}, {}, {195: ("nvidiactl",)})
ALL = ("/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia3")


def promise(paths: tuple[str, ...] = ALL, **environment: str) -> Promise:
    (found,) = promises(environment, paths)
    return found


def tried(path: str, code: int = 0, major: int | None = 195, kind: str | None = "c") -> Tried:
    return Tried(path, code, kind, major, 0, 0o666, None)


def judged(*rows: Tried, paths: tuple[str, ...] = ALL, **environment: str) -> list[tuple[str, str]]:
    found = refusals(promise(paths, **environment), rows, DRIVERS)
    return [(one.path, one.mode) for one in found]


GOOD = (
    tried("/dev/nvidiactl"), tried("/dev/nvidia-uvm", major=511), tried("/dev/nvidia0"),
    tried("/dev/nvidia3"),
)  # fmt: skip


def test_nothing_is_promised_where_nothing_says_so() -> None:
    assert promises({}, ("/dev/null", "/dev/dri/renderD128")) == ()
    for word in ("", "none", "void"):
        assert promises({"NVIDIA_VISIBLE_DEVICES": word}, ()) == ()


def test_who_promises_and_how_much() -> None:
    asked = promise((), NVIDIA_VISIBLE_DEVICES="0,3")
    assert (asked.by, asked.units) == ("NVIDIA_VISIBLE_DEVICES=0,3", 2)
    assert promise((), NVIDIA_VISIBLE_DEVICES="all").units == 1
    assert promise((), NVIDIA_VISIBLE_DEVICES="MIG-1,MIG-2").units == 1
    cdi = promise(ALL, NVIDIA_VISIBLE_DEVICES="void")
    assert (cdi.by, cdi.device_class.name) == ("/dev/nvidiactl", "nvidia")
    amd = promise(("/dev/kfd", "/dev/dri/renderD128"))
    assert (amd.by, amd.controls) == ("/dev/kfd", ("/dev/kfd",))
    assert [one.by for one in promises({}, (), ["nvidia"])] == ["--need"]


def test_graphics_alone_need_no_memory_of_cudas() -> None:
    asked = promise(NVIDIA_VISIBLE_DEVICES="all", NVIDIA_DRIVER_CAPABILITIES="graphics,display")
    assert asked.controls == ("/dev/nvidiactl",)
    assert paths_to_try(promise(), ALL) == (
        "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia3",
    )  # fmt: skip


def test_what_answers_is_no_refusal() -> None:
    assert judged(*GOOD) == []
    assert judged(*GOOD, NVIDIA_VISIBLE_DEVICES="0,3") == []


def test_devices_of_others_may_refuse() -> None:
    """A mounted /dev has every device of the host; one of its own is enough."""
    rows = (*GOOD[:3], tried("/dev/nvidia3", errno.EPERM))
    assert judged(*rows, NVIDIA_VISIBLE_DEVICES="0") == []
    assert judged(*rows, NVIDIA_VISIBLE_DEVICES="0,3") == [("/dev/nvidia3", "F1")]


@pytest.mark.parametrize(
    ("uvm", "mode"),
    [
        (tried("/dev/nvidia-uvm", errno.EPERM, 511), "F1"),
        (tried("/dev/nvidia-uvm", errno.ENOENT, None, None), "F1"),
        (tried("/dev/nvidia-uvm", errno.EPERM, 510), "F10"),
        (tried("/dev/nvidia-uvm", 0, 511)._replace(open_errno=errno.ENXIO), "F10"),
        (tried("/dev/nvidia-uvm", errno.EACCES, 511), "mode"),
        (tried("/dev/nvidia-uvm", 0, 511)._replace(open_errno=errno.EIO), "unnamed"),
        (tried("/dev/nvidia-uvm", 0, None, "other"), "unnamed"),
    ],
)
def test_the_failure_that_is_seen_from_inside(uvm: Tried, mode: str) -> None:
    assert judged(GOOD[0], uvm, *GOOD[2:]) == [("/dev/nvidia-uvm", mode)]


def test_all_taken_at_once_is_a_daemon_reload() -> None:
    rows = [one._replace(errno=errno.EPERM) for one in GOOD]
    assert {mode for _, mode in judged(*rows)} == {"F3"}


def test_a_driver_that_is_not_loaded_is_said() -> None:
    bare = CharDevices({1: "mem"}, {}, {})
    gone = (tried("/dev/nvidiactl", errno.ENOENT, None, None),)
    (first, *rest) = refusals(promise((), NVIDIA_VISIBLE_DEVICES="all"), gone, bare)
    assert (first.mode, "nvidiactl is not loaded" in first.words) == ("F2", True)
    assert [(one.path, one.mode) for one in rest] == [("/dev/nvidiaN", "unnamed")]
    assert "NVIDIA_VISIBLE_DEVICES=all promises a device, and none of" in rest[0].words
    unknown = refusals(promise((), NVIDIA_VISIBLE_DEVICES="all"), gone, None)
    assert unknown[0].mode == "F1", "without /proc/devices nobody can say that it is not loaded"
