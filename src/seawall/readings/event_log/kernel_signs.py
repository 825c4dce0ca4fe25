# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""What the kernel says beside OOM reports: hung tasks, failed allocations, Xids, its own start.

Sources: kernel/hung_task.c check_hung_task; mm/page_alloc.c warn_alloc; mm/slub.c
slab_out_of_memory; kernel/watchdog.c; NVIDIA's open-gpu-kernel-modules, nvidia/src/kernel.
"""

from typing import Final

from seawall.readings.event_log.sign import Pattern, pattern

_OF: Final = "kernel"
KERNEL_PATTERNS: Final[tuple[Pattern, ...]] = (
    pattern(
        "hung_task", "blocked",
        r"(?:INFO: )?task (?P<comm>.{1,64}):(?P<pid>\d{1,10}) blocked (?:in I/O wait )?for more "
        r"than (?P<seconds>\d{1,10}) seconds", _OF,
    ),
    pattern(
        "lockup", "lockup",
        r"(?:watchdog: |NMI watchdog: )?(?:BUG: )?(?P<kind>soft|hard) lockup - CPU#(?P<cpu>\d{1,5}) stuck for (?P<seconds>\d{1,8})s!"
        r"(?: \[(?P<comm>.{1,64}):(?P<pid>\d{1,10})\])?", _OF,
    ),
    pattern(
        "allocation_failure", "allocation failure",
        r"(?P<comm>.{1,64}): page allocation failure[:.] order:(?P<order>\d{1,3}),? "
        r"mode:(?P<mode>0x[0-9a-f]{1,16})(?:\((?P<gfp>[A-Z_|a-z0-9]{1,400})\))?", _OF,
    ),
    pattern(
        "allocation_failure", "Unable to allocate memory",
        r"SLUB: Unable to allocate memory on (?:CPU \d+ \(of )?node (?P<node>-?\d{1,5})\)?,? "
        r"\(?gfp=(?P<mode>0x[0-9a-f]{1,16})(?:\((?P<gfp>[A-Z_|a-z0-9]{1,400})\))?", _OF,
    ),
    pattern("workqueue", "Workqueue: ", r"Workqueue: \S{1,64} (?P<work>\S{1,64})", _OF),
    pattern("compaction", "direct_compact", r"\s*\??\s*\S{0,40}direct_compact", _OF),
    pattern("mem_info", "Mem-Info:", r"Mem-Info:", _OF),
    pattern(
        "driver_no_memory", "NV_ERR_NO_MEMORY",
        r"NVRM: (?P<where>\w{1,80}): .{0,200}NV_ERR_NO_MEMORY", _OF,
    ),
    pattern("driver_no_sysmem", "sysmem", r"NVRM: \w{1,80}: .{0,40}Cannot allocate sysmem", _OF),
    pattern(
        "xid", "NVRM: Xid",
        r"NVRM: Xid \((?:PCI:)?(?P<gpu>[0-9a-fA-F:.]{1,16})\): (?P<xid>\d{1,6}), ?"
        r"(?:pid=(?P<pid>'?<?\w{1,16}>?'?)(?:, name=(?P<comm><?[^,]{1,64}>?))?, ?)?(?P<rest>.{0,300})",
        _OF,
    ),
    pattern("driver_loaded", "NVRM: loading", r"NVRM: loading NVIDIA", _OF),
    pattern("boot", "Linux version ", r"Linux version (?P<release>\d\S{0,80})", _OF),
    pattern("boot", "-- Boot", r"-- Boot [0-9a-f]{32} --"),
    pattern("boot", "-- Reboot", r"-- Reboot --"),
    pattern(
        "boot_likely", "nserted module", r"Inserted module", "systemd-modules-load systemd-modules-load.service",
    ),
    pattern("boot_likely", "Journal started", r"Journal started", "systemd-journald systemd-journal"),
    pattern("shutdown", "Journal stopped", r"Journal stopped", "systemd-journald systemd-journal"),
    pattern(
        "shutdown", "Reached target",
        r"Reached target .{0,40}(?:[Rr]eboot|[Pp]ower|[Ss]hutdown|Final|[Hh]alt)", "systemd",
    ),
    pattern("shutdown", "Shutting down", r"Shutting down\.", "systemd"),
    pattern("shutdown", "reboot: ", r"reboot: (?:Restarting|Power|System halted)", _OF),
    pattern("shutdown", "exiting on signal", r".{0,300}exiting on signal", "rsyslogd syslogd syslog-ng"),
    pattern("shutdown", "System is ", r"System is (?:rebooting|powering down|halting)", "systemd-logind"),
    pattern("shutdown", "The system will ", r"The system will (?:reboot|power off|halt)", "systemd-logind"),
    pattern("shutdown", "", r".{0,200}", "systemd-shutdown"),
    pattern(
        "unit_oom_kill", "OOM killer",
        r"(?P<unit>\S{1,255}): A process of this unit has been killed by the OOM killer", "systemd",
    ),
    pattern(
        "guard_line", "seawall-guard: ", r"seawall-guard: (?P<decision>[0-9a-f]{8}-\d{1,10}): (?P<words>.{1,900})", _OF,
    ),
)  # fmt: skip
