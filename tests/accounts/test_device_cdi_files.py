"""Who writes a CDI file anew: with its own path, by the pod that writes it, or by nobody known."""

import pytest
from tests.accounts.device_worlds import NVIDIA, World, only, spec

from seawall.accounts.devices.classes import load_of
from seawall.accounts.devices.reasons import cdi_files
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiNode, CdiSpec, CdiSpecs
from seawall.readings.char_devices import CharDevices

UVM = "/dev/nvidia-uvm"
ETC = "/etc/cdi/nvidia.yaml"
TYPED = f"nvidia-ctk cdi generate --output={ETC}"
GIVEN = only("/dev/nvidiactl", UVM, "/dev/nvidia1")


def specs(
    kind: str = "nvidia.com/gpu", source: str = ETC, major: int | None = None,
    paths: tuple[str, ...] = ("/dev/nvidiactl", UVM),
) -> CdiSpecs:  # fmt: skip
    common = tuple(CdiNode(path, path, major if path == UVM else None, 0) for path in paths)
    devices = {"1": (CdiNode("/dev/nvidia1", "/dev/nvidia1", None, None),)}
    return CdiSpecs((CdiSpec(source=source, kind=kind, common=common, devices=devices),))


def renumbered(told: CdiSpecs) -> World:
    """nvidia-uvm was loaded again; the container was started from the file of before."""
    host = {**NVIDIA, UVM: ("c", 511, 0), "/dev/nvidia-uvm-tools": ("c", 511, 1)}
    return World(
        specs=spec(GIVEN, cdi_names=(f"{told.specs[0].kind}=1",)), own=GIVEN, cdi=told, host=host,
        drivers=CharDevices({195: "nvidia-frontend", 511: "nvidia-uvm"}, {}),
        kernel=("c 195:255 rw", "c 195:1 rw", "c 237:0 rw"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "source", "words", "command"),
    [
        ("nvidia.com/gpu", ETC, f"write {ETC} anew ({TYPED})", TYPED),
        ("k8s.device-plugin.nvidia.com/gpu", "/var/run/cdi/k8s.json",
         "restart the device plugin's pod, which writes /var/run/cdi/k8s.json anew", ""),
        ("management.nvidia.com/gpu", "/var/run/cdi/m.yaml",
         "restart the pod of the NVIDIA container toolkit, which writes /var/run/cdi/m.yaml anew",
         ""),
        ("amd.com/gpu", "/etc/cdi/amd.json",
         "write /etc/cdi/amd.json anew (amd-ctk cdi generate --output=/etc/cdi/amd.json)",
         "amd-ctk cdi generate --output=/etc/cdi/amd.json"),
        ("vendor.example/x", "/etc/cdi/x.json", "write /etc/cdi/x.json anew", ""),
    ],
)  # fmt: skip
def test_each_kind_has_its_writer(kind: str, source: str, words: str, command: str) -> None:
    assert cdi_files.anew(kind, source) == words
    assert cdi_files.command_of(kind, source) == command


def test_the_toolkits_own_unit_is_named_for_its_file_alone() -> None:
    assert cdi_files.REFRESH in cdi_files.anew("nvidia.com/gpu", "/var/run/cdi/nvidia.yaml")
    assert cdi_files.REFRESH not in cdi_files.anew("nvidia.com/gpu", ETC)


@pytest.mark.parametrize(
    "name", ["a;reboot.yaml", "$(x).yaml", "a b.yaml", "a\n.yaml", "\x1b.json"]
)
def test_a_name_that_is_no_plain_path_is_typed_nowhere(name: str) -> None:
    command = cdi_files.command_of("nvidia.com/gpu", f"/etc/cdi/{name}")
    assert command == "nvidia-ctk cdi generate --output=FILE"


def test_f10_names_the_file_that_has_the_old_number() -> None:
    world = renumbered(specs(major=237))
    found = world.container().diagnosis
    assert found is not None
    assert found.mode == "F10"
    assert found.remedy.startswith(f"First write {ETC} anew ({TYPED}). Recreate the pod")
    (soon,) = world.table().about_to_break
    assert soon.command == TYPED
    assert soon.remedy == f"Write {ETC} anew ({TYPED})."
    by_pod = renumbered(specs("k8s.device-plugin.nvidia.com/gpu", "/var/run/cdi/p.json", 237))
    told = by_pod.container().diagnosis
    assert told is not None
    assert told.remedy.startswith("First restart the device plugin's pod, which writes")
    assert by_pod.table().about_to_break[0].command == ""
    assert "nvidia-ctk" not in by_pod.table().about_to_break[0].remedy


def test_f2_names_the_file_that_lacks_the_node() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    world = World(
        specs=spec(given, cdi_names=("nvidia.com/gpu=1",)), own=given,
        kernel=("c 195:255 rw", "c 195:1 rw"), cdi=specs(paths=("/dev/nvidiactl",)),
    )  # fmt: skip
    found = world.container().diagnosis
    assert found is not None
    assert found.mode == "F2"
    assert "CDI nvidia.com/gpu=1" in found.cause
    assert found.remedy.startswith(f"Write {ETC} anew ({TYPED}). Order that after")
    soon = world.table().about_to_break
    assert [(one.device, one.workload) for one in soon] == [(UVM, None)]


def test_without_the_files_no_path_is_made_up() -> None:
    assert cdi_files.of_kind(Unread("cdi", "refused"), "nvidia.com/gpu") is None
    assert cdi_files.with_number(specs(major=237), UVM, frozenset({511})) is None


def test_each_driver_is_loaded_by_what_loads_it() -> None:
    assert load_of("nvidia-modeset") == "nvidia-modprobe -m"
    assert load_of("nvidia-uvm") == "nvidia-modprobe -u -c 0"
    assert load_of("kfd") == "modprobe amdgpu"
    assert load_of("fuse") == ""
