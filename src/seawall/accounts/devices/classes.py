# SPDX-License-Identifier: Apache-2.0
"""Classes of devices: what else must be there for a device to work.  The only place with names.

nvidia: open-gpu-kernel-modules kernel-open/nvidia/nv-chrdev-numbers and nvidia-uvm/uvm.c;
nvidia-modprobe's modprobe-utils.  195 is fixed (admin-guide/devices.txt) and looked up all the
same: ``nvidia-frontend`` in /proc/devices before driver 550, ``nvidia`` and ``nvidiactl`` since.
amd: drivers/gpu/drm/amd/amdkfd/kfd_chardev.c.
Whatever is in no class needs exactly what was promised.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from seawall.readings.char_devices import CharDevices

OTHER: Final = "device"
"""What a device of no class is called."""
NOT_ASKED: Final = ("", "none", "void")
"""What the variable that asks for devices may have and ask for none."""
_NO_COMPUTE: Final = re.compile(r"(?:(?:utility|graphics|video|display|ngx|compat32)(?:,|\Z))+\Z")


class Control(NamedTuple):
    """A node beside the devices themselves."""

    path: str
    drivers: tuple[str, ...]
    """Any of these names in /proc/devices has its major."""
    minor: int
    is_needed: bool
    is_implied: bool = True
    """Whether somebody has to make the node as soon as the driver is there."""
    is_for_compute: bool = False
    """Whether utilities and graphics do without it."""
    load: str = ""
    """What loads its module, where the class's own does not."""


class DeviceClass(NamedTuple):
    """One kind of accelerator."""

    name: str
    resource: re.Pattern[str]
    """Of the kubelet, and the kind of a CDI device."""
    controls: tuple[Control, ...]
    unit: re.Pattern[str]
    """Paths of the devices themselves, of which at least one is needed."""
    unit_name: str
    unit_drivers: tuple[str, ...]
    member: re.Pattern[str]
    """Any path that is of this class."""
    plugins: tuple[str, ...]
    """Words in the names of its device plugin's pods and containers."""
    load: str
    """What loads its modules and makes its nodes."""
    module: str
    """Whose drivers, when they are not there at all, are not loaded."""
    visible: str = ""
    """The variable that asks for devices."""
    hooks: tuple[str, ...] = ()
    """Programs that give devices at start, behind the runtime's back."""
    elsewhere: tuple[str, ...] = ()
    """Nodes of hosts on which the class works in another way (Tegra, WSL): nothing is known of
    what is needed there."""
    answer: str = ""
    """How its plugin is told to name the nodes in its answer."""


