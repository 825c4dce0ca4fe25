# SPDX-License-Identifier: Apache-2.0
"""What the settings mean on one very machine, in bytes and names.

Pure but for the few paths that the settings name (``explain_paths``): all other facts of the
machine are handed in (``cli/guard_here.py`` reads them).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from seawall.actions.orders import Mounts
from seawall.cgroup_paths import place_of
from seawall.guard.explain_paths import NamedPath, cannot_work, named_paths
from seawall.guard.judge.protection import Protection, matches
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM, Group

CLASSES: Final = {
    BEST_EFFORT: "BestEffort", BURSTABLE: "Burstable", GUARANTEED: "Guaranteed", SYSTEM: "system",
}  # fmt: skip


class ExplainedWorkload(NamedTuple):
    """One workload of this machine."""

    path: str
    """Of its cgroup."""
    name: str
    protected_by: str
    """Its role, in words, or empty; in an answer, why it is never acted on."""
    own_why: str
    """That the guard is in it, or in one below it; where none runs, this shell.  Or empty."""
    class_rank: int = SYSTEM
    adj: int | None = None
    """The lowest oom_score_adj of its processes."""

    @property
    def class_name(self) -> str:
        """Kubernetes' class, or ``system``."""
        return CLASSES[self.class_rank]


class ThisMachine(NamedTuple):
    """The machine that the settings meet.  None: could not be seen."""

    total_bytes: int | None
    """MemTotal less the hugetlb pool."""
    mounts: Mounts | None
    has_cgroup_kill: bool | None
    has_pressure: bool
    has_tracefs: bool
    kernel: tuple[int, int] | None
    lacks: tuple[str, ...]
    """Capabilities that the guard uses and this process does not have, with what for; empty
    too when an ordinary user asks."""
    is_root: bool
    seen: tuple[ExplainedWorkload, ...]
    others: tuple[str, ...]
    unseen: tuple[tuple[str, str, str], ...]
    """What, why, and what would provide it."""


class PolicyExplanation(NamedTuple):
    """What the settings mean on this machine."""

    settings: Settings
    config_path: str
    is_default: bool
    """There is no file: everything is as it comes."""
    floor_bytes: int | None
    target_bytes: int | None
    """Headroom at which it is content again."""
    floor_by: str
    """Which key decided."""
    scope: tuple[tuple[str, int], ...]
    """Subtree, and how many workloads are in it."""
    may_act_on: tuple[ExplainedWorkload, ...]
    only_if_proved: tuple[ExplainedWorkload, ...]
    """Of ``may_act_on``, those whom a name or a priority takes out of the order; ``protected_by``
    says which.
    """
    protected: tuple[ExplainedWorkload, ...]
    """In the scope, each with its reason."""
    outside: int
    """Workloads that are outside the scope."""
    kills_by: str
    cannot: tuple[str, ...]
    paths: tuple[NamedPath, ...]
    """Of the keys that name one and are set."""
    for_nobody: tuple[tuple[str, str], ...]
    """Key, and a word of it by which nobody is meant now; who is may come later."""
    here: ThisMachine


def explanation_of(
    settings: Settings, here: ThisMachine, config_path: str, *, is_default: bool
) -> PolicyExplanation:
    """What ``settings`` mean on the machine ``here``."""
    floor, floor_by = _floor(settings, here.total_bytes)
    target = None
    if floor is not None and here.total_bytes is not None:
        share = int(settings.target_fraction * here.total_bytes)
        target = floor + min(share, settings.act_at_most_bytes)
    protection = Protection(settings)
    inside = [seen for seen in here.seen if protection.is_in_scope(seen.path)]
    judged = [
        seen._replace(protected_by=_reason(seen, protection, is_told=settings.watch))
        for seen in inside
    ]
    claims = [
        seen._replace(protected_by=protection.claim(_judged(seen, is_told=settings.watch)))
        for seen, found in zip(inside, judged, strict=True)
        if not found.protected_by
    ]
    return PolicyExplanation(
        settings=settings,
        config_path=config_path,
        is_default=is_default,
        floor_bytes=floor,
        target_bytes=target,
        floor_by=floor_by,
        scope=tuple(_scope_row(subtree, here, settings) for subtree in settings.scope),
        may_act_on=tuple(seen for seen in judged if not seen.protected_by),
        only_if_proved=tuple(seen for seen in claims if seen.protected_by),
        protected=tuple(seen for seen in judged if seen.protected_by),
        outside=len(here.seen) - len(inside),
        kills_by=kills_by(here),
        cannot=(*cannot(settings, here), *cannot_work(settings, here.mounts)),
        paths=named_paths(settings),
        for_nobody=tuple(_for_nobody(settings, here)),
        here=here,
    )


