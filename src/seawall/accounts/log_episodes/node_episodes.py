# SPDX-License-Identifier: Apache-2.0
"""Evictions, nodes that are not ready, OOM events of container runtimes and of Slurm."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.log_episodes.episode import (
    brief,
    episode,
    moments_of,
    runs,
    span_seconds,
)
from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.readings.event_log.event_log import EventLog
from seawall.readings.event_log.log_line import LogTime
from seawall.readings.event_log.sign import Sign
from seawall.words import first, size

_EVICTION_GAP: Final = 30.0
_SPELL_GAP: Final = 120.0
_GO_TIME: Final = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})(?:\.\d{1,12})?s)?\Z")
_QUOTED_POD: Final = re.compile(r'"([^"]{1,506})"')
_UID_TAIL: Final = re.compile(r"\([0-9a-f-]{8,64}\)")
_SHORT_ID: Final = 12
_PODS_MOST: Final = 200
_OWN_SAMPLE: Final = (
    "by its own sample of the processes (JobAcctGatherParams=OverMemoryKill; before 18.08 without "
    "it), not by the kernel's OOM killer: the cgroup's limit was not what decided"
)


# --- the kubelet --------------------------------------------------------------------------


def evictions(log: EventLog) -> Iterator[RecentEvent]:
    """From the threshold to the pods that ended: ranked and evicted are the same pods."""
    whats = ("eviction_begins", "eviction_ranked", "evicted", "evicted_low", "eviction_met")
    told = [s for s in log.signs if s.what in whats]
    overs = [s for s in log.signs if s.what == "eviction_over"]
    for run in runs(told, _EVICTION_GAP):
        yield _eviction(run, next((s for s in overs if _is_after(s, run[-1])), None))


def _is_after(sign: Sign, last: Sign) -> bool:
    return sign.line.number > last.line.number


def _eviction(run: Sequence[Sign], over: Sign | None) -> RecentEvent:
    resource = next((s.words["resource"] for s in run if s.words.get("resource")), "").rstrip(".")
    pods = list(dict.fromkeys(_pod(s) for s in run if s.what == "evicted"))
    ranked = list(dict.fromkeys(p for s in run if s.what == "eviction_ranked" for p in _ranked(s)))
    details = [f"evicted: {pod}" for pod in pods[:6]]
    if ranked:
        rest = [pod for pod in ranked if pod not in pods]
        details.append(
            f"ranked: {len(ranked)}"
            + (f", of them not evicted here {first(rest, 3)}" if rest else "")
        )
    low = next((s.words for s in run if s.what == "evicted_low" and s.words["threshold"]), None)
    if low:
        details.append(f"threshold {low['threshold']}, available {low['available']}")
    details += [
        f"container {sign.words['container']} was using {sign.words['using']}"
        for sign in run
        if sign.what == "evicted_low" and sign.words["using"]
    ]
    if resource.startswith("memory"):
        details.append(
            "the node's memory.available was under the kubelet's threshold, not a pod's limit"
        )
    details.append(
        "the kubelet ended pods on purpose; the kernel's OOM killer was not at work here"
    )
    if not low:
        details.append("the threshold and the pods' sizes are not in these lines")
    moments = moments_of(run)
    if over is not None:
        gap = span_seconds(run[-1].line.moment, over.line.moment)
        details.append(
            f"no longer short at {over.line.moment.text}"
            + ("" if gap is None else f", {gap:.0f} s later")
        )
    else:
        details.append("no line says that the shortage was over")
    for_what = f" for {resource}" if resource else ""
    if pods:
        words = (
            f"kubelet evicted {first([brief(pod.rpartition('/')[2]) for pod in pods], 2)}{for_what}"
        )
    elif any(s.what == "evicted_low" for s in run):
        words = f"kubelet evicted a pod{for_what}"
    else:
        words = f"kubelet tried to reclaim{f' {resource}' if resource else ''}; no eviction is told"
    return episode(
        "eviction", moments, words, details, count=max(1, len(pods)),
        workload=pods[0] if len(pods) == 1 else None,
    )  # fmt: skip


def _pod(sign: Sign) -> str:
    words = sign.words
    if words["pod"]:
        return f"{words['ns']}/{words['pod']}"
    return _old_name(words["old"])


def _old_name(text: str) -> str:
    """``pod_namespace`` of kubelets before 1.12."""
    pod, _, namespace = text.strip().partition("_")
    return f"{namespace}/{pod}" if namespace else pod


def _ranked(sign: Sign) -> list[str]:
    text = sign.words["pods"]
    if '"' in text:
        return _QUOTED_POD.findall(text)[:_PODS_MOST]
    return [_old_name(name) for name in _UID_TAIL.sub("", text).split(",")][:_PODS_MOST]


def not_ready(log: EventLog) -> Iterator[RecentEvent]:
    """A spell of the PLEG and of the node's state, from its first line to Ready."""
    whats = ("pleg", "node_not_ready", "node_ready")
    spell: list[Sign] = []
    for sign in (s for s in log.signs if s.what in whats):
        passed = sign.line.moment.after(spell[-1].line.moment) if spell else None
        is_old = passed is not None and passed > _SPELL_GAP and sign.what != "node_ready"
        if is_old and spell:
            yield from _spell(spell)
            spell = []
        spell.append(sign)
        if sign.what == "node_ready":
            yield from _spell(spell)
            spell = []
    yield from _spell(spell)


