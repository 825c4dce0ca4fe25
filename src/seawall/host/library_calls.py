# SPDX-License-Identifier: Apache-2.0
"""Calls into a driver's C library, and which of them failed with what.

NVML's structures and return codes: nvml.h of the CUDA toolkit.  Only calls that every library since
driver 510 has are needed; newer ones are asked where they exist.  A broken driver may hang in any
of them: whoever calls is a child that may be lost.
"""

import ctypes
from typing import Any, Final

from seawall.host.host import JSON

DEVICES_MOST: Final = 64
NO_GPUS_IS_FINE: Final = 1  # NVML_INIT_FLAG_NO_GPUS
_TEXT_BYTES: Final = 128  # NVML_DEVICE_NAME_V2_BUFFER_SIZE and _UUID_V2 are 96
_WORDS: Final = {
    None: "function not found", 1: "uninitialized", 2: "invalid argument", 3: "not supported",
    4: "no permission", 6: "not found", 9: "driver not loaded", 12: "library not found",
    13: "function not found", 15: "gpu is lost", 16: "reset required",
    17: "blocked by the operating system", 18: "library and driver differ", 999: "unknown error",
}  # fmt: skip
"""By nvmlReturn_t."""


class NvmlMemory(ctypes.Structure):
    """A device's memory in bytes: nvmlMemory_t of nvml.h."""

    _fields_ = (
        ("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong),
    )  # fmt: skip


class LibraryCalls:
    """Calls into one library; what failed is kept: [name, code], None where it has no such call."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.failed: list[JSON] = []

    def ask(self, name: str, *given: Any) -> bool:
        """Calls a function of the library; whether it is there and returned 0."""
        function = getattr(self.library, name, None)
        code = None if function is None else function(*given)
        if code == 0:
            return True
        self.failed.append([name, code])
        return False

    def number(self, name: str, *given: Any, kind: Any = ctypes.c_uint) -> int | None:
        """What a call writes into its last parameter."""
        found = kind()
        return int(found.value) if self.ask(name, *given, ctypes.byref(found)) else None

    def text(self, name: str, *given: Any) -> str | None:
        """What a call of NVML writes into a buffer and is told the length of."""
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        if not self.ask(name, *given, buffer, ctypes.c_uint(_TEXT_BYTES)):
            return None
        return buffer.value.decode("utf-8", "backslashreplace")

    def memory(self, device: ctypes.c_void_p) -> dict[str, JSON] | None:
        """{"total", "free", "used"} of a device of NVML, bytes."""
        found = NvmlMemory()
        if not self.ask("nvmlDeviceGetMemoryInfo", device, ctypes.byref(found)):
            return None
        return {"total": found.total, "free": found.free, "used": found.used}

    def others(self) -> "LibraryCalls":
        """Of one device, with failures of its own."""
        return LibraryCalls(self.library)

    @property
    def code(self) -> int | None:
        """Of the call that failed last."""
        match self.failed[-1]:
            case [_, int() as code]:
                return code
        return None

    def why(self) -> str:
        """Words for it, where it was one of NVML."""
        return _WORDS.get(self.code, f"error {self.code}")
