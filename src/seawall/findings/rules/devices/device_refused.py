# SPDX-License-Identifier: Apache-2.0
"""A container cannot use a device that it was promised.

The pod runs, nvidia-smi may even work, and the program computes on the CPU for weeks: a node is
missing from the container's /dev, or its device cgroup refuses it, and no log says so.  Five
layers are held against one another for each device: what was promised, what the runtime was
told, what systemd believes, what the kernel's rule is, and what happens when it is tried.  The
first that disagrees is the cause; ``seawall gpu`` shows them all.
"""

from collections import Counter
from collections.abc import Sequence

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices
from seawall.findings.device_words import (
    SHOWN,
    broken_rows,
    cause_evidence,
    gpu_line,
    is_untried,
    lacks_needed,
    names,
    repair_line,
    row_evidence,
    since_evidence,
    unread,
)
from seawall.findings.finding import Brief, Finding, blind, fires, quiet
from seawall.findings.rule import rule


@rule(
    id="SW401",
    title="A container cannot use a device that it was promised",
    severity="critical",
    confirm=("seawall gpu",),
    remedy=(
        "seawall gpu names the first layer that is wrong, device by device, and what mends it",
        "then start its program again: a CUDA context that failed does not recover",
    ),
    provide="root on the host: what a container may do is tried from inside its own cgroup",
)
def judge(table: DeviceTable) -> Sequence[Finding]:
    broken = [one for one in table.containers if one.diagnosis is not None]
    unseen = [one for one in table.containers if one.diagnosis is None and is_untried(one)]
    findings = []
    if broken:
        findings.append(_finding(_worst_first(broken), len(table.containers)))
    if unseen:
        missing = [row for one in unseen for row in unread(one.workload.name, one.unseen)]
        who = names([one.workload.name for one in unseen])
        findings.append(blind(f"may {who} use what was promised? Not known", *missing[:SHOWN]))
    elif table.unseen and not broken:
        missing = unread("promises", table.unseen)
        findings.append(blind("not all that was promised could be seen", *missing))
    works = f"{len(table.containers)} containers were promised devices, and may use them"
    return findings or [quiet(works)]


def _worst_first(broken: list[ContainerDevices]) -> list[ContainerDevices]:
    """Those that cannot work at all, and of them what most have."""
    modes = Counter(_mode(one) for one in broken)

    def rank(one: ContainerDevices) -> tuple[bool, bool, int, str]:
        mode = _mode(one)
        return (not lacks_needed(one), mode == "unnamed", -modes[mode], one.workload.name)

    return sorted(broken, key=rank)


def _mode(one: ContainerDevices) -> str:
    return one.diagnosis.mode if one.diagnosis is not None else ""


def _finding(broken: list[ContainerDevices], total: int) -> Finding:
    diagnoses = [one.diagnosis for one in broken if one.diagnosis is not None]
    worst = diagnoses[0]
    modes = Counter(one.mode for one in diagnoses).most_common()
    told = names([f"{mode} in {count}" if len(broken) > 1 else mode for mode, count in modes])
    they = "they were" if len(broken) > 1 else "it was"
    rows = cause_evidence(broken[0])
    rows += [
        told
        for one in broken
        for told in (*since_evidence(one), *(row_evidence(one, row) for row in broken_rows(one)))
    ]
    steps = repair_line(broken[0].workload.name)
    return fires(
        "critical" if any(lacks_needed(one) for one in broken) else "warning",
        f"{len(broken)} of {total} containers with devices cannot use what {they} promised"
        f" ({told}): {broken[0].workload.name}: {worst.headline}",
        rows[:SHOWN],
        outlook="Programs fall back to the CPU and say nothing.",
        brief=Brief(
            headline=f"{len(broken)} of {total} containers with devices cannot use what {they}"
            f" promised ({told})",
            who=names([one.workload.name for one in broken]),
            why=f"{worst.headline}; programs fall back to the CPU and say nothing",
        ),
        confirm=[gpu_line(one.workload.name) for one in broken[:3]],
        remedy=[
            *list(dict.fromkeys(one.remedy for one in diagnoses))[:3],
            f"the steps in their order, and what each does not mend: {steps}",
        ],
    )