def _spell(spell: Sequence[Sign]) -> Iterator[RecentEvent]:
    if not any(s.what in ("pleg", "node_not_ready") for s in spell):
        return
    first_pleg = next((s for s in spell if s.words.get("ago")), None)
    silent = go_seconds(first_pleg.words["ago"]) if first_pleg else None
    node = next(
        (s.words.get(k, "") for s in spell for k in ("node", "node2") if s.words.get(k)), ""
    )
    ready = spell[-1] if spell[-1].what == "node_ready" else None
    down = next((s for s in spell if s.what == "node_not_ready"), None)
    name = f"node {node}" if node else "the node"
    details = list(_spell_details(spell, down, ready, first_pleg, silent))
    seconds = span_seconds(down.line.moment, ready.line.moment) if down and ready else None
    if down is not None:
        words = f"{name} NotReady"
        words += f" for {seconds:.0f} s" if seconds is not None else ""
        words += "; PLEG not healthy" if first_pleg else ""
    else:
        words = "kubelet: PLEG not healthy"
        words += f", silent for {_ago(first_pleg)}" if first_pleg else ""
    before = silent if silent is not None else 0.0
    yield episode(
        "node_not_ready", moments_of(spell), words, details, began=before, more="seawall stacks"
    )


def _ago(sign: Sign) -> str:
    seconds = go_seconds(sign.words["ago"])
    if seconds is None or seconds < 120:
        return sign.words["ago"]
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _spell_details(
    spell: Sequence[Sign], down: Sign | None, ready: Sign | None, pleg: Sign | None,
    silent: float | None,
) -> Iterator[str]:  # fmt: skip
    if down is not None:
        yield f"NotReady at {down.line.moment.text}" + (
            f", Ready again at {ready.line.moment.text}" if ready else ""
        )
    if pleg is not None:
        last = [s for s in spell if s.words.get("ago")][-1]
        limit = f", threshold {pleg.words['threshold']}" if pleg.words["threshold"] else ""
        yield f"the PLEG was last active {last.words['ago']} before the last line of it{limit}"
        if silent is not None and (clock := _earlier(pleg.line.moment, silent)):
            yield f"so it began at about {clock}, before the first line"
        yield "the kubelet could not list its containers in time: the runtime is slow or hangs"
    date = next((s.words["date"] + " " + s.words["zone"] for s in spell if s.words.get("date")), "")
    if date:
        yield f"the year and the zone are inside the message: {date}"
    uptime = next((s.words["uptime"] for s in spell if s.words.get("uptime")), "")
    if uptime and down is not None:
        clock = _earlier(down.line.moment, float(uptime))
        yield f"the kubelet had run for {uptime} s" + (f", since about {clock}" if clock else "")
    if ready is None:
        yield "no line says that it was over"
    yield "these lines do not say that memory was the cause; nobody was killed by them"