NVIDIA: Final = DeviceClass(
    name="nvidia",
    resource=re.compile(r"(?:[a-z0-9.-]+\.)?nvidia\.com/(?:gpu|mig-)"),
    controls=(
        Control("/dev/nvidiactl", ("nvidiactl", "nvidia-frontend", "nvidia"), 255, True),
        Control("/dev/nvidia-uvm", ("nvidia-uvm",), 0, True, is_for_compute=True),
        Control("/dev/nvidia-uvm-tools", ("nvidia-uvm",), 1, False),
        Control(
            "/dev/nvidia-modeset",
            ("nvidia-modeset", "nvidia-frontend"),
            254,
            False,
            False,
            load="nvidia-modprobe -m",
        ),
    ),
    unit=re.compile(r"/dev/nvidia[0-9]{1,4}\Z"),
    unit_name="/dev/nvidiaN",
    unit_drivers=("nvidia", "nvidia-frontend"),
    member=re.compile(r"/dev/(?:nvidia(?:[0-9]|ctl\Z|-uvm|-modeset|-caps)|nvidia-caps/)"),
    plugins=("nvidia-device-plugin", "nvidia-gpu-device-plugin"),
    load="nvidia-modprobe -u -c 0",
    module="nvidia_uvm",
    visible="NVIDIA_VISIBLE_DEVICES",
    hooks=("nvidia-container-runtime-hook", "nvidia-container-toolkit", "nvidia-container-cli"),
    elsewhere=("/dev/nvmap", "/dev/nvhost-ctrl", "/dev/dxg"),
    answer="PASS_DEVICE_SPECS=true",
)
AMD: Final = DeviceClass(
    name="amd",
    resource=re.compile(r"amd\.com/gpu"),
    controls=(Control("/dev/kfd", ("kfd",), 0, True),),
    unit=re.compile(r"/dev/dri/renderD[0-9]{1,4}\Z"),
    unit_name="/dev/dri/renderDN",
    unit_drivers=("drm",),
    member=re.compile(r"/dev/(?:kfd\Z|dri/)"),
    plugins=("amdgpu-device-plugin", "amdgpu-dp", "amd-gpu-device-plugin"),
    load="modprobe amdgpu",
    module="amdgpu",
)
CLASSES: Final = (NVIDIA, AMD)
NEEDED: Final = frozenset(c.path for one in CLASSES for c in one.controls if c.is_needed)
"""Control nodes without which nothing of their class works."""
MIG_CAPABILITY: Final = re.compile(r"/dev/nvidia-caps/nvidia-cap([0-9]{1,10})\Z")
"""Of a MIG device there are two: its GPU instance's and its compute instance's."""
MIG_CONFIG: Final = "/dev/nvidia-caps/nvidia-cap1"
"""To make and destroy MIG devices; 2 is to watch them (/proc/driver/nvidia-caps/mig-minors)."""
IMEX_CHANNEL: Final = re.compile(r"/dev/nvidia-caps-imex-channels/channel([0-9]{1,10})\Z")
_DRIVERS: Final = (
    (MIG_CAPABILITY, ("nvidia-caps",)),
    (IMEX_CHANNEL, ("nvidia-caps-imex-channels",)),
)


def class_of_resource(resource: str) -> DeviceClass | None:
    """The device class of a Kubernetes resource name; None for one of no known class.  Names are
    ``nvidia.com/gpu``, ``nvidia.com/mig-1g.5gb``, ``k8s.device-plugin.nvidia.com/gpu``.
    """
    return next((one for one in CLASSES if one.resource.match(resource)), None)


def class_of_path(path: str) -> DeviceClass | None:
    """The device class of a path in /dev by its name alone; None for one of no known class."""
    return next((one for one in CLASSES if one.member.match(path)), None)


def class_name(path: str) -> str | None:
    """The same, of which only the name is of use."""
    found = class_of_path(path)
    return found.name if found else None


def class_of_paths(paths: Iterable[str]) -> DeviceClass | None:
    """Of the first path that is of one; /dev/dri alone is no sign of AMD's."""
    for path in paths:
        found = class_of_path(path)
        if found is not None and not path.startswith("/dev/dri/"):
            return found
    return None


def needs_compute(environment: Mapping[str, str]) -> bool:
    """False where only utilities or graphics were asked for, which work without the memory of
    CUDA's (NVIDIA_DRIVER_CAPABILITIES; the default is ``utility,compute``).
    """
    wanted = environment.get("NVIDIA_DRIVER_CAPABILITIES", "").replace(" ", "")
    return not (wanted and _NO_COMPUTE.match(wanted))


def drivers_of(path: str) -> tuple[str, ...]:
    """Names in /proc/devices under which a known path's driver registers; empty: not known."""
    for pattern, drivers in _DRIVERS:
        if pattern.match(path):
            return drivers
    for one in CLASSES:
        for control in one.controls:
            if control.path == path:
                return control.drivers
        if one.unit.match(path):
            return one.unit_drivers
    return ()


def load_of(driver: str) -> str:
    """What loads a driver and makes its nodes; empty: no class has it."""
    found = ((one, control) for one in CLASSES for control in one.controls)
    return next((c.load or one.load for one, c in found if driver in c.drivers), "")


def majors_now(drivers: CharDevices | None, names: Iterable[str]) -> tuple[int, ...]:
    """Of any of these drivers; empty: none is loaded, or it is not known."""
    if drivers is None:
        return ()
    found = dict.fromkeys(major for name in names for major in drivers.majors_of(name))
    return tuple(found)
