# SPDX-License-Identifier: Apache-2.0
"""What a failing call of the NVIDIA libraries means, what usually causes it, and what proves it.

Codes: CUresult of cuda.h, nvmlReturn_t of nvml.h.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.host.host import Unread
from seawall.readings.gpu_query import Failed, GpuQuery

About: TypeAlias = Literal["access", "versions", "driver", "other"]


class Meaning(NamedTuple):
    """What one error code of an NVIDIA library means, and what usually causes it."""

    name: str
    usually: str
    about: About
    """What kind of evidence proves it."""


_REFUSED: Final = (
    "usually a device that the library may not open: most often /dev/nvidia-uvm, missing or "
    "refused by the device cgroup, while nvidia-smi works"
)
_DIFFER: Final = (
    "the library and the kernel's module are of different drivers: after an upgrade without a "
    "reboot, or a container image that brings a libcuda of its own. Load the module that "
    "belongs to the library (reboot, or reload nvidia), or use the host's library"
)
_LOST: Final = "the device fell off the bus or hangs: look for Xid lines in dmesg; it needs a reset"
_MPS: Final = "the CUDA MPS daemon: look whether nvidia-cuda-mps-control runs, and in its log"
_BUG: Final = "a call that this library does not take: report it with the driver's version"
_NO_MODULE: Final = "the kernel's nvidia module is not loaded or not to be reached: modprobe nvidia"

CUDA: Final = {
    1: Meaning("invalid value", _BUG, "other"),
    2: Meaning("out of memory", "no memory left, on the device or on the host", "other"),
    3: Meaning("not initialized", "an earlier call failed: see that one", "other"),
    34: Meaning("stub library", "this libcuda is the toolkit's stub, made for linking: take the "
                "stubs folder out of LD_LIBRARY_PATH", "other"),
    46: Meaning("device unavailable", "another process has it exclusively, or its compute mode is "
                "prohibited", "other"),
    100: Meaning("no device", "none that may be used: none was given to this container, "
                 "CUDA_VISIBLE_DEVICES hides them, or their nodes are refused", "access"),
    101: Meaning("invalid device", "CUDA_VISIBLE_DEVICES names one that is not there", "other"),
    304: Meaning("operating system call failed", _REFUSED, "access"),
    800: Meaning("not permitted", "the device is held by another process or mode", "access"),
    801: Meaning("not supported", "this device or driver does not have it", "other"),
    802: Meaning("system not ready", "on machines with NVSwitch nvidia-fabricmanager must run, in "
                 "the driver's very version: systemctl status nvidia-fabricmanager", "driver"),
    803: Meaning("library and driver differ", _DIFFER, "versions"),
    804: Meaning("compatibility library on a device that has none", "a forward compatibility "
                 "libcuda (cuda-compat) works on data centre devices only: use the driver's own",
                 "versions"),
    805: Meaning("MPS connection failed", _MPS, "other"),
    806: Meaning("MPS call failed", _MPS, "other"),
    807: Meaning("MPS server not ready", _MPS, "other"),
    999: Meaning("unknown error", _REFUSED, "access"),
}  # fmt: skip
NVML: Final = {
    1: Meaning("uninitialized", "an earlier call failed: see that one", "other"),
    2: Meaning("invalid argument", _BUG, "other"),
    3: Meaning("not supported", "this device does not tell it", "other"),
    4: Meaning("no permission", "only root is told, or a node is refused", "access"),
    6: Meaning("not found", "there is no such device", "other"),
    9: Meaning("driver not loaded", f"{_NO_MODULE}; in a container: /dev/nvidiactl is missing",
               "access"),
    10: Meaning("timeout", _LOST, "driver"),
    12: Meaning("a library is missing", "another one of the driver's libraries was not found",
                "other"),
    13: Meaning("function not found", "an older library: it does not have the call", "other"),
    15: Meaning("device is lost", _LOST, "driver"),
    16: Meaning("device needs a reset", _LOST, "driver"),
    17: Meaning("blocked by the operating system", "a sandbox or the device cgroup refuses the "
                "driver's nodes", "access"),
    18: Meaning("library and driver differ", _DIFFER, "versions"),
    999: Meaning("unknown error", "usually /dev/nvidiactl or /dev/nvidia0 refused by the device "
                 "cgroup: access that was there at the start and was taken by a daemon-reload",
                 "access"),
}  # fmt: skip
RUNTIME_LIMIT: Final = (
    "the runtime library is newer than the driver: CUDA {runtime} wants a driver for it, this one "
    "is for {driver}. Within one major number a program runs all the same unless it uses what is "
    "new (minor version compatibility, since CUDA 11)"
)


class ExplainedFailure(NamedTuple):
    """One failing call in words."""

    call: str
    code: int | None
    """CUresult or nvmlReturn_t; None: the library has no such function."""
    name: str
    """What the code means."""
    usually: str
    """Its usual cause."""
    proof: str
    """What was seen that proves it; empty: nothing that was seen does."""


def explain(failed: Failed, query: GpuQuery, refused: tuple[str, ...]) -> ExplainedFailure:
    """``refused``: sentences about nodes that are missing or refused, as they were found."""
    if failed.code is None:
        return ExplainedFailure(
            failed.call, None, "no such function", "the library is older than this call", ""
        )
    codes = NVML if failed.call.startswith("nvml") else CUDA
    meaning = codes.get(failed.code)
    if meaning is None:
        return ExplainedFailure(
            failed.call, failed.code, f"error {failed.code}",
            "a code that is not in our table: see CUresult in cuda.h, nvmlReturn_t in nvml.h",
            "; ".join(refused),
        )  # fmt: skip
    return ExplainedFailure(
        failed.call, failed.code, meaning.name, meaning.usually, _proof(meaning, query, refused)
    )


def _proof(meaning: Meaning, query: GpuQuery, refused: tuple[str, ...]) -> str:
    if meaning.about == "access":
        return "; ".join(refused)
    if meaning.about == "versions":
        return differing(query)
    return ""


def differing(query: GpuQuery) -> str:
    """The versions of library and module, where they are not the same."""
    module = query.module_version
    if isinstance(module, Unread):
        return ""
    for key in ("cuda", "nvml"):
        path = query.libraries[key].path or ""
        version = path.rpartition(".so.")[2]
        if version.count(".") and version != module:
            return f"{path} is {version}, the module in the kernel is {module}"
    return ""


def cuda_words(version: int | None) -> str:
    """The CUDA version as people write it: ``12.4`` of 12040; ``unknown`` for None."""
    return "unknown" if version is None else f"{version // 1000}.{version % 1000 // 10}"


def compute_mode(number: int | None) -> str:
    """The device's compute mode in words, of nvmlComputeMode_t; ``unknown`` for None."""
    words = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
    return "unknown" if number is None else words.get(number, str(number))
