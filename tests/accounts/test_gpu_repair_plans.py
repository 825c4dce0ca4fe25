"""What mends what, in which order, who does it: plans for every failure mode, from tables."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_worlds import NVIDIA, PLUGIN_WORKLOAD, nodes, workload
from tests.accounts.device_worlds import row as device_row

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import (
    ContainerDevices,
    DeviceRow,
    Diagnosis,
    HostNode,
    Plugin,
    RefusedPod,
    UnhealthyDevice,
    UpcomingLoss,
)
from seawall.accounts.devices.reasons.upcoming_loss import (
    NEXT_POD,
    NEXT_START,
    NEXT_WITH_IT,
    RELOAD,
    UPDATE,
)
from seawall.accounts.devices.repairs.plugin_proof import has_kubelets_folder
from seawall.accounts.devices.repairs.repair_plan import in_the_way, plan
from seawall.accounts.devices.repairs.step import (
    Link,
    Modules,
    RepairFacts,
    RepairPlan,
    RepairScope,
    Step,
)
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.mountinfo import parse

UVM = "/dev/nvidia-uvm"
DRIVERS = CharDevices({195: "nvidia-frontend", 237: "nvidia-uvm"}, {})
WITHOUT_UVM = CharDevices({195: "nvidia-frontend"}, {})
TENANT = workload()
DOCKER = workload("/docker/" + "cd" * 32, name="docker:train", pod=None, pod_uid=None,
                  namespace=None, container_id="cd" * 32, runtime="docker")  # fmt: skip
LACKING = Plugin(workload=PLUGIN_WORKLOAD, pid=815, lacks=(UVM,))
WHOLE = Plugin(workload=PLUGIN_WORKLOAD, pid=815, lacks=())
GONE = HostNode(path=UVM, driver="nvidia-uvm", major=237, minor=0, is_there=False)
OLD = replace(GONE, found="c 236:0")
TAKEN = UpcomingLoss(TENANT, UVM, "systemd lacks it", RELOAD, "recreate")


def row(says: str = "no-no-none-no-no", path: str = UVM, **more: Any) -> DeviceRow:
    """Of nvidia-uvm, which is refused."""
    return device_row(path, says, **({"major": 237, "errno": 1, "broken_at": "promised"} | more))


def broken(mode: Any, *rows: DeviceRow, **told: Any) -> ContainerDevices:
    values = {
        "workload": TENANT, "device_class": "nvidia", "promised_by": "kubelet checkpoint",
        "devices": rows or (row(),), "diagnosis": Diagnosis(mode, "it is refused", "c", "r"),
    }  # fmt: skip
    return ContainerDevices(**(values | told))


FINE = broken("F1", row("yes-yes-yes-yes-yes", errno=0, broken_at=None), diagnosis=None)


def facts(*containers: ContainerDevices, **told: Any) -> RepairFacts:
    drivers, links = told.pop("drivers", DRIVERS), told.pop("links", {})
    strangers = told.pop("only_called", frozenset())
    values = {"host_nodes": (), "plugins": (), "containers": containers, "about_to_break": ()}
    table = DeviceTable(**(values | told))
    return RepairFacts(table, drivers, DeviceNodes(nodes(NVIDIA), links, 0), strangers)


def planned(*containers: ContainerDevices, what: Any = "workload", **told: Any) -> RepairPlan:
    named = containers[0].workload if containers and what == "workload" else None
    return plan(facts(*containers, **told), RepairScope(what, named))


def who(found: RepairPlan) -> str:
    """``6seawall 7you``."""
    return " ".join(f"{step.number}{step.by}" for step in found.steps)


def step_of(found: RepairPlan, kind: str) -> Step:
    (one,) = [step for step in found.steps if step.kind == kind]
    return one


# --- modes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "told", "expected"),
    [
        ("F1", {"plugins": (LACKING,)}, "6seawall 7seawall 8nobody 9user"),
        ("F1", {"plugins": (WHOLE,)}, "5you 7seawall 8nobody 9user"),
        ("F1", {}, "6you 7seawall 8nobody 9user"),
        ("F2", {"host_nodes": (GONE,), "plugins": (WHOLE,)}, "2seawall 6seawall 7seawall 9user"),
        ("F2", {"drivers": WITHOUT_UVM, "plugins": (WHOLE,)}, "1seawall 7seawall 9user"),
        ("F3", {}, "5you 7seawall 8nobody 9user"),
        ("F6", {}, "5you 7seawall 8nobody 9user"),
        ("F10", {"host_nodes": (OLD,), "plugins": (WHOLE,)}, "2seawall 7seawall 9user"),
        ("mode", {}, "5you 7you 9user"),
        ("unnamed", {}, "7you 9user"),
    ],
)
def test_each_mode_has_its_steps_and_who_does_them(
    mode: str, told: dict[str, Any], expected: str
) -> None:
    found = planned(broken(mode), **told)
    assert who(found) == expected
    assert found.headlines == (f"{mode}: train/job-0/main: it is refused",)
    for step in found.steps:
        assert step.what
        assert step.mends
        assert step.does_not_mend
        assert step.lasts
        assert (step.on is not None) >= (step.by == "seawall")
    assert len({step.id for step in found.steps}) == len(found.steps)


def test_f4_makes_the_links_of_the_whole_class_first() -> None:
    lost = row("yes-yes-no-no-no", broken_at="systemd")
    found = planned(broken("F4", lost), links={(195, 255): "../nvidiactl"})
    assert who(found) == "3seawall 5you 7seawall 8nobody 9user"
    links = step_of(found, "links")
    assert isinstance(links.on, tuple)
    assert Link(UVM, 237, 0) in links.on
    assert all(isinstance(one, Link) and one.minor != 255 for one in links.on), "that one is there"
    every = {node[1:]: "x" for node in NVIDIA.values()}
    assert who(planned(broken("F4", lost), links=every)) == "5you 7seawall 8nobody 9user"
    assert "not what systemctl set-property --runtime wrote" in step_of(found, "rules").lasts


def test_f8_and_f9_are_the_plugins_business() -> None:
    refused = RefusedPod("a", "p-1", "u", "nvidia.com/gpu", 1.0, "F8", "too early", None)
    found = planned(what="plugin", plugins=(WHOLE,), refused_pods=(refused,))
    assert who(found) == "7you"
    assert found.steps[0].command == "kubectl delete pod -n a p-1"
    lost = UnhealthyDevice("nvidia.com/gpu", "GPU-1", 1.0, 62, "F9", "Xid 62")
    assert who(planned(what="plugin", plugins=(WHOLE,), unhealthy=(lost,))) == "6seawall"
    hardware = planned(what="plugin", plugins=(WHOLE,), unhealthy=(lost._replace(xid=79),))
    assert who(hardware) == "6you", "a broken device is not handed out again"
    assert "See to the device first (drain, reset, reboot): Xid 79" in hardware.steps[0].mends
    unsure = planned(what="plugin", plugins=(WHOLE,), unhealthy=(lost._replace(mode="unnamed"),))
    assert not unsure.steps
    other = lost._replace(resource="amd.com/gpu")
    assert not planned(what="plugin", plugins=(WHOLE,), unhealthy=(other,)).steps


def test_what_works_has_no_step_and_what_breaks_soon_is_for_a_person() -> None:
    fine = planned(FINE)
    assert (fine.steps, fine.headlines, fine.untried) == ((), (), ())
    soon = planned(FINE, about_to_break=(TAKEN,), plugins=(LACKING,))
    assert who(soon) == "6seawall 7you 8nobody"
    assert "when it suits: it works until the next daemon-reload" in step_of(soon, "recreate").what
    untried = planned(replace(FINE, devices=(row("yes-yes-none-yes-unread", broken_at=None),)))
    assert (untried.steps, untried.untried) == ((), ("train/job-0/main",))


def test_who_lives_on_a_rule_made_by_hand_is_recreated_after_its_plugin() -> None:
    by_hand = broken("F1", row("yes-no-none-yes-yes", errno=0, broken_at=None), diagnosis=None)
    soon = UpcomingLoss(TENANT, UVM, "the config lacks it", UPDATE, "recreate")
    found = planned(by_hand, what="plugin", about_to_break=(soon,), plugins=(LACKING,))
    step = step_of(found, "recreate")
    assert "train/job-0/main (works by a rule that it was not given, until the next" in step.what
    assert step.command == "seawall gpu repair train/job-0/main"
    lost = planned(FINE, what="plugin", about_to_break=(TAKEN,), plugins=(LACKING,))
    assert who(lost) == "6seawall", "the plugin gave that one its node: systemd is another matter"
    twice = planned(
        broken("F1"), by_hand, what="plugin", about_to_break=(soon,), plugins=(LACKING,)
    )
    assert step_of(twice, "recreate").what.count("train/job-0/main") == 1


def test_without_a_proc_devices_nothing_is_known_of_the_host() -> None:
    found = planned(what="host", drivers=Unread("/proc/devices", "absent"))
    assert found.unseen == ("/proc/devices: it is not there, as it is on every machine that runs",)


# --- the host ------------------------------------------------------------------------------


def test_modules_are_loaded_where_a_class_is_half_there() -> None:
    half = planned(what="host", drivers=WITHOUT_UVM)
    assert who(half) == "1seawall"
    assert step_of(half, "modules").on == Modules(
        ("nvidia-modprobe", "-u", "-c", "0"), ("modprobe", "nvidia_uvm"), ("nvidia-uvm",)
    )
    assert not planned(what="host", drivers=CharDevices({1: "mem"}, {})).steps
    unknown = Unread("/proc/devices", "refused")
    assert not planned(what="host", drivers=unknown).steps
    assert not planned(FINE, drivers=WITHOUT_UVM).steps


def test_nodes_of_the_host_are_made_or_replaced_by_their_numbers() -> None:
    found = planned(broken("F2"), what="host", host_nodes=(GONE,))
    assert who(found) == "2seawall 7you"
    assert step_of(found, "nodes").command == "mknod -m 666 /dev/nvidia-uvm c 237 0"
    old = step_of(planned(what="host", host_nodes=(OLD,)), "nodes")
    assert old.command == "rm -f /dev/nvidia-uvm && mknod -m 666 /dev/nvidia-uvm c 237 0"
    assert "c 236:0 there, c 237:0 now" in old.what
    assert "ExecStartPre=-/usr/bin/nvidia-modprobe -u -c 0" in old.lasts
    both = replace(GONE, path="/dev/nvidia-uvm-tools", minor=1)
    lines = step_of(planned(what="host", host_nodes=(OLD, both)), "nodes").command.split("\n")
    assert lines == [old.command, "mknod -m 666 /dev/nvidia-uvm-tools c 237 1"]
    assert "2seawall" not in who(planned(broken("F3", device_class="amd"), host_nodes=(GONE,)))


def test_a_link_is_made_for_the_host_only_where_this_runtime_needs_it() -> None:
    soon = UpcomingLoss(None, UVM, "no link", NEXT_WITH_IT, "make it")
    assert who(planned(what="host", about_to_break=(soon,))) == "3seawall"
    assert not planned(what="host").steps, "no link is there, and nobody needs one"


def test_a_cdi_spec_is_for_a_person_and_only_for_whom_it_concerns() -> None:
    typed = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    soon = UpcomingLoss(None, UVM, "/etc/cdi/nvidia.yaml lacks it", NEXT_START, "Write it.", typed)
    alone = planned(what="host", about_to_break=(soon, soon._replace(device="/dev/nvidiactl")))
    assert who(alone) == "4you"
    assert step_of(alone, "cdi").command == typed, "one file, one command"
    by_pod = soon._replace(remedy="Restart the device plugin's pod.", command="")
    assert "device plugin" in planned(what="host", about_to_break=(by_pod,)).steps[0].what
    given = broken("F2", promised_by="CDI nvidia.com/gpu=0")
    found = planned(given, about_to_break=(soon,))
    assert who(found) == "4you 7seawall 9user"
    assert (first := in_the_way(found, step_of(found, "recreate"))) is not None
    assert first.kind == "cdi"
    assert 4 not in [step.number for step in planned(broken("F1"), about_to_break=(soon,)).steps]


# --- order -----------------------------------------------------------------------------------


def test_nothing_is_restarted_for_nothing() -> None:
    found = planned(broken("F1"), host_nodes=(GONE,), plugins=(LACKING,))
    numbers = [step.number for step in found.steps]
    assert numbers == sorted(numbers)
    first = {step.kind: in_the_way(found, step) for step in found.steps}
    assert first["nodes"] is None
    assert first["plugin"] == step_of(found, "nodes")
    assert first["recreate"] == step_of(found, "nodes")
    later = planned(broken("F1"), plugins=(LACKING,))
    assert in_the_way(later, step_of(later, "plugin")) is None
    assert in_the_way(later, step_of(later, "recreate")) == step_of(later, "plugin")
    unseen = planned(broken("F1"))
    assert in_the_way(unseen, step_of(unseen, "recreate")) == step_of(unseen, "plugin")


def test_a_number_is_the_same_in_every_plan() -> None:
    """People type them."""
    every = planned(broken("F1"), plugins=(LACKING,)), planned(what="host", host_nodes=(GONE,))
    assert {step.number: step.kind for found in every for step in found.steps} == {
        2: "nodes", 6: "plugin", 7: "recreate", 8: "rules", 9: "process",
    }  # fmt: skip


# --- who -------------------------------------------------------------------------------------


def test_a_pod_is_made_anew_once_and_what_has_a_name_comes_first() -> None:
    other = replace(TENANT, name="train/job-0/side", container="side", cgroup=TENANT.cgroup + "2")
    two = [broken("unnamed"), broken("F3", workload=other)]
    pod = replace(TENANT, kind="pod", cgroup=TENANT.cgroup.rpartition("/")[0])
    found = plan(facts(*two), RepairScope("workload", pod))
    assert step_of(found, "recreate").by == "seawall"
    assert step_of(found, "recreate").on == other


def test_a_container_of_docker_is_started_anew_by_a_person() -> None:
    found = planned(broken("F1", workload=DOCKER), plugins=(LACKING,))
    assert who(found) == "7you 8nobody 9user"
    command = step_of(found, "recreate").command
    assert command == f"docker rm -f {'cd' * 6}\ndocker run --device /dev/nvidia-uvm ..."


def test_a_plugin_outside_a_pod_is_not_ended_for_nobody_starts_it_again() -> None:
    plugin = replace(LACKING, workload=DOCKER)
    found = planned(what="plugin", plugins=(plugin,))
    assert who(found) == "6you"
    assert found.steps[0].command == f"docker restart {'cd' * 6}"
    assert "a list of --device stays as it was" in found.steps[0].mends


@pytest.mark.parametrize("name", ["x; rm -rf /", "$(reboot)", "-A", "--all", "", "a" * 300])
def test_names_that_are_none_are_typed_nowhere(name: str) -> None:
    hostile = replace(TENANT, pod=name)
    found = planned(broken("F3", workload=hostile))
    step = step_of(found, "recreate")
    assert (step.command, step.by) == ("", "you")


def test_a_plugin_by_its_name_is_asked_for_as_a_plugin() -> None:
    found = plan(facts(plugins=(LACKING,)), RepairScope("workload", PLUGIN_WORKLOAD))
    assert who(found) == "6seawall"
    assert found.scope.what == "plugin"


def test_who_is_only_called_a_plugin_is_not_waited_for() -> None:
    names = frozenset({PLUGIN_WORKLOAD.cgroup})
    soon = UpcomingLoss(PLUGIN_WORKLOAD, UVM, "lacks it", NEXT_POD, "r")
    told = {"plugins": (LACKING,), "only_called": names, "about_to_break": (soon,)}
    found = planned(what="plugin", **told)
    assert (found.steps, found.headlines) == ((), ())
    assert "does not mount /var/lib/kubelet/device-plugins" in found.notes[0]
    assert who(planned(broken("F1"), **told)) == "6you 7seawall 8nobody 9user"


# --- the proof -----------------------------------------------------------------------------------

OWN = b"""22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 254:1 / /var/lib/kubelet rw - ext4 /dev/vdb rw
"""
ITS = b"""50 40 0:51 / / rw - overlay overlay rw
51 50 254:1 %s %s rw - ext4 /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("root", "point", "expected"),
    [
        (b"/device-plugins", b"/var/lib/kubelet/device-plugins", True),
        (b"/device-plugins", b"/anywhere", True),
        (b"/", b"/host/kubelet", True),
        (b"/pods/u/volumes/kubernetes.io~empty-dir/device-plugins", b"/device-plugins", False),
        (b"/device-plugins-not", b"/var/lib/kubelet/device-plugins", False),
    ],
)
def test_the_kubelets_folder_is_known_by_its_filesystem(
    root: bytes, point: bytes, expected: bool
) -> None:
    own, its = parse(OWN), parse(ITS % (root, point))
    assert has_kubelets_folder(own, its) is expected
    plain = parse(OWN.split(b"\n")[0] + b"\n")
    assert has_kubelets_folder(plain, its) is False, "another filesystem has the same folder"
    hidden = parse(OWN + b"31 22 254:7 / /var/lib/kubelet rw - ext4 /dev/vdc rw\n")
    assert has_kubelets_folder(hidden, its) is False, "the last mount hides the one before"