def _earlier(moment: LogTime, seconds: float) -> str:
    """The time of day so many seconds before, by the log's own clock."""
    wall = moment.wall_seconds if moment.wall_seconds is not None else moment.unix_seconds
    if wall is None:
        return ""
    day = int(wall - seconds) % 86_400
    return f"{day // 3600:02}:{day // 60 % 60:02}:{day % 60:02}"


def go_seconds(text: str) -> float | None:
    """``2h33m12.7s`` as Go prints a duration; None for anything else."""
    found = _GO_TIME.match(text)
    if not found or not text:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60 + seconds


def kubelet_oom_episodes(log: EventLog) -> Iterator[RecentEvent]:
    """``System OOM encountered``: the kubelet read the kernel's log."""
    for run in runs((s for s in log.signs if s.what == "kubelet_oom"), _EVICTION_GAP):
        victims = list(dict.fromkeys(f"{s.words['comm']} ({s.words['pid']})" for s in run))
        yield episode(
            "oom_kill", moments_of(run), f"kubelet saw OOM kills of {first(victims, 3)}",
            ["told by the kubelet, which read it in the kernel's log"], count=len(victims),
            more="seawall oom explain",
        )  # fmt: skip


def unit_kill_episodes(log: EventLog) -> Iterator[RecentEvent]:
    """``A process of this unit has been killed by the OOM killer``."""
    for run in runs((s for s in log.signs if s.what == "unit_oom_kill"), _EVICTION_GAP):
        units = list(dict.fromkeys(s.words["unit"] for s in run))
        yield episode(
            "oom_kill", moments_of(run), f"OOM kill in {first(units, 2)}, says systemd",
            ["which process and what size is in the kernel's own report"], count=len(units),
            workload=units[0], more="seawall oom explain",
        )  # fmt: skip


# --- container runtimes -------------------------------------------------------------------


def container_ooms(log: EventLog) -> Iterator[RecentEvent]:
    """An event of the runtime is at least one OOM in that cgroup, not a number of processes."""
    sandboxes = {s.words["id"] for s in log.signs if s.what == "sandbox_stop"}
    for run in runs((s for s in log.signs if s.what == "task_oom"), _EVICTION_GAP):
        ids = list(dict.fromkeys(s.words["id"] for s in run if s.words["id"]))
        of_sandbox = [one for one in ids if one in sandboxes]
        program = (
            next((s.line.program for s in run if s.line.program), "") or "the container runtime"
        )
        short = [one[:_SHORT_ID] for one in ids]
        details = [f"ID {one}" for one in short[:6]]
        if of_sandbox:
            details.append(
                f"{of_sandbox[0][:_SHORT_ID]} is a pod's sandbox (it is stopped as one): the pod's "
                "cgroup, and not the container that lost a process"
            )
        details.append(
            "which container, which process and what size is in the kernel's report alone"
        )
        details.append("it is about one cgroup's limit; that the node was short is not told")
        what = "pod sandbox" if of_sandbox and len(ids) == 1 else "container"
        yield episode(
            "container_oom", moments_of(run),
            f"{program}: OOM event for {what} {first(short, 2) if short else 'not named'}",
            details, count=max(1, len(ids)), more="seawall oom explain",
            workload=ids[0] if len(ids) == 1 else None,
        )  # fmt: skip


_POD_LINES: Final = 40
"""What kubectl describes of a container stands in fewer lines."""


def described_pods(log: EventLog) -> Iterator[RecentEvent]:
    """``Reason: OOMKilled`` as kubectl shows it: State and Last State are of one container."""
    own: list[Sign] = []
    for sign in log.signs:
        if not sign.what.startswith("pod_"):
            continue
        is_next = sign.what == "pod_oom" and any(s.what == "pod_restarts" for s in own)
        is_far = bool(own) and sign.line.number - own[-1].line.number > _POD_LINES
        if own and (is_next or is_far or own[0].words.get("pod")):
            yield _described_pod(own)
            own = []
        if own or sign.what == "pod_oom":
            own.append(sign)
    if own:
        yield _described_pod(own)


