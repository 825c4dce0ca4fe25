# SPDX-License-Identifier: Apache-2.0
"""The probe ``gpu_query``: devices as the NVIDIA driver's own libraries tell of them.

NVML: nvml.h; the driver API: cuda.h; the runtime's version: cuda_runtime_api.h, all of the CUDA
toolkit.  No context is made, so nothing is taken from a device, but initialising may wake it for
seconds, and a broken driver may hang: the expendable child asks.  A call that fails is kept with
its code and the rest is asked all the same.
"""

import ctypes
import os
from typing import Final

from seawall.host.gpu_libraries import RUNTIME_FOLDERS, RUNTIME_NAMES, Loaded, load
from seawall.host.host import JSON
from seawall.host.library_calls import DEVICES_MOST, NO_GPUS_IS_FINE, LibraryCalls

_TEXT_BYTES: Final = 128
_CLOCKS: Final = {"sm_mhz": 1, "memory_mhz": 2}  # NVML_CLOCK_SM, NVML_CLOCK_MEM
_ATTRIBUTES: Final = {  # CUdevice_attribute
    "threads_per_block_most": 1, "constant_bytes": 9, "warp_size": 10, "clock_khz": 13,
    "multiprocessors": 16, "memory_clock_khz": 36, "memory_bus_bits": 37, "l2_bytes": 38,
    "threads_per_multiprocessor_most": 39, "compute_major": 75, "compute_minor": 76,
}  # fmt: skip
_ENVIRONMENT: Final = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY", "LD_LIBRARY_PATH",
)  # fmt: skip


class _Pci(ctypes.Structure):
    """A device's PCI address: nvmlPciInfo_t of nvml.h, as nvmlDeviceGetPciInfo_v3 fills it."""

    _fields_ = (
        ("legacy", ctypes.c_char * 16), ("domain", ctypes.c_uint), ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint), ("id", ctypes.c_uint), ("subsystem", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )  # fmt: skip


class _Uuid(ctypes.Structure):
    """A device's UUID, 16 bytes: CUuuid of cuda.h."""

    _fields_ = (("bytes", ctypes.c_ubyte * 16),)


def gpu_query(_: str = "") -> JSON:
    """See readings/gpu_query.py for its shape."""
    nvml, cuda = load(("libnvidia-ml.so.1",)), load(("libcuda.so.1",))
    runtime = load(RUNTIME_NAMES, RUNTIME_FOLDERS)
    version = None
    if runtime.library is not None:
        calls = LibraryCalls(runtime.library)
        version = calls.number("cudaRuntimeGetVersion", kind=ctypes.c_int)
    return {
        "libraries": {
            "nvml": library_row(nvml),
            "cuda": library_row(cuda),
            "runtime": library_row(runtime),
        },
        **answer_of(nvml, cuda),
        "runtime_version": version,
    }


def answer_of(nvml: Loaded, cuda: Loaded) -> dict[str, JSON]:
    """What the two libraries say, once they are loaded."""
    return {
        "nvml": None if nvml.library is None else _nvml(LibraryCalls(nvml.library)),
        "cuda": None if cuda.library is None else _cuda(LibraryCalls(cuda.library)),
        "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    }


def library_row(loaded: Loaded) -> dict[str, JSON]:
    """Which library it is, or where it was looked for."""
    tried: list[JSON] = [[place, words] for place, words in loaded.attempts]
    return {"name": loaded.name, "path": loaded.path, "tried": tried}


# --- NVML ------------------------------------------------------------------------------


def _nvml(calls: LibraryCalls) -> JSON:
    answer: dict[str, JSON] = {"driver_version": None, "cuda_version": None, "devices": []}
    if calls.ask("nvmlInitWithFlags", NO_GPUS_IS_FINE):
        answer["driver_version"] = calls.text("nvmlSystemGetDriverVersion")
        answer["cuda_version"] = calls.number(
            "nvmlSystemGetCudaDriverVersion_v2", kind=ctypes.c_int
        )
        count = calls.number("nvmlDeviceGetCount_v2") or 0
        answer["devices"] = [
            _nvml_device(calls.others(), n) for n in range(min(count, DEVICES_MOST))
        ]
        calls.library.nvmlShutdown()
    return {**answer, "failed": calls.failed}


def _nvml_device(calls: LibraryCalls, index: int) -> JSON:
    device = ctypes.c_void_p()
    told: dict[str, JSON] = {"index": index, "failed": calls.failed}
    if not calls.ask("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device)):
        return told
    told["name"] = calls.text("nvmlDeviceGetName", device)
    told["uuid"] = calls.text("nvmlDeviceGetUUID", device)
    told["minor"] = calls.number("nvmlDeviceGetMinorNumber", device)
    pci = _Pci()
    if calls.ask("nvmlDeviceGetPciInfo_v3", device, ctypes.byref(pci)):
        told["bus_id"] = pci.bus_id.decode("ascii", "backslashreplace")
    told |= calls.memory(device) or {}
    for name, kind in _CLOCKS.items():
        told[name] = calls.number("nvmlDeviceGetClockInfo", device, kind)
        told[f"most_{name}"] = calls.number("nvmlDeviceGetMaxClockInfo", device, kind)
    told["power_limit_milliwatts"] = calls.number("nvmlDeviceGetEnforcedPowerLimit", device)
    told["power_milliwatts"] = calls.number("nvmlDeviceGetPowerUsage", device)
    told["compute_mode"] = calls.number("nvmlDeviceGetComputeMode", device)
    return told


# --- the driver API --------------------------------------------------------------------


def _cuda(calls: LibraryCalls) -> JSON:
    devices: list[JSON] = []
    version = calls.number("cuDriverGetVersion", kind=ctypes.c_int)
    if calls.ask("cuInit", 0):
        count = calls.number("cuDeviceGetCount", kind=ctypes.c_int) or 0
        devices = [_cuda_device(calls.others(), n) for n in range(min(count, DEVICES_MOST))]
    return {"version": version, "devices": devices, "failed": calls.failed}


def _cuda_device(calls: LibraryCalls, index: int) -> JSON:
    device = ctypes.c_int()
    told: dict[str, JSON] = {"index": index, "failed": calls.failed}
    if not calls.ask("cuDeviceGet", ctypes.byref(device), index):
        return told
    buffer, total, uuid = ctypes.create_string_buffer(_TEXT_BYTES), ctypes.c_size_t(), _Uuid()
    if calls.ask("cuDeviceGetName", buffer, _TEXT_BYTES, device):
        told["name"] = buffer.value.decode("utf-8", "backslashreplace")
    # _v2 (since 11.4) tells a MIG instance's own; before it there is the whole device's.
    version = "_v2" if hasattr(calls.library, "cuDeviceGetUuid_v2") else ""
    if calls.ask(f"cuDeviceGetUuid{version}", ctypes.byref(uuid), device):
        told["uuid"] = _uuid_text(bytes(uuid.bytes))
    if calls.ask("cuDeviceTotalMem_v2", ctypes.byref(total), device):
        told["total"] = total.value
    for name, attribute in _ATTRIBUTES.items():
        number = ctypes.c_int()
        if calls.ask("cuDeviceGetAttribute", ctypes.byref(number), attribute, device):
            told[name] = number.value
    return told


def _uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
