"""``seawall gpu query`` as text and as JSON: every failing call in words, with its proof."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.gpu_query import Failed, GpuQuery, Library, QueriedDevice
from seawall.views.document import head, render
from seawall.views.documents.gpu_query_document import QUERY
from seawall.views.gpu_query_page import QueryPage
from seawall.views.gpu_query_text import lines
from seawall.views.gpu_query_words import CUDA, NVML, explain
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/gpu-query.json").read_text())
HOSTILE = "H200\x1b[2J\n\udcff"
FOUND = {
    "nvml": Library("libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.590.48.01", ()),
    "cuda": Library("libcuda.so.1", "/usr/lib64/libcuda.so.590.48.01", ()),
    "runtime": Library("libcudart.so", None, (("libcudart.so", "not there"),)),
}
NONE = {
    key: Library(one.name, None, (("the loader", f"{one.name}: none"), ("/usr/lib64", "not there")))
    for key, one in FOUND.items()
}
BY_NVML = QueriedDevice(
    3, HOSTILE, "GPU-1", "00000000:19:00.0",
    {"minor": 3, "total": 150 << 30, "used": 1 << 30, "free": 149 << 30, "sm_mhz": 345,
     "most_sm_mhz": 1980, "memory_mhz": 3201, "most_memory_mhz": 3201, "power_milliwatts": 76500,
     "power_limit_milliwatts": 700000, "compute_mode": 3},
    (Failed("nvmlDeviceGetX", 3), Failed("nvmlDeviceGetY", None)),
)  # fmt: skip
BY_CUDA = QueriedDevice(
    0, "H200", "GPU-1", None,
    {"total": 149 << 30, "compute_major": 9, "compute_minor": 0, "multiprocessors": 132,
     "warp_size": 32, "l2_bytes": 50 << 20, "threads_per_block_most": 1024},
    (),
)  # fmt: skip
UVM = "/dev/nvidia-uvm: EPERM: the device cgroup of this container refuses it"


def query(**more: Any) -> GpuQuery:
    values: dict[str, Any] = {
        "libraries": FOUND, "driver_version": "590.48.01", "module_version": "590.48.01",
        "cuda_version": 13010, "runtime_version": None, "devices": (BY_NVML,),
        "cuda_devices": (BY_CUDA,), "failed": (), "environment": {}, **more,
    }  # fmt: skip
    return GpuQuery(**values)


def page(found: GpuQuery | Unread, *refused: str) -> QueryPage:
    return QueryPage(query=found, refused=refused, unseen=())


def told(made: QueryPage) -> tuple[str, dict[str, Any]]:
    """As words and as JSON."""
    text = "\n".join(lines(made, Console()))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    found = json.loads(render(QUERY.of(head("gpu-query", Unread("kernel", "absent"), None), made)))
    jsonschema.validate(found, SCHEMA)
    return " ".join(text.split()), found


def flat(made: QueryPage) -> str:
    return told(made)[0]


def test_devices_are_joined_by_uuid_and_told_in_units() -> None:
    made = page(query())
    assert len(made.devices()) == 1
    words = flat(made)
    assert words.startswith("1 device that CUDA can use, 1 that the driver manages.")
    assert "3 H200\\x1b[2J\\x0a\\xff GPU-1" in words
    assert "memory 150 GiB: 1.0 GiB used, 149 GiB free" in words
    assert "/dev/nvidia3, PCI 00000000:19:00.0, compute mode exclusive process" in words
    assert "SM 345 MHz of 1980, memory 3201 MHz of 3201; power 76 W of at most 700 W" in words
    assert "compute capability 9.0, 132 multiprocessors, warps of 32" in words
    assert "CUDA of the driver 13.1" in words
    assert "nvmlDeviceGetX" not in words, "what a device does not support is no failure"


def test_cuinit_999_is_explained_with_the_node_that_proves_it() -> None:
    failed = query(failed=(Failed("cuInit", 999),), cuda_devices=())
    words = flat(page(failed, UVM))
    assert "FAILED cuInit 999: unknown error" in words
    assert (
        "means usually a device that the library may not open: most often /dev/nvidia-uvm" in words
    )
    assert f"proof {UVM}." in words
    assert "CUDA does not see it" in words
    assert "proof nothing that was seen proves which it is." in flat(page(failed))


@pytest.mark.parametrize("call", ["cuInit", "nvmlInitWithFlags"])
def test_versions_that_differ_are_the_proof(call: str) -> None:
    code = 803 if call == "cuInit" else 18
    found = query(module_version="580.65.06", failed=(Failed(call, code),))
    explained = explain(found.failed[0], found, (UVM,))
    assert explained.name == "library and driver differ"
    assert explained.proof == (
        "/usr/lib64/libcuda.so.590.48.01 is 590.48.01, the module in the kernel is 580.65.06"
    )
    unknown = query(module_version=Unread("/proc/x", "absent"))
    assert explain(Failed(call, code), unknown, ()).proof == ""


def test_every_code_says_what_it_means() -> None:
    for codes, call in ((CUDA, "cuInit"), (NVML, "nvmlInit")):
        for code, meaning in codes.items():
            found = explain(Failed(call, code), query(), ())
            assert (found.name, found.usually) == (meaning.name, meaning.usually)
            assert len(found.usually) > 10
    odd = explain(Failed("cuInit", 4711), query(), (UVM,))
    assert (odd.name, odd.proof) == ("error 4711", UVM)


def test_a_host_without_a_driver_says_so() -> None:
    found = query(libraries=NONE, devices=(), cuda_devices=(), module_version=Unread("x", "absent"),
                  driver_version=None, cuda_version=None)  # fmt: skip
    words = flat(page(found))
    assert words.startswith("0 devices: neither libnvidia-ml.so.1 nor libcuda.so.1 was found.")
    assert "This host may simply have no NVIDIA driver." in words
    assert "Looked for libnvidia-ml.so.1 and libcuda.so.1 in: the loader: none /usr/lib64" in words
    assert "CUDA runtime" not in words


def test_fewer_devices_than_the_driver_has_are_accounted_for() -> None:
    hidden = query(cuda_devices=(), environment={"CUDA_VISIBLE_DEVICES": ""})
    assert "CUDA_VISIBLE_DEVICES= hides the others." in flat(page(hidden))
    assert "MIG, or a compute mode that prohibits it" in flat(page(query(cuda_devices=())))


def test_a_runtime_that_is_newer_than_the_driver_is_told() -> None:
    assert "CUDA 13.2 wants a driver for it, this one is for 13.1" in flat(
        page(query(runtime_version=13020))
    )
    assert "wants a driver" not in flat(page(query(runtime_version=12040)))


def test_a_driver_that_hangs_or_crashes_is_no_empty_list() -> None:
    hung = page(Unread("gpu_query", "no_answer", "a process did not let go"))
    assert flat(hung).startswith("The driver did not answer in time")
    crashed = page(Unread("gpu_query", "failed", "the reading child died"))
    assert flat(crashed) == "The driver could not be asked: the reading child died."


def test_a_driver_that_was_not_asked_is_among_what_was_not_seen() -> None:
    bundle = Unread("gpu_query", "not_captured", "the bundle does not hold it")
    other = NotSeen("/proc/devices", "refused", "root on the host")
    made = QueryPage(query=bundle, refused=(), unseen=(other,))
    found = QUERY.of(head("gpu-query", Unread("kernel", "absent"), None), made)
    jsonschema.validate(json.loads(render(found)), SCHEMA)
    first, second = found["could_not_see"]
    assert (first["what"], first["why"]) == (
        "what the driver tells of its devices", "the bundle does not hold it",
    )  # fmt: skip
    assert first["provide"].startswith("seawall gpu query on that machine itself")
    assert second["what"] == "/proc/devices"
    assert page(Unread("gpu_query", "failed", "died")).not_seen()[0].provide
    assert page(query()).not_seen() == ()
