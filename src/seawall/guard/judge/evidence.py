# SPDX-License-Identifier: Apache-2.0
"""What of a group's memory may be believed, what was promised to it, what its end gives back.

Only certain evidence (exact, or netted traced) that is young counts; of whom it did not hold once
it is not believed again for a while.
"""

from collections.abc import Mapping

from seawall.cgroup_paths import place_of
from seawall.guard.judge.cooldown import Doubt, is_distrusted
from seawall.guard.judge.look_history import LookHistory
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, Group, Node

FRESH_SECONDS = 5.0
FRESH_SECONDS_WHEN_STILL = 10.0
FRESH_SECONDS_AFTER_FALL = 2.0
"""Age up to which claims are evidence: always, when uncounted memory has not moved since, and when
it has fallen since."""
LEAST_ADJ_OF_BURSTABLE, MOST_ADJ_OF_BURSTABLE = 3, 999
"""Between them the kubelet writes 1000 - 1000 * request / capacity, rounded down."""
TOLERANCE_BYTES = 32 << 20
TOLERANCE_SHARE = 8
HOLLOW_SHARE = 0.5


def is_fresh(node: Node, window: LookHistory) -> bool:
    """All of the watcher's claims is evidence."""
    return given_back_since(node, window) == 0


def given_back_since(node: Node, window: LookHistory) -> int | None:
    """Of what the watcher claims of anybody, so much may have been given back since, in bytes;
    None: its claims are too old to be evidence.

    What was claimed before uncounted memory fell may be just what was given back then.  But no
    more than that: who takes and gives back all the time makes nobody else's claim void.
    """
    age = node.claims_seconds
    if age is None or age > FRESH_SECONDS_WHEN_STILL:
        return None
    claimed = node.seconds - age
    if age > FRESH_SECONDS and claimed < window.moved_seconds:
        return None
    fallen = window.fallen_since(claimed)
    return None if fallen and age > FRESH_SECONDS_AFTER_FALL else fallen


def certain_of(
    group: Group, doubts: Mapping[tuple[str, int], Doubt], given_back: int | None
) -> int:  # fmt: skip
    """Uncounted memory that the group holds beyond doubt; bytes.  ``given_back``: by anybody,
    since it was claimed.
    """
    held = group.outside.certain_bytes
    if held <= 0 or given_back is None or is_distrusted(group, doubts):
        return 0
    return max(0, held - given_back)


def promised_to(group: Group, capacity_bytes: int, limit: int | None) -> int:
    """What it may use without owing it to anybody: its request.

    Where none is known, its limit (the only thing that somebody wrote down, unless its own user
    did), else nothing.  ``limit`` is its own, also where we have lowered it.
    """
    asked = asked_by(group, capacity_bytes)
    if asked is None and limit is not None and _is_wish(group):
        return 0
    if asked is None or (group.class_rank == GUARANTEED and limit is not None):
        return limit or asked or 0
    return asked if limit is None else min(asked, limit)


def asked_by(group: Group, capacity_bytes: int) -> int | None:
    """Its request, or what is protected (``max``: the whole node); None: nobody wrote one down."""
    if group.class_rank == BEST_EFFORT:
        return 0
    if group.request_bytes is None and group.adj is not None and is_kubelets(group):
        return request_of(group.adj, capacity_bytes)
    return None if group.request_bytes is None else min(group.request_bytes, capacity_bytes)


def _is_wish(group: Group) -> bool:
    """Its user may write its limits himself; Slurm's jobs have theirs from Slurm."""
    place = place_of(group.path)
    return place.is_delegated and place.job is None


def is_kubelets(group: Group) -> bool:
    """Burstable, and its oom_score_adj tells its request.  That of Docker's or Podman's containers
    is a mere wish, which whoever is in there may raise.
    """
    return group.class_rank == BURSTABLE and place_of(group.path).tells_request


def is_hollow(group: Group, total_bytes: int, promise: int) -> bool:
    """Nobody can rely on such a promise: more than half of the node, or a limit alone."""
    return promise > total_bytes * HOLLOW_SHARE or is_limit_alone(group, total_bytes)


def is_limit_alone(group: Group, total_bytes: int) -> bool:
    """Nobody asked for anything (``docker run --memory``, MemoryMax=): limits together may be a
    multiple of the node.
    """
    return group.class_rank != GUARANTEED and asked_by(group, total_bytes) is None


def request_of(adj: int, capacity_bytes: int) -> int | None:
    """The most that a Burstable container asked for, from the kubelet's oom_score_adj; a higher
    one than it writes was raised in there.
    """
    if adj < LEAST_ADJ_OF_BURSTABLE:
        return None
    return capacity_bytes * (1001 - min(adj, MOST_ADJ_OF_BURSTABLE)) // 1000


def tolerance_of(promise: int) -> int:
    """So far over its promise a group is not called over it."""
    return max(TOLERANCE_BYTES, promise // TOLERANCE_SHARE) if promise else 0
