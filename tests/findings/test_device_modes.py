"""Each failure mode of devices: a rule that names it, and a row in docs/gpu.md."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.accounts.device_worlds import row

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import (
    ContainerDevices,
    Diagnosis,
    Mode,
    RefusedPod,
    UnhealthyDevice,
)  # fmt: skip
from seawall.accounts.devices.node_faults import admission, health
from seawall.accounts.devices.node_faults.faults import DeviceFaults
from seawall.accounts.devices.node_faults.health import Shortfall
from seawall.accounts.workloads import Workload
from seawall.findings.finding import Finding
from seawall.findings.rules.devices import device_refused, device_unhealthy, pods_refused
from seawall.host.host import Unread

MODES: tuple[Mode, ...] = get_args(Mode)
OF_THE_NODE = ("F8", "F9")
"""No container shows these."""
PAGE = Path(__file__).parents[2] / "docs/gpu.md"
ROW = row("/dev/nvidia-uvm", "no-no-no-no-no", major=511, errno=1, broken_at="kernel")


def pod(mode: Mode) -> RefusedPod:
    return RefusedPod("ml", "job", "u-1", "nvidia.com/gpu", 1e9, mode, f"why {mode}", None)


def device(mode: Mode) -> UnhealthyDevice:
    return UnhealthyDevice("nvidia.com/gpu", "GPU-1", 1e9, 79, mode, f"why {mode}")


def found(answer: Any) -> list[Finding]:
    return list(answer) if not isinstance(answer, Finding) else [answer]


@pytest.mark.parametrize("mode", MODES)
def test_each_has_its_row_in_the_page(mode: Mode) -> None:
    [row] = re.findall(rf"^\| {mode} \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert all(len(cell) > 10 for cell in row), row


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in OF_THE_NODE])
def test_a_containers_mode_is_named(mode: Mode) -> None:
    diagnosis = Diagnosis(mode, f"headline {mode}", f"cause {mode}.", f"do {mode}")
    one = ContainerDevices(
        workload=Workload(kind="container", name="ml/job/app", cgroup="/job"),
        device_class="nvidia", promised_by="CDI", devices=(ROW,), diagnosis=diagnosis,
    )  # fmt: skip
    table = DeviceTable(host_nodes=(), plugins=(), containers=(one,), about_to_break=())
    [finding] = found(device_refused.judge(table))
    assert finding.verdict == "fires"
    assert f"({mode})" in finding.headline
    assert finding.remedy is not None
    assert finding.remedy[0] == f"do {mode}"
    assert f"cause {mode}." in {row.value for row in finding.evidence}
    assert f"cause {mode}" not in finding.outlook


@pytest.mark.parametrize("mode", [*OF_THE_NODE, "unnamed"])
def test_a_refused_pods_mode_is_named(mode: Mode) -> None:
    refused = (pod(mode),)
    faults = DeviceFaults(refused=refused, of_pods=tuple(admission.diagnoses(refused)))
    [finding] = found(pods_refused.judge(faults))
    assert f"({mode})" in finding.headline
    assert finding.remedy == (faults.of_pods[0].remedy,)


@pytest.mark.parametrize("mode", ["F9", "unnamed"])
def test_a_devices_mode_is_named(mode: Mode) -> None:
    lost = (device(mode),)
    faults = DeviceFaults(
        shortfall=Shortfall(lost, 8, ""), of_devices=tuple(health.diagnoses(lost))
    )
    [finding] = found(device_unhealthy.judge(faults))
    assert finding.headline.startswith(f"1 of 8 devices is not handed out to new pods ({mode}): ")
    assert finding.remedy == (faults.of_devices[0].remedy,)


def test_what_was_found_is_told_though_not_all_was_seen() -> None:
    gap = (Unread("journal", "refused", "Permission denied"),)
    faults = DeviceFaults(refused=(pod("F8"),), kubelet_unseen=gap, devices_unseen=gap)
    assert [one.verdict for one in found(pods_refused.judge(faults))] == ["fires"]
    assert [one.verdict for one in found(device_unhealthy.judge(faults))] == ["blind"]
