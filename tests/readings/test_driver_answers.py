"""Answers of the probes about drivers, from a bundle that may hold anything, and sysfs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import parse_case
from tests.readings.parser_samples import NVIDIA_GPU, NVIDIA_VERSION, TTM_POOL

from seawall.host.host import Unread
from seawall.readings import driver_files, driver_mappings, driver_modules, driver_pools, nvml
from seawall.readings.driver_files import DriverFile, DriverFiles, Holder
from seawall.readings.driver_mappings import DriverMappings, MappedDriver
from seawall.readings.driver_modules import DriverModule, DriverModules
from seawall.readings.driver_pools import TtmPool
from seawall.readings.nvml import DeviceProcess, Nvml

ROW = {
    "pid": 7, "start_ticks": 100, "devices": [["drm", 226, 128, 2, [3, 4]]],
    "dmabufs": [[17, 9]],
}  # fmt: skip
HOLDER = Holder(7, 100, (DriverFile("drm", 226, 128, 2, (3, 4)),), ((17, 9),))
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(
            st.sampled_from(["processes", "left_out", "devices", "pid", "memory", "name"]), children
        )
    ),
    max_leaves=12,
)


class Answers:
    """A host of which every probe answers the same thing."""

    def __init__(self, answer: Any, by_argument: dict[str, Any] | None = None) -> None:
        self.answer = answer
        self.by_argument = by_argument or {}
        self.asked: list[str] = []

    def ask(self, probe: str, argument: str = "") -> Any:
        self.asked.append(argument)
        return self.by_argument.get(argument, self.answer)

    def link(self, path: str) -> str | Unread:
        if path == "/sys/dev/char/226:128/device/driver":
            return "../../../../bus/pci/drivers/amdgpu"
        return Unread(path, "absent")


def ask_all(answer: Any) -> list[Any]:
    host: Any = Answers(answer)
    files = DriverFiles({7: HOLDER}, {}, 0)
    return [driver_files.read(host), driver_mappings.read(host, files), nvml.ask(host)]


def test_holders_and_the_module_behind_the_node() -> None:
    host: Any = Answers({"processes": [ROW], "left_out": 2})
    assert driver_files.read(host) == DriverFiles({7: HOLDER}, {(226, 128): "amdgpu"}, 2)


@given(JSONS)
def test_anything_else_is_malformed_and_no_error(answer: Any) -> None:
    for found in ask_all(answer):
        if not isinstance(found, Unread):
            assert isinstance(answer, dict)
        else:
            assert found.why in ("malformed", "failed")


@pytest.mark.parametrize(
    "change",
    [{"pid": -1}, {"pid": True}, {"start_ticks": 1 << 64}, {"devices": [["drm", 226, 128, 2]]},
     {"devices": [[7, 226, 128, 2, []]]}, {"devices": [["", 226, 128, 2, []]]},
     {"devices": [["drm", 226, -1, 2, []]]}, {"dmabufs": [[1]]}, {"dmabufs": None}],
)  # fmt: skip
def test_one_bad_count_spoils_the_answer(change: dict[str, Any]) -> None:
    host: Any = Answers({"processes": [ROW | change], "left_out": 0})
    found = driver_files.read(host)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


def test_who_may_not_look_into_others_is_told_so() -> None:
    answer = json.dumps({"processes": [], "left_out": 300}).encode()
    reader = b'{"uid": 1000, "capabilities": []}'
    found = driver_files.read(case(("?driver_files", answer), ("?reader", reader)))
    assert isinstance(found, Unread)
    assert (found.path, found.why) == ("/proc/1/fd", "refused")


def test_after_silence_processes_are_asked_one_by_one() -> None:
    """One locked address space must not hide the other one's pages."""
    files = DriverFiles(
        {pid: Holder(pid, 100, (DriverFile("nvidia", 195, 0, 1, (3,)),), ()) for pid in (7, 8, 9)},
        {}, 0,
    )  # fmt: skip
    silent = Unread("driver_mappings", "no_answer", "a process did not let go")
    row = ["nvidia", 195, 0, 2, 8192, 4096, 0]
    host: Any = Answers(
        None,
        {
            "7,8,9": silent, "8": silent,
            "7": {"processes": [[7, 100, [row]]], "left_out": []},
            "9": {"processes": [[9, 555, [row]]], "left_out": []},
        },
    )  # fmt: skip
    found = driver_mappings.read(host, files)
    assert isinstance(found, DriverMappings)
    assert found.by_pid == {7: (MappedDriver("nvidia", 195, 0, 2, 8192, 4096, 0),)}, "9 is new"
    assert found.left_out == (8,)
    assert [(unread.path, unread.why) for unread in found.unread] == [
        ("/proc/8/smaps", "no_answer")
    ]


# --- sysfs, debugfs and /proc/driver ----------------------------------------------------


def case(*sections: tuple[str, bytes]) -> Any:
    text = b"".join(b"=== %s\n%s\n" % (path.encode(), data) for path, data in sections)
    return parse_case(b"why: drivers\n" + text).rounds[0]


