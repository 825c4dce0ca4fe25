# SPDX-License-Identifier: Apache-2.0
"""What people call the driver behind a device node, and what the node is called."""

from collections.abc import Mapping
from typing import Final

from seawall.readings.driver_files import DriverFile

NVIDIA: Final = "the NVIDIA driver"
AMD: Final = "the amdgpu driver"
TTM: Final = "the TTM graphics drivers"
_FAMILIES: Final = {"kfd": AMD}
_OF_MODULES: Final = {"nvidia": NVIDIA, "nvidia-drm": NVIDIA, "amdgpu": AMD}
_NVIDIA_CONTROL_MINOR: Final = 255
_NVIDIA_MODESET_MINOR: Final = 254
_RENDER_MINOR: Final = 128
_UVERBS_MINOR: Final = 192
UVM: Final = "nvidia-uvm"


def driver_of(file: DriverFile, module_of: Mapping[tuple[int, int], str]) -> str:
    """``the amdgpu driver``; by the module that is bound to the device where that is known."""
    module = module_of.get((file.major, file.minor))
    if module is not None:
        return _OF_MODULES.get(module, f"the {module} driver")
    name = file.driver.removeprefix("misc:")
    if name.startswith("nvidia"):
        return NVIDIA
    return _FAMILIES.get(name, f"the {name} driver")


def node_name(file: DriverFile) -> str:
    """The name that the node has on an ordinary host; the process may call it otherwise."""
    number = file.minor
    match file.driver:
        case "nvidia" | "nvidia-frontend" | "nvidiactl" | "nvidia-modeset":
            if number == _NVIDIA_CONTROL_MINOR:
                return "/dev/nvidiactl"
            is_modeset = number == _NVIDIA_MODESET_MINOR
            return "/dev/nvidia-modeset" if is_modeset else f"/dev/nvidia{number}"
        case "nvidia-uvm":
            return "/dev/nvidia-uvm" if number == 0 else "/dev/nvidia-uvm-tools"
        case "drm":
            kind = "card" if number < _RENDER_MINOR else "renderD"
            return f"/dev/dri/{kind}{number}"
        case "accel":
            return f"/dev/accel/accel{number}"
        case "infiniband_verbs":
            return f"/dev/infiniband/uverbs{max(0, number - _UVERBS_MINOR)}"
        case "kfd":
            return "/dev/kfd"
    name = file.driver.removeprefix("misc:")
    return f"/dev/{name}" if ":" in file.driver else f"a {name} device ({file.major}:{number})"
