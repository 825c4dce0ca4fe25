# SPDX-License-Identifier: Apache-2.0
"""Host memory through the CUDA driver: pinned (cuMemHostAlloc), and managed, touched on the host.

The CUDA driver API, libcuda.so.1; the functions with ``_v2`` are of 3.2 (2010) and later and are
still exported by every driver.  The driver gives all of it back when the process ends.
"""

import ctypes
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Final

from seawall.lab.libraries import DriverProblem, function, load
from seawall.lab.plan import Plan

_LIBRARY: Final = "libcuda.so.1"
_PROVIDED_BY: Final = (
    "it comes with the NVIDIA driver (in a container: the nvidia runtime, with the capability "
    '"compute")'
)
_MANAGED_MEMORY: Final = 83
"""CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY."""
_ATTACH_GLOBAL: Final = 1
"""CU_MEM_ATTACH_GLOBAL."""
_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuCtxCreate_v2": (POINTER(c_void_p), c_uint, c_int),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemAllocManaged": (POINTER(c_uint64), c_size_t, c_uint),
}


class Cuda:
    """The driver with a context on its first device."""

    def __init__(self) -> None:
        self._library = load(_LIBRARY, _PROVIDED_BY)
        self._functions = {
            name: function(self._library, name, c_int, *types) for name, types in _TYPES.items()
        }
        self.call("cuInit", 0)
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        if count.value < 1:
            raise DriverProblem("the CUDA driver sees no device here")
        self.device = c_int()
        self.call("cuDeviceGet", byref(self.device), 0)
        self._context = c_void_p()
        self.call("cuCtxCreate_v2", byref(self._context), 0, self.device)

    def call(self, name: str, *arguments: Any) -> None:
        """DriverProblem unless it answers CUDA_SUCCESS."""
        status = self._functions[name](*arguments)
        if status:
            raise DriverProblem(f"{name}: {self._error(status)}")

    def _error(self, status: int) -> str:
        words = c_char_p()
        name = function(self._library, "cuGetErrorName", c_int, c_int, POINTER(c_char_p))
        if name(status, byref(words)) or not words.value:
            return f"error {status}"
        return f"{words.value.decode('utf-8', 'replace')} ({status})"

    def about(self) -> Mapping[str, Any]:
        """The device's name, free memory in bytes, and whether it has managed memory: for
        ``Driver``.
        """
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name) - 1, self.device)
        version, managed = c_int(), c_int()
        self.call("cuDriverGetVersion", byref(version))
        self.call("cuDeviceGetAttribute", byref(managed), _MANAGED_MEMORY, self.device)
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        major, minor = version.value // 1000, version.value % 1000 // 10
        words = f"{name.value.decode('utf-8', 'replace')}, CUDA {major}.{minor}"
        return {"name": words, "free_bytes": free.value, "has_managed": bool(managed.value)}

    def pinned(self, size: int) -> None:
        """Host memory that the device can reach; held until the process ends."""
        self.call("cuMemHostAlloc", byref(c_void_p()), size, 0)

    def managed(self, size: int) -> None:
        """Memory that moves between host and device, now on the host: it is written there."""
        pointer = c_uint64()
        self.call("cuMemAllocManaged", byref(pointer), size, _ATTACH_GLOBAL)
        ctypes.memset(pointer.value, 1, size)


def about_host() -> Mapping[str, Any]:
    """What the driver says; the device's memory is not touched."""
    return {**Cuda().about(), "free_bytes": None}


def about_managed() -> Mapping[str, Any]:
    """What the driver says; more managed memory than the device has free can hang it."""
    answer = Cuda().about()
    if not answer["has_managed"]:
        raise DriverProblem(f"{answer['name']}: no managed memory on this device")
    return answer


def host_taker(_plan: Plan, _note: Callable[[str], None]) -> Callable[[int], int]:
    """A taker of pinned host memory (cuMemHostAlloc): given a size in bytes, it takes so much."""
    return _taker(Cuda().pinned)


def managed_taker(_plan: Plan, _note: Callable[[str], None]) -> Callable[[int], int]:
    """By cuMemAllocManaged, touched on the host."""
    return _taker(Cuda().managed)


def _taker(allocate: Callable[[int], None]) -> Callable[[int], int]:
    def take(piece: int) -> int:
        allocate(piece)
        return piece

    return take
