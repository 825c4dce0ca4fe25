# SPDX-License-Identifier: Apache-2.0
"""In words: which pod and container a limit and a victim belong to."""

from collections.abc import Iterator

from seawall.accounts.oom.limit_role import role_of
from seawall.accounts.oom.report_facts import Owner, ReportFacts


def owner_sentences(facts: ReportFacts) -> Iterator[str]:
    """The limit's owner first, then the chosen process's where it is another."""
    limit, task = facts.limit_owner, facts.task_owner
    cut = facts.report.cut_text
    if "oom_memcg" in cut:
        yield f"Whose limit it was is cut in the log: its path begins with '{cut['oom_memcg']}'."
    elif facts.report.kind == "memcg" and limit is None:
        yield "Whose limit it was is not in the log."
    if "task_memcg" in cut:
        yield f"The chosen process's cgroup is cut: its path begins with '{cut['task_memcg']}'."
    if limit is not None:
        yield from _limit(facts, limit)
    if task is not None and (limit is None or task.path != limit.path):
        is_told = limit is not None and limit.place.pod_uid == task.place.pod_uid
        yield f"The chosen process ran in {described(task, is_pod_told=is_told)}."
    if facts.report.oom_memcg is None and limit is not None:
        yield "That is the first in its statistics; the limit itself may be of one above it."


def _limit(facts: ReportFacts, limit: Owner) -> Iterator[str]:
    role = role_of(limit)
    words = described(limit)
    if role.kind == "inside":
        words = f"{role.subject} ({limit.path})"
    elif role.kind not in ("container", "pod", "unit", "cgroup"):
        words = role.subject
    is_named = facts.report.oom_memcg is not None
    yield f"The limit is that of {words}." if is_named else f"{words}."
    if role.meaning and is_named:
        yield role.meaning


def described(owner: Owner, *, is_pod_told: bool = False) -> str:
    """``pod uid UID (Burstable), container id ID (docker)``; else the unit or the path."""
    place = owner.place
    parts = []
    if place.pod_uid and not (is_pod_told and place.container_id):
        named = f"{owner.namespace}/{owner.pod}, " if owner.pod else ""
        qos = f" ({place.qos})" if place.qos else ""
        parts.append(f"pod {named}uid {place.pod_uid}{qos}")
    elif owner.pod and not is_pod_told:
        parts.append(f"pod {owner.namespace}/{owner.pod}")
    if place.container_id:
        runtime = f" ({place.runtime})" if place.runtime else ""
        name = f"{owner.container}, " if owner.container else ""
        parts.append(f"container {name}id {place.container_id}{runtime}")
    if place.machine:
        parts.append(f"{place.runtime} {place.machine}")
    if not parts:
        parts.append(f"the unit {place.unit}" if place.unit else "the cgroup")
        return f"{parts[0]} {owner.path}" if not place.unit else f"{parts[0]} ({owner.path})"
    return ", ".join(parts)
