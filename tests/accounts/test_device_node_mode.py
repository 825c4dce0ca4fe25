"""EACCES: by the node's mode, or by something else where the mode lets everybody."""

import errno

from tests.accounts.device_worlds import NVIDIA, World, only, spec

from seawall.accounts.devices.layers import Diagnosis

GIVEN = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1")


def refused(mode: int) -> World:
    given = only(*GIVEN)
    lines = [f"{kind} {major}:{minor} rw" for kind, major, minor in NVIDIA.values()]
    return World(specs=spec(given), own=given, kernel=tuple(lines),
                 errors={"/dev/nvidia1": errno.EACCES}, modes={"/dev/nvidia1": mode})  # fmt: skip


def diagnosis(world: World) -> Diagnosis:
    found = world.container().diagnosis
    assert found is not None
    return found


def test_the_mode_of_the_node() -> None:
    found = diagnosis(refused(0o660))
    assert found.mode == "mode"
    assert "EACCES" in found.headline
    assert "the mode 0666" in found.remedy


def test_a_mode_that_lets_everybody_is_not_why() -> None:
    found = diagnosis(refused(0o666))
    assert found.mode == "unnamed", "no new mode mends it"
    assert "although its mode lets everybody read and write" in found.headline
    assert "SELinux" in found.cause
    assert "0666" not in found.remedy
    assert "ausearch" in found.remedy
    rows = {row.path: row for row in refused(0o666).container().devices}
    assert "mode is not why" in rows["/dev/nvidia1"].layers["access"].why
