# SPDX-License-Identifier: Apache-2.0
"""What the NVIDIA driver itself says of its devices, through its library libnvidia-ml.so.1.

NVML's names, structures and return codes: nvml.h of the CUDA toolkit.  Only calls that every
library since driver 510 has are needed; newer ones are asked where they exist.  A broken
driver may hang in any of them: the expendable child asks.
"""

import ctypes
from errno import ENOENT
from typing import Final

from seawall.host.host import JSON

LIBRARY: Final = "libnvidia-ml.so.1"
_NO_GPUS_IS_FINE: Final = 1  # NVML_INIT_FLAG_NO_GPUS
_DEVICES_MOST: Final = 64
_PROCESSES_MOST: Final = 4096
_PROCESSES_FIRST: Final = 256
_INSUFFICIENT_SIZE: Final = 7
_NOT_AVAILABLE: Final = (1 << 64) - 1
_WORDS: Final = {
    1: "uninitialized", 2: "invalid argument", 3: "not supported", 4: "no permission",
    6: "not found", 9: "driver not loaded", 12: "library not found", 13: "function not found",
    15: "gpu is lost", 16: "reset required", 17: "blocked by the operating system",
    18: "library and driver differ", 999: "unknown error",
}  # fmt: skip


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (
        ("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong),
    )  # fmt: skip


class _ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_v2_t, which the functions ending in _v2 fill, and nearly all in _v3."""

    _fields_ = (
        ("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint), ("computeInstanceId", ctypes.c_uint),
    )  # fmt: skip


class _NvmlError(Exception):
    """A call that did not return NVML_SUCCESS."""

    def __init__(self, code: int) -> None:
        super().__init__(_WORDS.get(code, f"error {code}"))
        self.code = code


def devices(_: str = "") -> JSON:
    """{"driver_version", "devices": [{"name", "uuid", "numa_node", "memory", "processes"}]}.

    ``memory``: {"total", "free", "used"} in bytes, or the words why not; ``processes``:
    [[pid, bytes or None, "compute" or "graphics"], ...] or such words; ``numa_node``: None
    where the device's memory is no node.  {"problem": words} when the driver does not let
    itself be asked; OSError without the library.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise OSError(ENOENT, str(error), LIBRARY) from None
    try:
        _check(library.nvmlInitWithFlags(_NO_GPUS_IS_FINE))
        try:
            return _asked(library)
        finally:
            library.nvmlShutdown()
    except (_NvmlError, AttributeError) as error:  # the latter: a function it does not have
        return {"problem": str(error)}


def _asked(library: ctypes.CDLL) -> JSON:
    count = ctypes.c_uint()
    _check(library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
    numbers = range(min(count.value, _DEVICES_MOST))
    return {
        "driver_version": _text(library, "nvmlSystemGetDriverVersion"),
        "devices": [_device(library, number) for number in numbers],
    }


def _device(library: ctypes.CDLL, number: int) -> JSON:
    device = ctypes.c_void_p()
    try:
        _check(library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(device)))
    except _NvmlError as error:
        return {"name": None, "uuid": None, "numa_node": None, "memory": str(error),
                "processes": str(error)}  # fmt: skip
    return {
        "name": _text(library, "nvmlDeviceGetName", device),
        "uuid": _text(library, "nvmlDeviceGetUUID", device),
        "numa_node": _numa_node(library, device),
        "memory": _memory(library, device),
        "processes": _processes(library, device),
    }


def _memory(library: ctypes.CDLL, device: ctypes.c_void_p) -> JSON:
    found = _Memory()
    try:
        _check(library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(found)))
    except _NvmlError as error:
        return str(error)
    return {"total": found.total, "free": found.free, "used": found.used}


def _numa_node(library: ctypes.CDLL, device: ctypes.c_void_p) -> JSON:
    """Since driver 525; None where the library is older as well."""
    node = ctypes.c_uint()
    try:
        _check(library.nvmlDeviceGetNumaNodeId(device, ctypes.byref(node)))
    except (_NvmlError, AttributeError):
        return None
    return node.value


def _processes(library: ctypes.CDLL, device: ctypes.c_void_p) -> JSON:
    found: list[JSON] = []
    for kind in ("compute", "graphics"):
        function = f"nvmlDeviceGet{kind.capitalize()}RunningProcesses"
        try:
            rows = _running(library, function, device)
        except _NvmlError as error:
            return str(error)
        for row in rows:
            used = None if row.usedGpuMemory == _NOT_AVAILABLE else row.usedGpuMemory
            found.append([row.pid, used, kind])
    return found


def _running(library: ctypes.CDLL, function: str, device: ctypes.c_void_p) -> list[_ProcessInfo]:
    """By the version whose structure never changed: _v3 of drivers 535.43 to 535.86 writes one
    that is longer.
    """
    for version in ("_v2", "_v3"):
        if hasattr(library, function + version):
            ask = getattr(library, function + version)
            break
    else:
        raise _NvmlError(13)
    room = _PROCESSES_FIRST
    while True:
        rows = (_ProcessInfo * room)()
        count = ctypes.c_uint(room)
        code = ask(device, ctypes.byref(count), rows)
        if code != _INSUFFICIENT_SIZE or room >= _PROCESSES_MOST:
            _check(code)
            return list(rows[: min(count.value, room)])
        room = min(_PROCESSES_MOST, max(room * 2, count.value + 16))


def _text(library: ctypes.CDLL, function: str, device: ctypes.c_void_p | None = None) -> JSON:
    buffer = ctypes.create_string_buffer(96)  # NVML_DEVICE_NAME_V2_BUFFER_SIZE and _UUID_V2
    given = () if device is None else (device,)
    try:
        _check(getattr(library, function)(*given, buffer, ctypes.c_uint(len(buffer))))
    except _NvmlError:
        return None
    return buffer.value.decode("utf-8", "backslashreplace")


def _check(code: int) -> None:
    if code:
        raise _NvmlError(code)
