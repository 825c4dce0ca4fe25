"""A workload's own view: what is promised from inside, and which failure that tells."""

import errno

import pytest

from seawall.accounts.devices.own_view import (
    ClassPromise,
    is_bare_all,
    paths_to_try,
    promises,
    refusals,
)
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Tried

DRIVERS = CharDevices({195: "nvidia", 511: "nvidia-uvm"}, {}, {195: ("nvidiactl",)})
ALL = ("/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia3")


def promise(paths: tuple[str, ...] = ALL, **environment: str) -> ClassPromise:
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
    assert first.mode == "F2"
    assert "the NVIDIA driver is not loaded on this host: load it there (nvidia-mod" in first.words
    assert [(one.path, one.mode) for one in rest] == [("/dev/nvidiaN", "unnamed")]
    assert "NVIDIA_VISIBLE_DEVICES=all promises a device, and none of" in rest[0].words
    half = CharDevices({195: "nvidia"}, {}, {195: ("nvidiactl",)})
    uvm = tried("/dev/nvidia-uvm", errno.ENOENT, None, None)
    (alone,) = refusals(promise(NVIDIA_VISIBLE_DEVICES="0"), (GOOD[0], uvm, *GOOD[2:]), half)
    assert "the driver nvidia-uvm is not loaded on this host" in alone.words
    unknown = refusals(promise((), NVIDIA_VISIBLE_DEVICES="all"), gone, None)
    assert unknown[0].mode == "F1", "without /proc/devices nobody can say that it is not loaded"


# --- MIG devices and IMEX channels: nodes beside the device, of which none may be refused -------

CAPS = "/dev/nvidia-caps/nvidia-cap"
CHANNEL = "/dev/nvidia-caps-imex-channels/channel"
WITH_CAPS = CharDevices(
    {195: "nvidia", 511: "nvidia-uvm", 238: "nvidia-caps", 234: "nvidia-caps-imex-channels"}, {},
    {195: ("nvidiactl",)},
)  # fmt: skip
MIG = (*ALL[:4], f"{CAPS}22", f"{CAPS}21")
MIG_UUID = "MIG-6e0b4ad5-e5cc-5c5a-b0a4-0e2a7f0e9b11"


def judged_of(paths: tuple[str, ...], refused: tuple[str, ...], **environment: str) -> list[str]:
    """Which of those that are tried are told, where ``refused`` are by the device cgroup."""
    asked = promise(paths, **environment)
    majors = {"/dev/nvidia-uvm": 511, CAPS: 238, CHANNEL: 234}
    rows = [
        tried(path, errno.EPERM * (path in refused), majors.get(path.rstrip("0123456789"), 195))
        for path in paths_to_try(asked, paths)
    ]
    return [f"{one.path} {one.mode}" for one in refusals(asked, rows, WITH_CAPS)]


@pytest.mark.parametrize("visible", [MIG_UUID, "MIG-GPU-1/3/0", "0:1", "void", "all"])
def test_a_capability_of_a_mig_device_that_is_refused_is_told(visible: str) -> None:
    told = judged_of(MIG, (f"{CAPS}21",), NVIDIA_VISIBLE_DEVICES=visible)
    assert told == [f"{CAPS}21 F1"]
    assert judged_of(MIG, (), NVIDIA_VISIBLE_DEVICES=visible) == []
    assert judged_of(MIG, MIG, NVIDIA_VISIBLE_DEVICES=visible)[-1] == f"{CAPS}22 F3"


def test_capabilities_of_others_and_of_administrators_may_refuse() -> None:
    """The host's whole /dev: 1 makes MIG devices, 2 watches them, the rest is of anybody."""
    whole = (*MIG, f"{CAPS}1", f"{CAPS}2", f"{CAPS}30", f"{CAPS}31")
    not_mine = (f"{CAPS}1", f"{CAPS}2", f"{CAPS}30", f"{CAPS}31")
    assert judged_of(whole, not_mine, NVIDIA_VISIBLE_DEVICES=MIG_UUID) == []
    assert judged_of(whole, not_mine, NVIDIA_VISIBLE_DEVICES="0") == []
    most = (*not_mine, f"{CAPS}21")
    assert f"{CAPS}21 F1" in judged_of(whole, most, NVIDIA_VISIBLE_DEVICES=MIG_UUID)
    assert paths_to_try(promise(whole, NVIDIA_VISIBLE_DEVICES=MIG_UUID), whole)[3:] == (
        f"{CAPS}21", f"{CAPS}22", f"{CAPS}30", f"{CAPS}31",
    )  # fmt: skip


def test_imex_channels_that_were_named_must_open_else_one() -> None:
    paths = (*ALL[:4], f"{CHANNEL}0", f"{CHANNEL}5")
    refused = (f"{CHANNEL}5",)
    assert judged_of(paths, refused) == []
    assert judged_of(paths, refused, NVIDIA_IMEX_CHANNELS="0,5") == [f"{CHANNEL}5 F1"]
    assert judged_of(paths[:-1], (f"{CHANNEL}0",)) == [f"{CHANNEL}0 F1"]


def test_two_thousand_channels_are_the_hosts_and_not_tried() -> None:
    some = (*ALL, *(f"{CHANNEL}{number}" for number in range(12)))
    assert paths_to_try(promise(some), some)[4:] == some[5:], "by their numbers"
    paths = (*ALL, *(f"{CHANNEL}{number}" for number in range(2048)))
    assert len(paths_to_try(promise(paths), paths)) == 4


def test_an_image_may_have_said_all() -> None:
    asked = promise((), NVIDIA_VISIBLE_DEVICES="all")
    assert is_bare_all(asked, ("/dev/null",))
    assert not is_bare_all(asked, ("/dev/null", "/dev/nvidia-uvm"))
    assert not is_bare_all(promise((), NVIDIA_VISIBLE_DEVICES="0"), ())
