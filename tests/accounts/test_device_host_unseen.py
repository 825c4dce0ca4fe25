"""A /dev of the host that was not looked at is a gap, and never "nothing to mend"."""

from typing import Any

from tests.accounts.device_worlds import DRIVERS, World, only, spec

from seawall.accounts.devices.repairs.repair_plan import plan
from seawall.accounts.devices.repairs.step import RepairFacts, RepairScope
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import PROBE, DeviceNodes
from seawall.views.gpu_repair_page import RepairPage, sentence

NOT_THERE = Unread(PROBE, "absent", "asked only on the machine itself")


class WithoutDev(World):
    """As a tree of files that holds none."""

    def _known(self) -> dict[type[Any], Any]:
        return super()._known() | {DeviceNodes: NOT_THERE}


def test_nodes_that_nobody_looked_at_are_unseen() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1")
    table = WithoutDev(specs=spec(given), own=given).table()
    told = "the host's /dev: none that has device nodes was there to be looked at"
    assert told in table.unseen
    assert told not in World(specs=spec(given), own=given).table().unseen
    found = plan(RepairFacts(table, DRIVERS, NOT_THERE), RepairScope("host"))
    assert (found.steps, found.unseen) == ((), (told,))
    page = RepairPage(scope=found.scope, plan=found, is_told=False)
    assert page.verdict == "unseen"
    assert sentence(page) == f"--host: whether anything is to be mended could not be seen: {told}."


def test_without_a_driver_nobody_needs_it() -> None:
    assert not WithoutDev(drivers=CharDevices({1: "mem"}, {})).table().unseen
