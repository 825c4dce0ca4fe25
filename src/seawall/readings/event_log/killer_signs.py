# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""What OOM killers in user space say: systemd-oomd, oomd, earlyoom, nohang, Talos.

Sources: systemd src/oom/oomd-manager.c and oomd-util.c (v247 to v258, "Killed ..." became
"Marked ... for killing"); oomd src/oomd/plugins; earlyoom main.c and kill.c (1.0 to 1.8); nohang
0.1 and 0.2; Talos internal/app/machined/pkg/controllers/runtime/oom.go.
"""

from typing import Final

from seawall.readings.event_log.sign import Pattern, pattern

_SYSTEMD_OOMD: Final = "systemd-oomd"
_EARLYOOM: Final = "earlyoom"
_NOHANG: Final = "nohang nohang-desktop"
KILLER_PATTERNS: Final[tuple[Pattern, ...]] = (
    pattern(
        "oomd_mark", "due to",
        r"(?P<done>Killed|Marked) (?P<path>/\S{1,1000}?)(?: for killing)? due to (?P<why>.{0,300})",
        _SYSTEMD_OOMD,
    ),
    pattern(
        "oomd_attempt", "attempting to kill",
        r"(?:systemd-)?oomd attempting to kill %?(?P<pid>\d{1,10}) with (?P<signal>\w{1,10})",
        _SYSTEMD_OOMD,
    ),
    pattern(
        "oomd_pressure", "Memory pressure for",
        r"Memory pressure for (?P<path>/\S{0,1000}) is (?P<is>[\d.]{1,8})% > (?P<limit>[\d.]{1,8})% "
        r"for > (?P<time>\w{1,10})", _SYSTEMD_OOMD,
    ),
    pattern("oomd_swap", "wap used", r"(?P<why>(?:Memory|Swap) used \(.{0,300})", _SYSTEMD_OOMD),
    pattern("oomd_considered", "Considered", r"Considered (?P<count>\d{1,8}) cgroups", _SYSTEMD_OOMD),
    pattern("oomd_path", "Path:", r"\s{0,40}Path: (?P<path>/\S{1,1000})", _SYSTEMD_OOMD),
    pattern(
        "oomd_use", "Current Memory Usage",
        r"\s{0,40}Current Memory Usage: (?P<size>[\d.]{1,12}[BKMGT]?)", _SYSTEMD_OOMD,
    ),
    pattern("oomd_failed", "ailed to kill", r".{0,300}ailed to kill", _SYSTEMD_OOMD),
    pattern(
        "oomd_unit", "systemd-oomd killed",
        r"(?P<unit>\S{1,512}): systemd-oomd killed (?P<count>\d{1,8}|some) process", "systemd",
    ),
    pattern(
        "fb_oomd_kill", "oomd kill:",
        r"oomd kill: (?P<pressure>[\d. ]{0,60}?) ?(?P<path>\S{1,1000}) (?P<bytes>\d{1,20}) "
        r"ruleset:\[(?P<ruleset>[^\]]{0,200})\]", "oomd",
    ),
    # earlyoom
    pattern(
        "earlyoom_banner", "when mem",
        r"\s{0,20}(?:sending )?SIG(?:TERM|KILL) when mem <= ?(?P<mem>[\d. ]{1,8})% and swap <= ?"
        r"(?P<swap>[\d. ]{1,8})%", _EARLYOOM,
    ),
    pattern(
        "earlyoom_avail", "mem avail:",
        r"mem avail: *(?P<avail>\d{1,12}) of *(?P<total>\d{1,12}) MiB \( *(?P<mem>[\d.]{1,6}) ?%\), "
        r"swap free: *(?P<free>\d{1,12}) of *(?P<swap_total>\d{1,12}) MiB \( *(?P<swap>[\d.]{1,6}) ?%\)",
        _EARLYOOM,
    ),
    pattern(
        "earlyoom_low", "low memory!",
        r"low memory! at or below (?P<signal>SIG\w{1,8}) limits: mem *(?P<mem>[\d.]{1,6}) ?%, "
        r"swap *(?P<swap>[\d.]{1,6}) ?%", _EARLYOOM,
    ),
    pattern(
        "earlyoom_send", "to process",
        r"sending (?P<signal>SIG\w{1,8}) to process (?P<pid>\d{1,10})(?: uid (?P<uid>\d{1,10}))? "
        r'"(?P<comm>[^"]{0,64})"(?:: (?:oom_score|badness) \d{1,6}, VmRSS (?P<rss>\d{1,12}) MiB)?',
        _EARLYOOM,
    ),
    pattern(
        "earlyoom_send", "Killing process",
        r"Killing process (?P<pid>\d{1,10}) (?P<comm>\S{1,64})", _EARLYOOM,
    ),
    pattern("earlyoom_gone", "process exited", r"process exited", _EARLYOOM),
    pattern(
        "earlyoom_gone", "exited after",
        r"process (?P<pid>\d{1,10}) exited after (?P<seconds>[\d.]{1,10}) seconds", _EARLYOOM,
    ),
    pattern("earlyoom_failed", "kill", r"(?:kill failed|kill: .{0,80}: .{1,80}|escalating).{0,100}", _EARLYOOM),
    pattern(
        "killer_died", "Main process exited",
        r"(?P<unit>(?:earlyoom|nohang|nohang-desktop|systemd-oomd|oomd|seawall-guard)\.service): "
        r"Main process exited, code=(?P<code>\w{1,10}), status=(?P<status>[\w/]{1,20})", "systemd",
    ),
    # nohang
    pattern(
        "nohang_victim", "PID:",
        r"\s{0,10}(?:PID|Victim):? *(?P<pid>\d{1,10})(?:, Name: (?P<comm>.{1,64}))?", _NOHANG,
    ),
    pattern("nohang_name", "Name:", r"\s{0,10}Name: *(?P<comm>\S{1,64})", _NOHANG),
    pattern(
        "nohang_victim", "The victim is",
        r".{0,80}[Tt]he victim is PID (?P<pid>\d{1,10})(?: \((?P<comm>[^)]{1,64})\))?", _NOHANG,
    ),
    pattern("nohang_rss", "VmRSS:", r"\s{0,10}VmRSS: *(?P<mib>\d{1,10}) MiB", _NOHANG),
    pattern("nohang_swap", "VmSwap:", r"\s{0,10}VmSwap: *(?P<mib>\d{1,10}) MiB", _NOHANG),
    pattern("nohang_cgroup", "CGroup_v", r"\s{0,10}CGroup_v[12]: *(?P<path>/\S{1,500})", _NOHANG),
    pattern("nohang_path", "Realpath:", r"\s{0,10}Realpath: *(?P<path>/\S{1,500})", _NOHANG),
    pattern("nohang_life", "Lifetime:", r"\s{0,10}Lifetime: *(?P<life>[\w ]{1,60})", _NOHANG),
    pattern(
        "nohang_send", "victim",
        r"\s{0,10}(?:Send(?:ing)?|Sent) (?P<signal>SIG\w{1,8}) to the victim"
        r"(?:; total response time: *(?P<ms>\d{1,8}) ?ms)?", _NOHANG,
    ),
    pattern(
        "nohang_no_answer", "respond",
        r"(?:The v|V)ictim doesn't respond on corrective action in (?P<seconds>[\d.]{1,10}) sec", _NOHANG,
    ),
    pattern("nohang_died", "died", r"(?:The v|V)ictim died in (?P<seconds>[\d.]{1,10}) sec", _NOHANG),
    pattern(
        "nohang_left", "MemAvailable:", r"\s{0,10}MemAvailable: *(?P<mib>[\d.]{1,12}) MiB", _NOHANG,
    ),
    # Talos
    pattern(
        "talos_kill", "Sending SIGKILL to cgroup",
        r'.{0,40}Sending SIGKILL to cgroup.{0,600}?"cgroup": ?"(?P<path>[^"]{1,500})"', "talos",
    ),
    pattern("talos_kill", "Sending SIGKILL to cgroup", r".{0,40}Sending SIGKILL to cgroup ?(?P<path>/\S{0,500})?", "talos"),
    pattern(
        "talos_victims", "victim processes",
        r'.{0,40}victim processes:.{0,300}?"processes": ?\[(?P<names>[^\]]{1,900})', "talos",
    ),
    pattern(
        "talos_triggered", "OOM controller",
        r".{0,40}OOM controller triggered", "talos",
    ),
)  # fmt: skip
