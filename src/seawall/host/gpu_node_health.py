# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's GPUs as a node's health needs them: memory that nobody holds, rows to be remapped.

A broken driver may hang in any call: a child asks (``library_calls.py``).  A first call without
persistence mode takes a second or more.
"""

import ctypes
from typing import Final

from seawall.host.host import JSON
from seawall.host.library_calls import LibraryCalls
from seawall.host.nvml import ask_nvml

_UNCORRECTED: Final = 1  # NVML_MEMORY_ERROR_TYPE_UNCORRECTED
_SINCE_LOAD: Final = 0  # NVML_VOLATILE_ECC
_PROCESSES_FIRST: Final = 0
_INSUFFICIENT_SIZE: Final = 7


def gpu_node_health() -> JSON:
    """{"devices": [...]}; {"problem": words} where the driver does not let itself be asked;
    OSError without the library.
    """
    return ask_nvml(
        lambda calls, count: {"devices": [_device(calls, index) for index in range(count)]}
    )


def _device(calls: LibraryCalls, index: int) -> JSON:
    device = ctypes.c_void_p()
    if not calls.ask("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device)):
        return {"index": index, "problem": calls.why()}
    told: dict[str, JSON] = {
        "index": index,
        "uncorrected": calls.number(
            "nvmlDeviceGetTotalEccErrors", device, _UNCORRECTED, _SINCE_LOAD,
            kind=ctypes.c_ulonglong,
        ),
        "has_processes": _has_processes(calls, device),
    } | (calls.memory(device) or {})  # fmt: skip
    corrected, uncorrected, pending, failure = (ctypes.c_uint() for _ in range(4))
    if calls.ask(
        "nvmlDeviceGetRemappedRows", device, ctypes.byref(corrected), ctypes.byref(uncorrected),
        ctypes.byref(pending), ctypes.byref(failure),
    ):  # fmt: skip
        told["remap_pending"], told["remap_failed"] = bool(pending.value), bool(failure.value)
    return told


def _has_processes(calls: LibraryCalls, device: ctypes.c_void_p) -> bool | None:
    """Asked with room for none: the answer says whether there are any."""
    for name in ("nvmlDeviceGetComputeRunningProcesses_v2",
                 "nvmlDeviceGetGraphicsRunningProcesses_v2"):  # fmt: skip
        count = ctypes.c_uint(_PROCESSES_FIRST)
        if calls.ask(name, device, ctypes.byref(count), None):
            continue
        if calls.failed[-1] == [name, _INSUFFICIENT_SIZE]:
            return True
        return None
    return False
