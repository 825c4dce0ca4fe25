# SPDX-License-Identifier: Apache-2.0
"""``seawall guard explain`` as text."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.cgroup_paths import user_of
from seawall.guard.explain import PolicyExplanation
from seawall.guard.explain_paths import NamedPath
from seawall.guard.judge.suspects import hold_seconds
from seawall.guard.settings import Settings
from seawall.views.terminal import Console
from seawall.words import count, percent, size

ROWS_MOST: Final = 20
_LABEL: Final = 10
_SPARED: Final = (
    "always: what is outside the scope, the guard and what it is in, protect, static pods, "
    "kube-system, CNI, CSI, device plugins and drivers, MPS, storage daemons (by folders of the "
    "host), slurmd; unless it is proved to be the cause: who is that by a name or priority alone"
)
_SPARED_UNTOLD: Final = (
    "always: what is outside the scope, the guard and what it is in, oom_score_adj under -997, "
    "what protect names by its path; unless it is proved to be the cause: a pod with -997"
)
"""Without a watcher."""
_OVER_LIMIT: Final = {
    "report": "reported, nobody is killed (over_limit)",
    "kill": "killed",
    "clamp": "its memory.max is lowered by its uncounted memory, raised again when that shrinks",
}
_PATH_LABELS: Final = {
    "run_after_kill": "after", "run_on_decision": "hook", "textfile": "textfile",
    "kubelet_root": "kubelet", "slurm_commands": "slurm", "slurm_conf": "slurm",
}  # fmt: skip
_FOR_WHAT: Final = {
    "run_after_kill": "nothing is run after a kill",
    "run_on_decision": "nothing is run at a decision",
    "textfile": "no metrics are written",
    "kubelet_root": "no termination message is written",
    "slurm_commands": "slurmctld is told nothing",
    "slurm_conf": "slurmctld is told nothing",
}


def lines(found: PolicyExplanation, paper: Console, *, whole: bool = False) -> Iterator[str]:
    """Mode first, then where, when, how, who never, what not."""
    settings, here = found.settings, found.here
    yield from _row(paper, "mode", _mode_words(found))
    if here.seen and not any(inside for _, inside in found.scope):
        words = "acts on NOTHING: no workload is in its scope; seawall guard check --suggest-scope"
        yield from _row(paper, "!!", words)
    yield from _row(paper, "config", _config_words(found))
    for number, (subtree, inside) in enumerate(found.scope):
        yield from _row(paper, "" if number else "acts in", f"{subtree}: {_inside_words(inside)}")
    yield from _row(paper, "floor", _floor_words(found))
    if found.target_bytes is not None:
        much = percent(settings.target_fraction)
        yield from _row(paper, "target", f"{size(found.target_bytes)}: {much} more than that")
    yield from _row(paper, "steps", _steps_words(found))
    yield from _row(paper, "holds", _holds_words(settings))
    yield from _row(paper, "kills by", found.kills_by)
    yield from _row(paper, "over", _over_words(found))
    yield from _row(paper, "stuck", _stuck_words(found))
    if any("slurm" in subtree for subtree in settings.scope):
        yield from _row(paper, "jobs", _job_words(settings))
    if settings.user_slices:
        yield from _row(paper, "users", _user_words(found))
    yield from _row(paper, "spares", _SPARED if settings.watch else _SPARED_UNTOLD)
    yield from _row(paper, "blackbox", _blackbox_words(settings))
    for named in found.paths:
        yield from _row(paper, _PATH_LABELS[named.key], _path_words(named, settings))
    if settings.datagram_to:
        yield from _row(paper, "datagram", f"sent to {settings.datagram_to} at every trigger")
    yield ""
    plain = _by_class(found)
    title = f"May be acted on: {count(len(plain)) if plain else 'nothing'}"
    yield from _workloads(paper, title, plain, whole=whole)
    claims = [f"{seen.name}: {seen.protected_by}" for seen in found.only_if_proved]
    if claims:
        title = f"Only if it is proved to be the cause: {count(len(claims))}"
        yield from _workloads(paper, title, claims, whole=whole)
    never = [f"{seen.name}: {seen.protected_by}" for seen in found.protected]
    title = f"Never acted on: {count(found.outside)} outside the scope, {count(len(never))} in it"
    yield from _workloads(paper, title, never, whole=whole)
    yield from _listed(paper, "Not to be had here", found.cannot)
    rows = [f"{word} ({key})" for key, word in found.for_nobody]
    if rows:
        title = f"Nobody is meant at present by: {count(len(rows))}"
        yield from _workloads(paper, title, rows, whole=whole)
    yield from _listed(paper, "Other guards", here.others)


def _row(paper: Console, label: str, words: str) -> Iterator[str]:
    yield from paper.wrap(words, " " * _LABEL, f"{label:<{_LABEL - 1}}")


def _mode_words(found: PolicyExplanation) -> str:
    if found.settings.mode == "enforce":
        return "enforce: it freezes, terminates and kills"
    return (
        "observe: it decides and writes it down, and does nothing. To let it act: "
        f'mode = "enforce" in {found.config_path}, then: systemctl reload seawall-guard'
    )


def _user_words(found: PolicyExplanation) -> str:
    words = "each is one workload, and the session or unit that took the memory goes (user_slices)"
    inside = [*found.may_act_on, *found.protected]
    is_any = any(user_of(seen.path) is not None for seen in inside)
    return words if is_any else f"{words}; none is in the scope now, of which /user.slice has them"


def _config_words(found: PolicyExplanation) -> str:
    return f"{found.config_path}{': not there, so the defaults' if found.is_default else ''}"


def _inside_words(inside: int) -> str:
    if not inside:
        return "nothing is there"
    return f"{count(inside)} workload{'s' if inside > 1 else ''} in it now"


def _floor_words(found: PolicyExplanation) -> str:
    settings, total = found.settings, found.here.total_bytes
    if found.floor_bytes is None or total is None:
        return f"not known: {found.floor_by}"
    share = f"{percent(settings.act_fraction)} of {size(total)}"
    if found.floor_by == "act_fraction":
        return f"{size(found.floor_bytes)} of headroom, {share} (act_fraction)"
    return f"{size(found.floor_bytes)} of headroom (act_at_most; {share} would be more)"


def _steps_words(found: PolicyExplanation) -> str:
    settings = found.settings
    steps = []
    if settings.freeze_seconds:
        steps.append(f"freeze for at most {settings.freeze_seconds:g} s")
    if settings.terminate_seconds:
        steps.append(f"SIGTERM and {settings.terminate_seconds:g} s if there is time")
    steps.append("SIGKILL to the whole workload")
    return (
        f"{', '.join(steps)}; {settings.verify_seconds:g} s for the memory to come back; at "
        f"most {settings.kills_per_minute} a minute, and of tenants that had none as many again"
    )


def _holds_words(settings: Settings) -> str:
    seconds = hold_seconds(settings)
    if not seconds:
        return "nobody on suspicion: without proof all go on"
    return (
        f"who alone may hold most of what nobody owns stands still for at most {seconds:g} s "
        "while the proof is on its way; without it, it goes on"
    )


def _over_words(found: PolicyExplanation) -> str:
    settings = found.settings
    words = _OVER_LIMIT[settings.over_limit]
    if settings.over_limit != "report":
        named = " or ".join(settings.over_limit_opt_in)
        after = f"{settings.over_limit_seconds:g} s"
        words += f" after {after}, if {named} names it; others are reported"
    return f"a workload over its own limit with its uncounted memory: {words}"


def _stuck_words(found: PolicyExplanation) -> str:
    if not found.settings.stuck:
        return "a container that hangs at its own limit is left alone (stuck = false)"
    return (
        "a container that hangs at its own limit and that the kernel cannot end is killed "
        f"whole after {found.settings.stuck_seconds:g} s"
    )


def _blackbox_words(settings: Settings) -> str:
    if not settings.blackbox:
        return 'none: blackbox = "", so nothing of a node that dies is left'
    return (
        f"{settings.blackbox}: {size(settings.blackbox_size_bytes)} of that disk, taken at once "
        "unless it would be over 85 % full; a process of its own writes a frame every 10 s, and "
        "all there is from 30 s before an incident to 60 s after it"
    )


def _job_words(settings: Settings) -> str:
    """Of Slurm."""
    words = ["ended with all their steps, without slurmstepd"]
    if settings.job_output:
        words.append("a line in their own error output (job_output)")
    if settings.job_comment:
        words.append("one in AdminComment (job_comment)")
    if settings.job_end_whole:
        words.append("those of several nodes on all of them, by scancel (job_end_whole)")
    return "; ".join(words)


def _path_words(named: NamedPath, settings: Settings) -> str:
    if named.problem:
        missing = f"{named.path} {named.problem}"
        return f"{missing}: {_FOR_WHAT[named.key]} ({named.key}), as far as this shell sees"
    if named.key == "run_after_kill":
        return f"{settings.run_after_kill}: run after a kill"
    if named.key == "run_on_decision":
        return f"{settings.run_on_decision}: run at every decision, a report too"
    if named.key == "textfile":
        return f"{settings.textfile}: metrics for the node exporter"
    if named.key.startswith("slurm_"):
        return f"{named.path}: how slurmctld is told of a job that was killed"
    return f"{named.path}: termination messages"


def _by_class(found: PolicyExplanation) -> list[str]:
    """In Kubernetes' order, as the ranking has it when nothing else speaks; without those who are
    in no order.
    """
    apart = {seen.path for seen in found.only_if_proved}
    plain = [seen for seen in found.may_act_on if seen.path not in apart]
    rows = sorted(plain, key=lambda seen: (seen.class_rank, seen.name))
    return [f"{seen.name}: {seen.class_name}" for seen in rows]


def _workloads(paper: Console, title: str, rows: Sequence[str], *, whole: bool) -> Iterator[str]:
    shown = rows if whole else rows[:ROWS_MOST]
    yield paper.paint(title, "bold")
    for words in shown:
        yield from paper.wrap(words, "    ", "  ")
    if len(rows) > len(shown):
        yield f"  and {count(len(rows) - len(shown))} more with --whole"


def _listed(paper: Console, title: str, rows: Sequence[str]) -> Iterator[str]:
    if rows:
        yield paper.paint(title, "bold")
    for words in rows:
        yield from paper.wrap(words, "    ", "  ")
