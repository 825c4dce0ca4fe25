# SPDX-License-Identifier: Apache-2.0
"""Settings that turn one container's OOM kill, or a panic, into a dead node.

panic_on_oom=2 panics even when a single container reaches its own limit; 1 when the node is
short.  oom_kill_allocating_task=1 kills whoever asks next, not who holds the memory.
kernel.panic=0 leaves a node that panicked dead until somebody resets it by hand.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.sysctl_vm import VmSysctls

PANIC_ON_OOM = "/proc/sys/vm/panic_on_oom"
ALLOCATING = "/proc/sys/vm/oom_kill_allocating_task"
PANIC = "/proc/sys/kernel/panic"


@rule(
    id="SW904",
    title="OOM and panic settings that make an incident worse",
    severity="info",
    audit=True,
    thresholds={"least_panic_seconds": "seconds until reboot; 0 waits for ever, < 0 is at once"},
    confirm=(f"grep -H . {PANIC_ON_OOM} {ALLOCATING} {PANIC}",),
    remedy=(
        "sysctl -w vm.panic_on_oom=0 vm.oom_kill_allocating_task=0 kernel.panic=10",
        "and the same in /etc/sysctl.d; the kubelet sets panic_on_oom=0 and panic=10 itself",
    ),
)
def judge(sysctls: VmSysctls, *, least_panic_seconds: int = 1) -> Finding:
    oom, task = sysctls.panic_on_oom, sysctls.oom_kill_allocating_task
    panic = sysctls.kernel_panic_seconds
    rows = [
        Evidence("panic_on_oom", oom, "count", PANIC_ON_OOM),
        Evidence("oom_kill_allocating_task", task, "count", ALLOCATING),
        Evidence("kernel.panic", panic, "seconds", PANIC),
    ]
    evidence = [row for row in rows if row.value is not None]
    if not evidence:
        return blind("these settings could not be read", Unread(PANIC_ON_OOM, "absent"))
    said = []
    if oom == 2:
        said.append("panic_on_oom is 2: the OOM kill of one container panics the node")
    elif oom:
        said.append("panic_on_oom is 1: the node panics instead of killing one process")
    if task:
        said.append("oom_kill_allocating_task is 1: whoever asks next is killed")
    if panic is not None and 0 <= panic < least_panic_seconds:
        said.append("kernel.panic is 0: after a panic it stays dead until someone resets it")
    if not said:
        return quiet("OOM and panic settings are as they should be", evidence)
    return fires("info", "; ".join(said), evidence)