def _described_pod(signs: Sequence[Sign]) -> RecentEvent:
    def word(what: str, name: str) -> str:
        return next((s.words[name] for s in signs if s.what == what and s.words.get(name)), "")

    pod, namespace = word("pod_oom", "pod"), word("pod_oom", "ns")
    restarts = word("pod_restarts", "count") or word("pod_oom", "count")
    section, limit = "", ""
    for sign in signs:
        if sign.what in ("pod_limits", "pod_requests"):
            section = sign.what
        elif sign.what == "pod_memory" and section == "pod_limits":
            limit = limit or sign.words["size"]
    details = []
    if code := word("pod_exit", "code"):
        details.append(f"exit code {code}" + (": SIGKILL" if code == "137" else ""))
    if at := word("pod_end", "at"):
        details.append(f"it ended {at}")
    details.append(f"its limit of memory: {limit}" if limit else "its limit is not in the lines")
    if restarts:
        details.append(f"restarts so far: {restarts}")
    details.append(
        "which process, what size, and whether it was this limit, one above it or the node is in "
        "the kernel's log of the node alone"
    )
    who = "/".join(filter(None, (namespace, pod)))
    name = f"a container of {who}" if who else "a container"
    of = f", its memory limit is {limit}" if limit else ""
    return episode(
        "container_oom", moments_of(signs), f"{name} was OOM-killed, says the kubelet{of}",
        details, count=1, more="seawall oom explain", workload=who or None,
    )  # fmt: skip


# --- Slurm --------------------------------------------------------------------------------


def slurm(log: EventLog) -> Iterator[RecentEvent]:
    """Steps out of memory, steps that no signal ends, nodes that do not answer."""
    yield from _slurm_ooms(log)
    yield from _slurm_overs(log)
    yield from _slurm_tasks(log)
    yield from _slurm_deaths(log)
    yield from _slurm_stuck(log)
    yield from _slurm_nodes(log)


def _cancelled(log: EventLog, step: str) -> Sign | None:
    return next(
        (s for s in log.signs if s.what == "step_cancelled" and s.words["step"] == step), None
    )


def _slurm_ooms(log: EventLog) -> Iterator[RecentEvent]:
    by_step: dict[str, list[Sign]] = {}
    for sign in log.signs:
        if sign.what == "step_oom":
            step = sign.words["step"] or sign.words.get("step2", "")
            by_step.setdefault(step, []).append(sign)
    for step, signs in by_step.items():
        counts = [int(s.words["count"]) for s in signs if s.words["count"]]
        task = next(
            (s for s in log.signs if s.what == "task_oom_slurm"
             and 0 < s.line.number - signs[-1].line.number < 20), None,
        )  # fmt: skip
        details = []
        if counts:
            details.append(
                f"its cgroup counts {max(counts)} OOM kill(s): the step's own limit, not the node's"
            )
        if any(s.what == "step_at_limit" and s.words["step"] == step for s in log.signs):
            details.append("it reached its limit before: Slurm counts that for page cache too")
        if task:
            details.append(f"task {task.words['task']} on {task.words['node'].lower()}")
        end = _cancelled(log, step)
        if end:
            details.append(
                f"the step was cancelled at {end.words['at'].replace('T', ' ')} because of it"
            )
        details.append("when the kill was, which process and what size is not in these lines")
        yield episode(
            "slurm_oom", moments_of(signs), f"Slurm step {step or '?'} ran out of its memory limit",
            details, count=1, workload=f"step {step}" if step else None,
        )  # fmt: skip


def _slurm_overs(log: EventLog) -> Iterator[RecentEvent]:
    """Slurm's own kill by a sample; the kernel and the cgroup's limit had no part in it."""
    for sign in log.signs:
        if sign.what != "step_over":
            continue
        words = sign.words
        name = f"{'step' if '.' in words['step'] else 'job'} {words['step']}"
        virtual = "virtual " if words["virtual"] else ""
        is_bytes = "Id=" in sign.line.text  # the older words came with KiB up to 17.11
        used, limit = (
            (size(int(words["used"])), size(int(words["limit"]))) if is_bytes
            else (words["used"], words["limit"])
        )  # fmt: skip
        yield episode(
            "slurm_oom", moments_of([sign]),
            f"Slurm ended {name} itself: {used} of {virtual}memory, its limit is {limit}",
            [_OWN_SAMPLE],
            count=1, workload=name,
        )  # fmt: skip


