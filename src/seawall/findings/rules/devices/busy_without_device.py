# SPDX-License-Identifier: Apache-2.0
"""A container has a GPU, is busy on the CPU, and none of its processes has the GPU open.

The symptom itself, whatever the cause: a program that could not open its device computes on the
CPU, many times slower, and says so in one line of a log at best.  A program that loads data or
compiles first is not meant: only processes of some age and some CPU time count.  What is not
told apart is a program that never wanted the GPU; then the GPU is idle, and nobody else gets it.
"""

from collections.abc import Sequence

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.idle_promise import Old, OldProcesses, without_device
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.findings.device_words import broken_rows, gpu_line, row_evidence
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.driver_files import DriverFiles
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.words import duration


@rule(
    id="SW405",
    title="A container with a GPU computes on the CPU",
    severity="critical",
    thresholds={
        "least_minutes": "age of a process in minutes; younger ones load or compile; proposal",
        "least_cpu_minutes": "CPU minutes that those processes used in all; proposal",
        "busy_cpus": "CPUs that they use over the window: less is waiting; proposal",
    },
    confirm=("seawall gpu", "ls -l /proc/PID/fd | grep -E '/dev/(nvidia|kfd|dri)'"),
    remedy=(
        "ask inside it, as its user, whether the device opens: seawall gpu check",
        "python: torch.cuda.is_available(), or what its framework has; its log's first minutes",
        "if it never wanted the GPU, run it without: nobody else gets the GPU meanwhile",
    ),
    provide="root with CAP_SYS_PTRACE, and a window of some seconds",
)
def judge(
    table: DeviceTable,
    workloads: Workloads,
    files: DriverFiles,
    window: TopicWindow[Processes],
    kernel: Kernel,
    *,
    least_minutes: float = 10.0,
    least_cpu_minutes: float = 5.0,
    busy_cpus: float = 0.5,
) -> Sequence[Finding]:
    if kernel.uptime_seconds is None and table.containers:
        return [blind("how old its processes are is not known", Unread("/proc/uptime", "absent"))]
    found = without_device(table, workloads, files, window, Old(kernel, least_minutes * 60))
    busy = [
        one for one in found
        if one.busy_cpus >= busy_cpus and one.cpu_seconds >= least_cpu_minutes * 60
    ]  # fmt: skip
    # Whoever may not be looked into could have it open; but not what is refused to all of them.
    told = [one for one in busy if not files.left_out or one.devices.diagnosis]
    findings = [_finding(one) for one in sorted(told, key=lambda one: -one.busy_cpus)]
    if len(told) < len(busy):
        words = f"{files.left_out} processes were not asked what they have open"
        names = ", ".join(one.devices.workload.name for one in busy if one not in told)
        findings.append(blind(f"has {names} its device open? Not known",
                              Unread("/proc/PID/fd", "refused", words)))  # fmt: skip
    return findings or [quiet("no container with a GPU is busy on the CPU without it")]


def _finding(one: OldProcesses) -> Finding:
    devices, task = one.devices, one.busiest
    is_known = devices.diagnosis is not None
    cause = (
        f" ({devices.diagnosis.mode}: {devices.diagnosis.headline})" if devices.diagnosis else ""
    )
    return fires(
        "critical" if is_known else "warning",
        f"{one.busy_cpus:.1f} CPUs are busy in {devices.workload.name}, and none of its processes"
        f" has its {devices.device_class} device open{cause}",
        [
            Evidence("promised by", devices.promised_by, "text", "seawall gpu"),
            Evidence("CPUs in use", one.busy_cpus, "count", f"/proc/{task.pid}/stat"),
            Evidence("CPU time of its old processes", one.cpu_seconds, "seconds",
                     f"/proc/{task.pid}/stat"),
            Evidence("age of the eldest", one.age_seconds, "seconds", "/proc/uptime"),
            Evidence("busiest", f"{task.comm} (pid {task.pid})", "text", f"/proc/{task.pid}/stat"),
            *(row_evidence(devices, row) for row in broken_rows(devices)[:3]),
        ],
        outlook=f"It has had {duration(one.age_seconds)} to open it.",
        workload=devices.workload.name,
        confirm=(gpu_line(devices.workload.name), f"ls -l /proc/{task.pid}/fd | grep /dev/"),
        remedy=(devices.diagnosis.remedy,) if devices.diagnosis else None,
    )  # fmt: skip
