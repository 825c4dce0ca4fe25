"""Whose a plugin, a path and a mount are: what a repair acts on is never somebody else's."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_worlds import NVIDIA, PLUGIN_WORKLOAD, nodes, workload
from tests.accounts.test_gpu_repair_plans import (
    DRIVERS,
    ITS,
    LACKING,
    OWN,
    TENANT,
    UVM,
    WHOLE,
    broken,
    facts,
    planned,
    row,
    step_of,
    who,
)

from seawall.accounts.devices.layers import Plugin
from seawall.accounts.devices.repairs.plugin_proof import has_kubelets_folder, is_hosts
from seawall.accounts.devices.repairs.plugin_steps import is_there
from seawall.accounts.devices.repairs.repair_plan import in_the_way, plan
from seawall.accounts.devices.repairs.step import Link, RepairFacts, RepairPlan, RepairScope
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.mountinfo import parse

RDMA = Plugin(
    workload=workload(
        "/kubepods/besteffort/podcc/" + "ef" * 32, name="nvidia-device-plugin/rdma-device-plugin/c",
        namespace="nvidia-device-plugin", pod="rdma-device-plugin", container="c", pod_uid="cc",
    ),
    pid=816,
    lacks=(),
)  # fmt: skip


# --- a plugin's class ------------------------------------------------------------------------


def test_a_plugin_of_another_class_serves_nobody_of_this_one() -> None:
    """Not by its namespace either: nvidia's crashed, and nobody gives the new pod a device."""
    found = planned(broken("F1"), plugins=(RDMA,))
    step = step_of(found, "plugin")
    assert (step.by, step.on) == ("you", None)
    assert "(nvidia)" in step.what
    assert in_the_way(found, step_of(found, "recreate")) == step
    both = planned(broken("F1"), plugins=(RDMA, WHOLE))
    assert "plugin" not in [step.kind for step in both.steps]


@pytest.mark.parametrize(
    ("plugin", "is_of_it"),
    [
        (replace(WHOLE, workload=replace(PLUGIN_WORKLOAD, pod="nvidia-gpu-device-plugin-x")), True),
        (replace(RDMA, lacks=(UVM,)), True),
        (replace(RDMA, lacks=("/dev/kfd",)), False),
    ],
)
def test_a_plugins_class_is_its_name_or_what_it_lacks(plugin: Plugin, is_of_it: bool) -> None:
    found = planned(broken("F1"), plugins=(plugin,))
    is_unseen = any(step.kind == "plugin" and step.on is None for step in found.steps)
    assert is_unseen is not is_of_it


def test_who_is_served_by_no_plugin_waits_for_none() -> None:
    by_hand = broken("F10", promised_by="OCI config")
    assert who(planned(by_hand, plugins=(RDMA,))) == "7seawall 9user"
    assert who(planned(broken("F10"), plugins=(RDMA,))) == "6you 7seawall 9user"
    nameless = broken("F1", device_class="vendor.com/card")
    assert "6" not in who(planned(nameless, plugins=(RDMA,)))
    assert "6you" in who(planned(nameless, plugins=(WHOLE,)))


def test_who_ended_is_not_there_until_one_of_its_class_is() -> None:
    other = replace(PLUGIN_WORKLOAD, pod_uid="new", cgroup="/kubepods/podnew/" + "12" * 32)
    assert not is_there(LACKING, ())
    assert not is_there(LACKING, (RDMA,))
    assert is_there(LACKING, (replace(WHOLE, workload=other),))
    assert is_there(RDMA, (replace(RDMA, pid=9),))


# --- links -------------------------------------------------------------------------------------


def _links(path: str, number: tuple[int, int], links: Any, **host: Any) -> RepairPlan:
    lost = row("yes-yes-no-no-no", path, major=number[0], minor=number[1], broken_at="systemd")
    seen = DeviceNodes(nodes({**NVIDIA, **host}), links, 0)
    table = facts(broken("F4", lost)).table
    return plan(RepairFacts(table, DRIVERS, seen), RepairScope("workload", TENANT))


def test_a_link_leads_to_what_the_host_calls_the_device() -> None:
    """The container's /dev/nvidia0 may be the host's second."""
    step = step_of(_links("/dev/nvidia0", (195, 1), {}), "links")
    assert isinstance(step.on, tuple)
    assert Link("/dev/nvidia1", 195, 1) in step.on
    assert Link("/dev/nvidia0", 195, 1) not in step.on
    assert Link("/dev/nvidia0", 195, 0) in step.on


def test_a_number_that_the_host_has_no_node_of_gets_no_link() -> None:
    found = _links("/dev/nvidia0", (195, 7), {})
    assert "links" not in [step.kind for step in found.steps]
    block = _links("/dev/loop9", (7, 9), {}, **{"/dev/loop9": ("b", 7, 9)})
    assert "links" not in [step.kind for step in block.steps]


def test_a_link_that_leads_to_another_number_is_none() -> None:
    right = {node[1:]: f"../{path.removeprefix('/dev/')}" for path, node in NVIDIA.items()}
    assert "links" not in [step.kind for step in _links("/dev/a", (195, 1), right).steps]
    wrong = right | {(195, 1): "../nvidia0"}
    step = step_of(_links("/dev/a", (195, 1), wrong), "links")
    assert step.on == (Link("/dev/nvidia1", 195, 1),)


# --- mounts ------------------------------------------------------------------------------------

ONE = parse(b"22 1 254:0 / / rw - ext4 /dev/vda rw\n")


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (b"/var/lib/kubelet/device-plugins", True),
        (b"/var/lib/kubelet", True),
        (b"/var/lib", False),
        (b"/var", False),
        (b"/", False),
    ],
)
def test_a_mount_of_everything_proves_nothing(root: bytes, expected: bool) -> None:
    its = parse(ITS.replace(b"254:1", b"254:0") % (root, b"/host"))
    assert has_kubelets_folder(ONE, its) is expected


def test_the_folder_may_be_a_filesystem_of_its_own() -> None:
    folder = b"31 22 254:2 /sub/x /var/lib/kubelet/device-plugins rw - ext4 /dev/vdc rw\n"
    own = parse(OWN + folder)
    for device, root, expected in (
        (b"254:2", b"/sub/x", True), (b"254:2", b"/sub", False), (b"254:2", b"/", False),
    ):  # fmt: skip
        its = parse(ITS.replace(b"254:1", device) % (root, b"/x"))
        assert has_kubelets_folder(own, its) is expected


def test_who_has_the_hosts_root_is_in_no_container_yet() -> None:
    own = parse(OWN)
    assert is_hosts(own, own)
    assert is_hosts(own, parse(b""))
    assert not is_hosts(own, parse(ITS % (b"/device-plugins", b"/x")))
