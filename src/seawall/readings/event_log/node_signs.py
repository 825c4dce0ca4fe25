# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""What the kubelet, container runtimes and Slurm say of kills, evictions and nodes that fail.

Sources: kubernetes pkg/kubelet/eviction/eviction_manager.go, helpers.go, pkg/kubelet/kubelet.go,
pkg/kubelet/oom/oom_watcher_linux.go (1.3 to 1.34); containerd pkg/cri events; moby libcontainerd;
conmon; Slurm src/slurmd/slurmstepd, src/slurmctld, src/srun (17.11 to 25.05), of memory
src/plugins/task/cgroup/task_cgroup_memory.c and jobacct_gather.c (14.11 to 26.05).
"""

from typing import Final

from seawall.kubelet_names import PROGRAMS
from seawall.readings.event_log.sign import Pattern, pattern

_KUBELET: Final = " ".join(
    (*sorted(PROGRAMS), "microk8s.daemon-kubelite", "microk8s.daemon-kubelet")
)
_POD: Final = r"[a-z0-9][a-z0-9.-]{0,252}"
KUBELET_PATTERNS: Final[tuple[Pattern, ...]] = (
    pattern(
        "eviction_begins", "attempting to reclaim",
        r'"?[Ee]viction manager: attempting to reclaim"? ?(?:resourceName=)?"?(?P<resource>[\w.:-]{1,60})',
        _KUBELET,
    ),
    pattern(
        "eviction_ranked", "ranked for eviction",
        r'"?[Ee]viction manager: pods ranked for eviction(?:: |" pods=)(?P<pods>.{1,3000})', _KUBELET,
    ),
    pattern(
        "evicted", "evicted successfully",
        rf'"?[Ee]viction manager: pod (?:is evicted successfully" pod="(?P<ns>{_POD})/(?P<pod>{_POD})"'
        r"|(?P<old>\S{1,600}?)(?:\([0-9a-f-]{8,64}\))? (?:is )?evicted successfully)", _KUBELET,
    ),
    pattern(
        "evicted_low", "low on resource",
        r".{0,700}?[Tt]he node was low on resource: \[?(?P<resource>[\w.:-]{1,60})\]?\.?"
        r"(?: Threshold quantity: (?P<threshold>[\w.]{1,24}), available: (?P<available>[\w.]{1,24})\.)?"
        r"(?: [Cc]ontainer (?P<container>[\w.-]{1,253}) was using (?P<using>[\w.]{1,24}))?", _KUBELET,
    ),
    pattern("eviction_over", "starved", r'"?[Ee]viction manager: no resources are starved', _KUBELET),
    pattern("eviction_met", "EvictionThresholdMet", r".{0,400}?EvictionThresholdMet", _KUBELET),
    pattern(
        "node_not_ready", "ecame not ready",
        r'"?Node became not ready(?:" node="(?P<node2>[\w.-]{1,253})")?'
        r"(?:.{0,300}?LastTransitionTime:(?P<date>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d{1,9})? "
        r"(?P<zone>[+-]\d{4})(?: \w{1,6})?(?: m=\+(?P<uptime>\d{1,10})[.\d]{0,12})?)?"
        r"(?:.{0,300}?pleg was last seen active (?P<ago>[\dhms.]{1,30}) ago; "
        r"threshold is (?P<threshold>[\dhms.]{1,30}))?", _KUBELET,
    ),
    pattern(
        "pleg", "PLEG is not healthy",
        r".{0,300}?PLEG is not healthy: pleg was last seen active (?P<ago>[\dhms.]{1,30}) ago; "
        r"threshold is (?P<threshold>[\dhms.]{1,30})", _KUBELET,
    ),
    pattern("pleg", "PLEG is not healthy", r".{0,300}?PLEG is not healthy(?P<ago>)(?P<threshold>)", _KUBELET),
    pattern(
        "node_not_ready", "NodeNotReady",
        r'.{0,200}?(?:Recording NodeNotReady event message for node (?P<node>[\w.-]{1,253})'
        r'|event message for node" node="(?P<node2>[\w.-]{1,253})" event="NodeNotReady")', _KUBELET,
    ),
    pattern(
        "node_ready", "NodeReady",
        r'.{0,200}?(?:Recording NodeReady event message for node (?P<node>[\w.-]{1,253})'
        r'|event message for node" node="(?P<node2>[\w.-]{1,253})" event="NodeReady")', _KUBELET,
    ),
    pattern(
        "kubelet_oom", "System OOM encountered",
        r".{0,200}?System OOM encountered, victim process: (?P<comm>[^,]{0,64}), pid: (?P<pid>\d{1,10})", _KUBELET,
    ),
)  # fmt: skip

_RUNTIMES: Final = (
    "containerd dockerd docker k3s rke2 microk8s.daemon-containerd crio conmon cri-o kubelite"
)
RUNTIME_PATTERNS: Final[tuple[Pattern, ...]] = (
    pattern(
        "task_oom", "TaskOOM",
        r".{0,200}?TaskOOM(?: event)?.{0,60}?[cC]ontainer_?[iI][dD]\W{1,6}(?P<id>[0-9a-f]{12,64})", _RUNTIMES,
    ),
    pattern("task_oom", "/tasks/oom", r"(?:.{0,300}?container=(?P<id>[0-9a-f]{64}))?.{0,300}?topic=/tasks/oom", _RUNTIMES),
    pattern("task_oom", "container oom ", r".{0,40}?container oom (?P<id>[0-9a-f]{12,64})"),
    pattern(
        "task_oom", "OOM", r"(?:conmon )?(?P<id>[0-9a-f]{12,64})? ?(?:<n?\w{1,10}>: )?OOM (?:event )?received", "conmon crio",
    ),
    pattern(
        "sandbox_stop", "StopPodSandbox", r'StopPodSandbox for "(?P<id>[0-9a-f]{12,64})"', _RUNTIMES,
    ),
)  # fmt: skip

# kubectl describe pod, kubectl get pods
POD_PATTERNS: Final[tuple[Pattern, ...]] = (
    pattern("pod_oom", "OOMKilled", r"\s{2,40}[Rr]eason: {1,20}OOMKilled\s*\Z"),
    pattern(
        "pod_oom", "OOMKilled",
        rf"(?:(?P<ns>{_POD}) +)?(?P<pod>{_POD}) +\d{{1,4}}/\d{{1,4}} +(?:Init:)?OOMKilled +(?P<count>\d{{1,9}})\b",
    ),
    pattern("pod_exit", "Exit Code:", r" {2,40}Exit Code: {1,20}(?P<code>\d{1,3})\s*\Z"),
    pattern("pod_end", "Finished:", r" {2,40}Finished: {1,20}(?P<at>[\w,:+ -]{10,40}?)\s*\Z"),
    pattern("pod_restarts", "Restart Count:", r" {2,40}Restart Count: {1,20}(?P<count>\d{1,9})\s*\Z"),
    pattern("pod_limits", "Limits:", r" {2,40}Limits:\s*\Z"),
    pattern("pod_requests", "Requests:", r" {2,40}Requests:\s*\Z"),
    pattern("pod_memory", "memory:", r" {2,40}memory: {1,20}(?P<size>\d{1,18}(?:\.\d{1,6})?(?:[kKMGTPE]i?|m)?)\s*\Z"),
)  # fmt: skip

_SLURM: Final = "slurmstepd slurmd slurmctld srun slurm"
# Log.c, log_build_step_id_str: since 26.05 Slurm's own id where there is no number.
_STEP: Final = r"(?:\d{1,12}|s[0-9A-HJKMNP-TV-Z]{13})(?:\.\w{1,12}(?:\+\d{1,10})?)?"
_AT: Final = r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)"
SLURM_PATTERNS: Final[tuple[Pattern, ...]] = (
    pattern(
        "step_oom", "oom",
        r".{0,80}?Detected (?P<count>\d{1,8}) oom[_-]kill event(?:\(s\)|s)? in "
        rf"(?:(?:StepId=|step )(?P<step>{_STEP})|(?P<step2>\S{{1,60}}))", _SLURM,
    ),
    # JobAcctGatherParams=OverMemoryKill, and before 18.08 by itself: Slurm's own kill.
    pattern(
        "step_over", "memory limit (",
        rf".{{0,80}}?(?:[SJ]\w{{2,3}}Id=|Step |Job )(?P<step>{_STEP}) exceeded (?P<virtual>virtual )?memory limit "
        r"\((?P<used>\d{1,20}) > (?P<limit>\d{1,20})\), being killed", _SLURM,
    ),
    # Cgroup v1 alone: the limit was reached, which page cache does too.
    pattern(
        "step_at_limit", "at least once",
        rf".{{0,80}}?(?:[SJ]\w{{2,3}}Id=|[Ss]tep |[Jj]ob )(?P<step>{_STEP}) hit memory(?:\+swap)? limit at least once", _SLURM,
    ),
    pattern(
        "step_oom", "oom-kill",
        r".{0,80}?Exceeded (?:step|job) memory limit.{0,80}(?P<count>)(?P<step>)", _SLURM,
    ),
    pattern(
        "task_oom_slurm", "Out Of Memory",
        r"error: (?P<node>[\w.-]{1,253}): tasks? (?P<task>[\d,-]{1,80}): (?:OOM Killed|Out Of Memory)", "srun slurm",
    ),
    pattern(
        "task_oom_slurm", "OOM Killed",
        r"error: (?P<node>[\w.-]{1,253}): tasks? (?P<task>[\d,-]{1,80}): OOM Killed", "srun slurm",
    ),
    pattern(
        "task_died", "error: ",
        r"error: (?P<node>[\w.-]{1,253}): tasks? (?P<task>[\d,-]{1,80}): "
        r"(?P<how>Bus error|Segmentation fault|Killed|Aborted)", "srun",
    ),
    pattern("step_ends", "Terminating job step", r"Terminating job step (?P<step>\d{1,12}\.\w{1,12})", "srun"),
    pattern(
        "step_stuck", "STEPD TERMINATED",
        rf".{{0,60}}?STEP (?P<step>\d{{1,12}}\.\w{{1,12}}) STEPD TERMINATED ON (?P<node>[\w.-]{{1,253}}) AT {_AT} "
        r"DUE TO (?P<why>[A-Z ]{1,60})", _SLURM,
    ),
    pattern(
        "step_cancelled", "CANCELLED AT",
        rf".{{0,60}}?STEP (?P<step>\d{{1,12}}\.\w{{1,12}}) ON (?P<node>[\w.-]{{1,253}}) CANCELLED AT {_AT}"
        r"(?P<why> DUE TO [A-Z ]{1,60})?", _SLURM,
    ),
    pattern("step_done", "done with job", r"\[(?P<step>\d{1,12}\.\w{1,12})\] done with job", "slurmd slurmstepd"),
    pattern(
        "job_lost", "Killing JobId",
        r".{0,40}?Killing JobId=(?P<job>\d{1,12})\S{0,20} on failed node (?P<node>[\w.-]{1,253})", "slurmctld",
    ),
    pattern(
        "node_down", "not responding",
        r".{0,40}?error: [Nn]odes? (?P<node>[\w.,\[\]-]{1,253}) not responding(?P<down>, setting DOWN)?", "slurmctld",
    ),
    pattern(
        "sinfo_reason", "ot responding",
        r"Not responding +\S{1,32} +(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) +(?P<node>[\w.,\[\]-]{1,253})\s*\Z",
    ),
    pattern(
        "sacct_fail", "NODE_FAIL",
        r"(?P<job>\d{1,12}) +\S{1,64} +NODE_FAIL +(?P<elapsed>[\d:-]{1,20})(?: +(?P<node>[\w.,\[\]-]{1,253}))?\s*\Z",
    ),
)  # fmt: skip
