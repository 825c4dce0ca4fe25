# SPDX-License-Identifier: Apache-2.0
"""What the NVIDIA driver itself says of its devices, through its library libnvidia-ml.so.1.

A broken driver may hang in any of the calls: the expendable child asks.
"""

import ctypes
from collections.abc import Callable
from errno import ENOENT
from typing import Final

from seawall.host.host import JSON
from seawall.host.library_calls import DEVICES_MOST, NO_GPUS_IS_FINE, LibraryCalls

LIBRARY: Final = "libnvidia-ml.so.1"
_PROCESSES_MOST: Final = 4096
_PROCESSES_FIRST: Final = 256
_INSUFFICIENT_SIZE: Final = 7
_NOT_AVAILABLE: Final = (1 << 64) - 1


class _ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_v2_t, which the functions ending in _v2 fill, and nearly all in _v3."""

    _fields_ = (
        ("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint), ("computeInstanceId", ctypes.c_uint),
    )  # fmt: skip


def devices(_: str = "") -> JSON:
    """{"driver_version", "devices": [{"name", "uuid", "numa_node", "memory", "processes"}]}.

    ``memory``: {"total", "free", "used"} in bytes, or the words why not; ``processes``:
    [[pid, bytes or None, "compute" or "graphics"], ...] or such words; ``numa_node``: None
    where the device's memory is no node.  {"problem": words} when the driver does not let
    itself be asked; OSError without the library.
    """
    return ask_nvml(
        lambda calls, count: {
            "driver_version": calls.text("nvmlSystemGetDriverVersion"),
            "devices": [_device(calls, number) for number in range(count)],
        }
    )


def ask_nvml(read: Callable[[LibraryCalls, int], JSON]) -> JSON:
    """What ``read`` makes of the library and the number of devices, DEVICES_MOST at most;
    {"problem": words} when the driver does not let itself be asked; OSError without the library.
    """
    try:
        calls = LibraryCalls(ctypes.CDLL(LIBRARY))
    except OSError as error:
        raise OSError(ENOENT, str(error), LIBRARY) from None
    if not calls.ask("nvmlInitWithFlags", NO_GPUS_IS_FINE):
        return {"problem": calls.why()}
    try:
        count = calls.number("nvmlDeviceGetCount_v2")
        if count is None:
            return {"problem": calls.why()}
        return read(calls, min(count, DEVICES_MOST))
    finally:
        calls.ask("nvmlShutdown")


def _device(calls: LibraryCalls, number: int) -> JSON:
    device = ctypes.c_void_p()
    if not calls.ask("nvmlDeviceGetHandleByIndex_v2", number, ctypes.byref(device)):
        return {"name": None, "uuid": None, "numa_node": None, "memory": calls.why(),
                "processes": calls.why()}  # fmt: skip
    return {
        "name": calls.text("nvmlDeviceGetName", device),
        "uuid": calls.text("nvmlDeviceGetUUID", device),
        "numa_node": calls.number("nvmlDeviceGetNumaNodeId", device),  # since driver 525
        "memory": calls.memory(device) or calls.why(),
        "processes": _processes(calls, device),
    }


def _processes(calls: LibraryCalls, device: ctypes.c_void_p) -> JSON:
    rows: list[JSON] = []
    for kind in ("compute", "graphics"):
        running = _running(calls, f"nvmlDeviceGet{kind.capitalize()}RunningProcesses", device)
        if running is None:
            return calls.why()
        for row in running:
            used = None if row.usedGpuMemory == _NOT_AVAILABLE else row.usedGpuMemory
            rows.append([row.pid, used, kind])
    return rows


def _running(
    calls: LibraryCalls, function: str, device: ctypes.c_void_p
) -> list[_ProcessInfo] | None:
    """By the version whose structure never changed: _v3 of drivers 535.43 to 535.86 writes one
    that is longer.
    """
    version = "_v2" if hasattr(calls.library, f"{function}_v2") else "_v3"
    room = _PROCESSES_FIRST
    while True:
        rows = (_ProcessInfo * room)()
        count = ctypes.c_uint(room)
        if calls.ask(function + version, device, ctypes.byref(count), rows):
            return list(rows[: min(count.value, room)])
        if calls.code != _INSUFFICIENT_SIZE or room >= _PROCESSES_MOST:
            return None
        room = min(_PROCESSES_MOST, max(room * 2, count.value + 16))
