"""What of a table is watched, and in which form the kernel's rules are compared."""

from dataclasses import replace
from errno import EPERM

import pytest
from tests.accounts.device_looks import APP, OTHER, REFUSED, UVM, look, moment, told
from tests.accounts.device_worlds import row, rules

from seawall.accounts.devices.container_processes import ContainerProcesses
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, HostNode, Plugin
from seawall.accounts.devices.watch import watched_table
from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.device_watch_events import DeviceKey, DeviceMoment, Stand
from seawall.accounts.devices.watch.watched_table import WatchedDevices, is_wanted_by
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.device_access import Access, AccessTarget, Tried
from seawall.readings.device_cgroups import DeviceCgroups

BOOT = DeviceMoment(1_000.0, -50.0)
WORKLOAD = Workload(kind="container", name="shop/app", cgroup=APP)
MEMBERS = ContainerProcesses({APP: 7}, {7: 99}, {7: f"{APP}/below"})
GONE = Access({}, Unread("/proc/7/root", "vanished"))
SILENT = Access({}, Unread("/proc/7/root", "no_answer", "it held up whoever asked"))


def table(*containers: ContainerDevices) -> DeviceTable:
    plugin = Plugin(workload=replace(WORKLOAD, name="plugin"), pid=1, lacks=(UVM.path,))
    return DeviceTable(host_nodes=(), plugins=(plugin,), containers=containers, about_to_break=())


def container(*paths: str, workload: Workload = WORKLOAD) -> ContainerDevices:
    return ContainerDevices(
        workload=workload, device_class="nvidia", promised_by="x", diagnosis=None,
        devices=tuple(row(path) for path in paths),
    )  # fmt: skip


def test_each_container_once_with_all_its_paths() -> None:
    other = Workload(kind="container", name="shop/other", cgroup=OTHER)
    found = watched_table.watched(
        table(container(UVM.path, "/dev/nvidiaN"), container("/dev/kfd", UVM.path),
              container("/dev/kfd", workload=other)),
        MEMBERS, is_wanted_by(None),
    )  # fmt: skip
    assert [(one.workload.name, one.place) for one in found] == [
        ("shop/app", f"{APP}/below"), ("shop/other", OTHER),
    ]  # fmt: skip
    assert found[0].target == AccessTarget(7, 99, (UVM.path, "/dev/kfd"))
    assert found[1].target is None
    told = watched_table.watched_table_of(
        table(container(UVM.path)), found, moment(0), with_plugins=True
    )
    assert told.names == {APP: "shop/app", OTHER: "shop/other"}
    assert set(told.layers) == {UVM}
    assert told.lacks == {"plugin": frozenset([UVM.path])}
    assert not watched_table.watched_table_of(table(), found, moment(0), with_plugins=False).lacks


def test_one_that_is_started_anew_is_still_wanted() -> None:
    is_wanted = is_wanted_by(WORKLOAD)
    assert is_wanted(replace(WORKLOAD, cgroup="/kubepods/podnew/app"))
    assert is_wanted(replace(WORKLOAD, name="inside", cgroup=f"{APP}/inside"))
    assert not is_wanted(replace(WORKLOAD, name="shop/app2", cgroup=f"{APP}2"))


def test_how_a_device_stands() -> None:
    one = WatchedDevices(
        workload=WORKLOAD, target=AccessTarget(7, 99, (UVM.path, "/dev/x")), place=APP
    )
    tried = {UVM.path: Tried(UVM.path, EPERM, "c", 510, 0, 0o666, None)}
    assert watched_table.stands(one, Access(tried, None)) == {
        UVM: REFUSED, DeviceKey(APP, "/dev/x"): Stand(None, "", "it was not tried"),
    }  # fmt: skip
    assert watched_table.stands(one, GONE) == {}
    assert watched_table.is_gone(GONE)
    silent = watched_table.stands(one, SILENT)
    assert silent[UVM] == Stand(None, "", "no_answer it held up whoever asked")
    assert watched_table.is_silent(SILENT)


def test_rules_of_version_1() -> None:
    lists = {APP: rules("c 510:0 rw", "c *:* m"), OTHER: Unread("x", "refused")}
    groups = DeviceCgroups(1, lists, {}, {})
    found = watched_table.rule_of(groups, APP, BOOT)
    assert found is not None
    assert found.parts == ("c 510:0 rw", "c *:* m")
    assert watched_table.rule_of(groups, OTHER, BOOT) is None
    assert watched_table.rule_of(groups, "/none", BOOT) is None
    assert watched_table.rule_of(Unread("x", "absent"), APP, BOOT) is None


def v2(*ids: int, loaded: float | None = None) -> DeviceCgroups:
    attached = {APP: ids, "/kubepods/poda": (3,), "/kubepods": (), "/": (1,)}
    return DeviceCgroups(
        2, {}, attached, {}, 0, {} if loaded is None else dict.fromkeys(ids, loaded)
    )  # fmt: skip


def test_programs_of_version_2_with_those_above() -> None:
    found = watched_table.rule_of(v2(41, 42), APP, BOOT)
    assert found is not None
    assert found.parts == (f"program 41 of {APP}", f"program 42 of {APP}",
                           "program 3 of /kubepods/poda", "program 1 of /")  # fmt: skip
    unread = replace(v2(41), attached={APP: (41,), "/kubepods/poda": Unread("x", "refused")})
    assert watched_table.rule_of(unread, APP, BOOT) is None


@pytest.mark.parametrize(
    ("loaded", "at", "is_exact"),
    [(None, 1, False), (150.25, 0.25, True), (140, 1, False), (152, 1, False)],
)
def test_a_program_tells_when_it_was_loaded(
    loaded: float | None, at: float, *, is_exact: bool
) -> None:
    """By its time where that is since the look before; who attached it, nothing tells."""
    boot = DeviceMoment(moment(0).unix - 150, moment(0).monotonic - 150)
    before, after = (
        watched_table.rule_of(one, APP, boot) for one in (v2(41), v2(57, loaded=loaded))
    )
    assert before
    assert after
    changes = Changes()
    changes.tell(told())
    changes.see(look(0, {UVM: Stand(0)}, rules={APP: before}))
    (event,) = changes.see(look(1, {UVM: REFUSED}, rules={APP: after}))
    assert event.at == moment(at)
    assert event.is_exact is is_exact
    assert event.writers == ()
    assert event.why == f"device programs: lost program 41 of {APP} and got program 57 of {APP}"


def test_control_nodes() -> None:
    nodes = [
        HostNode(path=path, driver="nvidia", major=195, minor=0, is_there=is_there, found=found)
        for path, is_there, found in (("/a", True, ""), ("/b", False, ""), ("/c", False, "c 9:0"))
    ]
    assert watched_table.node_words(nodes) == {"/a": "there", "/b": "missing", "/c": "c 9:0"}