def _slurm_tasks(log: EventLog) -> Iterator[RecentEvent]:
    """Srun's own words, where no slurmstepd tells of the step."""
    if any(sign.what in ("step_oom", "step_over") for sign in log.signs):
        return
    for sign in log.signs:
        if sign.what == "task_oom_slurm":
            yield episode(
                "slurm_oom", moments_of([sign]),
                f"Slurm task {sign.words['task']} on {sign.words['node']} ran out of memory",
                ["srun says so; the limit, the process and its size are not in this line"],
            )  # fmt: skip


def _slurm_deaths(log: EventLog) -> Iterator[RecentEvent]:
    for sign in log.signs:
        if sign.what != "task_died":
            continue
        step = next(
            (s.words["step"] for s in log.signs if s.what == "step_ends"
             and 0 < s.line.number - sign.line.number < 5), "",
        )  # fmt: skip
        end = _cancelled(log, step) if step else None
        details = [
            f"task {sign.words['task']} on {sign.words['node'].lower()} ended: {sign.words['how']}"
        ]
        if end:
            details.append(
                f"the step was cancelled at {end.words['at'].replace('T', ' ')} because of it; "
                f"{end.words['node']} is where it was led from"
            )
        details.append("these lines do not say that memory was short")
        name = f"Slurm step {step}" if step else "a Slurm step"
        yield episode(
            "slurm_failure", moments_of([sign]),
            f"{name}: a task ended with {sign.words['how'].lower()}", details,
            workload=f"step {step}" if step else None,
        )  # fmt: skip


def _slurm_stuck(log: EventLog) -> Iterator[RecentEvent]:
    for sign in log.signs:
        if sign.what != "step_stuck":
            continue
        step, node = sign.words["step"], sign.words["node"]
        whats = ("step_cancelled", "step_stuck", "step_done")
        own = [s for s in log.signs if s.what in whats and s.words.get("step") == step]
        cancelled, done = (
            _cancelled(log, step),
            next((s for s in own if s.what == "step_done"), None),
        )
        details = []
        if cancelled:
            details.append(f"cancelled {cancelled.words['at'].replace('T', ' ')}")
        details.append(
            f"given up {sign.words['at'].replace('T', ' ')}: {sign.words['why'].strip().lower()}"
        )
        if done:
            details.append(f"it ended by itself at {done.line.moment.text.replace('T', ' ')}")
        details.append(
            "its processes did not end when they were killed: they were stuck in the kernel, as a "
            "rule on a file system or on memory that is taken back; which is not told"
        )
        details.append("Slurm drains such a node (Kill task failed)")
        yield episode(
            "node_not_ready", moments_of(own), f"Slurm step {step} on {node}: no signal ended it",
            details, workload=f"step {step}",
        )  # fmt: skip


def _slurm_nodes(log: EventLog) -> Iterator[RecentEvent]:
    down = [
        s for s in log.signs if s.what in ("node_down", "sinfo_reason", "job_lost", "sacct_fail")
    ]
    by_node: dict[str, list[Sign]] = {}
    for sign in down:
        by_node.setdefault(sign.words["node"], []).append(sign)
    for node, signs in by_node.items():
        jobs = list(dict.fromkeys(s.words["job"] for s in signs if s.words.get("job")))
        since = next((s.words["at"] for s in signs if s.what == "sinfo_reason"), "")
        details = []
        if since:
            details.append(f"not responding since {since.replace('T', ' ')}, says sinfo")
        elapsed = next((s.words["elapsed"] for s in signs if s.words.get("elapsed")), "")
        if jobs:
            ran = f" after {elapsed}" if elapsed else ""
            details.append(f"job {first(jobs, 5)} was lost by it (NODE_FAIL{ran})")
        if any(s.words.get("down") for s in signs):
            details.append("slurmctld set it DOWN: its slurmd was silent for SlurmdTimeout")
        details.append("why it was silent is not in these lines")
        event = episode(
            "node_not_ready", moments_of(signs),
            f"Slurm node {node} not responding" + (f", job {first(jobs, 2)} lost" if jobs else ""),
            details, workload=f"job {jobs[0]}" if len(jobs) == 1 else None,
        )  # fmt: skip
        yield event