def _floor(settings: Settings, total: int | None) -> tuple[int | None, str]:
    if total is None:
        return None, "MemTotal could not be read"
    share = int(settings.act_fraction * total)
    if share <= settings.act_at_most_bytes:
        return share, "act_fraction"
    return settings.act_at_most_bytes, "act_at_most"


def _reason(seen: ExplainedWorkload, protection: Protection, *, is_told: bool) -> str:
    """The judge's own words: why it is never acted on; empty: it may be.  ``is_told``: a watcher
    tells the guard names and roles.
    """
    return seen.own_why or protection.reason(_judged(seen, is_told=is_told))


def _judged(seen: ExplainedWorkload, *, is_told: bool) -> Group:
    """As the guard sees it."""
    group, place = _group(seen, is_told=is_told), place_of(seen.path)
    group.pod = "" if place.is_delegated else place.pod_uid or ""
    group.adj, group.class_rank = seen.adj, seen.class_rank
    group.protected_by = seen.protected_by if is_told else ""
    return group


def _group(seen: ExplainedWorkload, *, is_told: bool) -> Group:
    return Group(seen.path, 0, seen.name if is_told else "")


def _for_nobody(settings: Settings, here: ThisMachine) -> Iterator[tuple[str, str]]:
    """Nothing of workloads or names that this process does not see."""
    if any(what == "workloads" for what, _, _ in here.unseen):
        return
    groups = [_group(seen, is_told=settings.watch) for seen in here.seen]
    for key in ("protect", "unprotect", "over_limit_opt_in"):
        for word in getattr(settings, key):
            if (here.is_root or word[0] == "/") and not any(matches((word,), g) for g in groups):
                yield key, word


def _scope_row(subtree: str, here: ThisMachine, settings: Settings) -> tuple[str, int]:
    """How many workloads are in it."""
    only = Protection(settings._replace(scope=(subtree,)))
    return subtree, sum(only.is_in_scope(seen.path) for seen in here.seen)


def kills_by(here: ThisMachine) -> str:
    """With what a whole workload is killed here."""
    mounts = here.mounts
    if mounts is None:
        return "nothing: no cgroup tree that counts memory is mounted whole"
    if mounts.version == 2:
        if here.has_cgroup_kill is False:
            return "cgroup.freeze, a pidfd of each process, SIGKILL to all (no cgroup.kill here)"
        return "cgroup.kill: the whole cgroup at once"
    words = "rounds of SIGKILL to a pidfd of each process, until nobody is left (no freezer here)"
    if mounts.freezer is not None:
        words = "the freezer for at most 20 ms, SIGKILL to a pidfd of each process, thaw"
    return words + ("; cgroup.kill for units (hybrid)" if here.has_cgroup_kill else "")


def cannot(settings: Settings, here: ThisMachine) -> list[str]:
    """What this machine does not offer, with what it means."""
    words = []
    mounts = here.mounts
    if mounts is None:
        words.append("act at all: no whole cgroup tree that counts memory is mounted")
    elif mounts.version == 1:
        words.append("clamp: cgroup v1 refuses a limit below what is charged (EBUSY)")
        if mounts.freezer is None:
            words.append("freeze: no v1 freezer is mounted")
    elif here.has_cgroup_kill is False:
        words.append("kill by cgroup.kill: needs Linux 5.14")
    if here.kernel is not None and here.kernel < (5, 15):
        words.append("hasten the return of memory: process_mrelease needs Linux 5.15")
    if not here.has_pressure:
        words.append(
            "see who stands still: no /proc/pressure (psi=1 on the kernel's command line); the "
            "major faults of kubelet, runtime and sshd stand in"
        )
    if settings.watch and not here.has_tracefs:
        words.append(
            "trace who takes driver memory: no tracefs; only what sources name exactly is "
            "evidence then, and without evidence nobody is killed for it"
        )
    if not settings.watch:
        words.append("know who holds driver memory: watch = false")
        words.append(
            "know names and roles: watch = false, so only paths, the scope and oom_score_adj "
            "protect"
        )
    return words + list(here.lacks)