def test_modules_that_are_loaded_and_who_uses_them() -> None:
    host = case(
        ("/sys/module/nvidia/version", b"590.48.01"),
        ("/sys/module/nvidia/refcnt", b"12"),
        ("/sys/module/nvidia/holders/nvidia_uvm", b""),
        ("/sys/module/nvidia/holders/nvidia_drm", b""),
        ("/sys/module/amdgpu/refcnt", b"0"),
        ("/sys/module/amdgpu/holders/x/y", b""),
        ("/sys/module/xe/parameters/x", b""),
        ("/sys/module/ext4/refcnt", b"1"),
        ("/proc/driver/nvidia/version", NVIDIA_VERSION),
        ("/proc/driver/nvidia/params", b"ResmanDebugLevel: 1\nEnableSystemMemoryPools: 529"),
    )
    found = driver_modules.read(host)
    assert found == DriverModules(
        by_name={
            "nvidia": DriverModule(name="nvidia", version="590.48.01", references=10),
            "amdgpu": DriverModule(name="amdgpu", version=None, references=0),
            "xe": DriverModule(name="xe", version=None, references=None),  # built in
        },
        nvidia_is_open=True,
        nvidia_pools=529,
    )


@pytest.mark.parametrize(
    ("line", "is_open"),
    [
        (b"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  595.45.04  Release", True),
        (b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22", False),
    ],
)
def test_flavour_of_nvidias_module(line: bytes, is_open: bool) -> None:
    assert driver_modules.parse_flavour(line + b"\nGCC version: gcc\n") is is_open


def test_pools_are_counted_in_pages_of_their_order() -> None:
    shrinkers = "/sys/kernel/debug/shrinker"
    host = case(
        (f"{shrinkers}/nv-sysmem-alloc-node-0-order-0-57/count", b"0 1000 0"),
        (f"{shrinkers}/nv-sysmem-alloc-node-1-order-9-61/count", b"0 0 3"),
        (f"{shrinkers}/sb-ext4-12/count", b"77 1000000"),
        ("/sys/kernel/debug/ttm/page_pool", TTM_POOL),
        ("/sys/class/drm/card0/device/mem_info_gtt_used", b"14974976"),
        ("/sys/class/drm/card0-DP-1/device/mem_info_gtt_used", b"14974976"),
        ("/sys/class/drm/card1/device/vendor", b"0x8086"),
    )
    found = driver_pools.read(host)
    assert found.nvidia_pages == 1000 + 3 * 512
    assert found.ttm == TtmPool(364, 3145728)
    assert found.gtt_used == (("card0", 14974976),)
    none = driver_pools.read(case())
    assert isinstance(none.nvidia_pages, Unread)
    assert isinstance(none.ttm, Unread)
    assert none.gtt_used == ()


# --- NVML -------------------------------------------------------------------------------

GPU = "/proc/driver/nvidia/gpus/000f:01:00.0/information"
GB10 = {
    "name": "NVIDIA GB10", "uuid": "GPU-2d", "numa_node": None, "memory": "not supported",
    "processes": [[7, 12 << 30, "compute"], [8, None, "graphics"]],
}  # fmt: skip


def nvml_of(*devices: dict[str, Any], model: bytes = NVIDIA_GPU) -> Nvml | Unread:
    answer = json.dumps({"driver_version": "580.126.09", "devices": devices}).encode()
    return nvml.read(case((GPU, model), ("?nvml", answer)))


def test_device_without_memory_of_its_own_is_unified() -> None:
    found = nvml_of(GB10)
    assert isinstance(found, Nvml)
    (device,) = found.devices
    assert device.is_unified
    assert (device.total, device.used, device.problem) == (None, None, "not supported")
    assert device.processes == (DeviceProcess(7, 12 << 30), DeviceProcess(8, None))


@pytest.mark.parametrize(
    "change",
    [{"name": "NVIDIA H200"}, {"name": "NVIDIA GH200 480GB", "numa_node": 4},
     {"name": "NVIDIA GB200"}, {"memory": "gpu is lost"}, {"numa_node": 1}],
)  # fmt: skip
def test_other_devices_are_not(change: dict[str, Any]) -> None:
    found = nvml_of(GB10 | change)
    assert isinstance(found, Nvml)
    assert not found.devices[0].is_unified


def test_ordinary_machines_are_not_asked() -> None:
    """Initialising NVML wakes devices: not for nothing."""
    asked = nvml_of(GB10, model=b"Model: \t NVIDIA H200\nIRQ: 371")
    assert isinstance(asked, Unread)
    assert asked.why == "absent"
    none = nvml.read(case())
    assert isinstance(none, Unread)
    assert (none.path, none.why) == ("/proc/driver/nvidia/gpus", "absent")


def test_driver_that_does_not_answer_is_told_in_its_own_words() -> None:
    host: Any = Answers({"problem": "library and driver differ"})
    found = nvml.ask(host)
    assert isinstance(found, Unread)
    assert (found.why, found.detail) == ("failed", "library and driver differ")
