# SPDX-License-Identifier: Apache-2.0
"""Who took the node's memory, by the guard's own words: whom it proved, and whom it could bound.

Nobody stands here by order or by size alone.  *Proved* is a row of a decision's ranking that says
``is_source``; *possible* is who may hold half of what uncounted memory grew by, where that
growth is a good part of the node.  Only what a kubelet started has a pod's uid, and only slurmd's
jobs a job's number: both are names of cgroups that these made, never of those that a container or a
job made in its own.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeGuard

from seawall.agent.guard_page import GuardPage, PageHolder
from seawall.cgroup_paths import place_of
from seawall.guard.tell.plain import plain
from seawall.slurm_paths import part_of

CULPRITS_MOST: Final = 5
LEAST_BYTES: Final = 64 << 20
GROWN_SHARE: Final = 0.1
"""Of all memory: uncounted memory that grew by less is not what a node dies of."""
_LINE_MOST_BYTES: Final = 256 << 10
_ROWS_MOST: Final = 2000
_BYTES_MOST: Final = 1 << 60


class Culprit(NamedTuple):
    """A container or a job of Slurm's that took memory; bytes."""

    pod_uid: str
    """Of a job ``workload_id``'s."""
    namespace: str
    pod: str
    container: str
    certain_bytes: int
    most_bytes: int
    is_proved: bool

    def document(self) -> dict[str, Any]:
        """As it stands in a NodeReport."""
        return {
            "podUID": self.pod_uid, "namespace": self.namespace, "pod": self.pod,
            "container": self.container, "certainBytes": self.certain_bytes,
            "mostBytes": self.most_bytes, "isProved": self.is_proved,
        }  # fmt: skip

    @property
    def name(self) -> str:
        """As people say it."""
        parts = (self.namespace, self.pod, self.container)
        return "/".join(part for part in parts if part) or f"pod {self.pod_uid}"


def culprits_of(page: GuardPage, proved: Iterable[Culprit]) -> list[Culprit]:
    """At most five: the proved first, then those who may hold half of the growth."""
    found = {one.pod_uid + "/" + one.container: one for one in proved}
    for holder in page.holders if has_grown(page) else ():
        one = culprit_of(holder, is_proved=False)
        if one and may_be_cause(holder.most_bytes, page.grown_bytes or 0):
            found.setdefault(one.pod_uid + "/" + one.container, one)
    ordered = sorted(found.values(), key=lambda one: (not one.is_proved, -one.most_bytes))
    return ordered[:CULPRITS_MOST]


def has_grown(page: GuardPage) -> bool:
    """Uncounted memory took a good part of the node."""
    grown = page.grown_bytes or 0
    return page.is_seen and grown >= max(LEAST_BYTES, GROWN_SHARE * page.total_bytes)


def may_be_cause(most_bytes: int, grown_bytes: int) -> bool:
    """It may hold half of the growth and more."""
    return most_bytes >= LEAST_BYTES and 2 * most_bytes >= grown_bytes


def culprit_of(holder: PageHolder, *, is_proved: bool) -> Culprit | None:
    """None: it is neither a container of a pod nor a job, by the kubelet's or slurmd's names."""
    place = place_of(holder.cgroup)
    if place.job is not None:
        return Culprit(
            workload_id(holder.cgroup), "", plain(holder.name, 253), "", holder.certain_bytes,
            holder.most_bytes, is_proved,
        )  # fmt: skip
    if place.kind != "container" or not place.pod_uid or place.is_delegated:
        return None
    parts = holder.name.split("/")
    names = parts if len(parts) == 3 else ["", "", ""]
    namespace, pod, container = (plain(part, 253) for part in names)
    return Culprit(
        plain(place.pod_uid, 64), namespace, pod, container or (place.container_id or "")[:12],
        holder.certain_bytes, holder.most_bytes, is_proved,
    )  # fmt: skip


def workload_id(cgroup: str) -> str:
    """Of a pod its uid, of a job ``slurm:NUMBER``; empty: it is in neither."""
    place = place_of(cgroup)
    if place.job is not None and (part := part_of(cgroup, place)) is not None:
        return f"slurm:{plain(part.job, 32)}"
    return plain(place.pod_uid, 64) if place.pod_uid and not place.is_delegated else ""


class Accusation(NamedTuple):
    """A decision of the guard about the whole node: whom it proved."""

    decision: str
    boot_id: str
    seconds: float
    """Monotonic."""
    sentence: str
    proved: tuple[Culprit, ...]
    suspects: tuple[str, ...]
    """Uids of the pods that were held still, for they could be it."""


def accusation_of(line: bytes) -> Accusation | None:
    """A verdict on the node's shortage; None: another line, or none of ours."""
    if len(line) > _LINE_MOST_BYTES or b'"kind":"verdict"' not in line[:400]:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("trigger") != "node_short":
        return None
    decision, boot, seconds = (found.get(key) for key in ("decision", "boot_id", "seconds"))
    if not isinstance(decision, str) or not isinstance(boot, str) or not _is_number(seconds):
        return None
    sentence = found.get("sentence")
    rows = found.get("ranking")
    proved = [
        one for row in (rows[:_ROWS_MOST] if isinstance(rows, list) else ())
        if isinstance(row, dict) and row.get("is_source") is True and (one := _proved(row))
    ]  # fmt: skip
    words = plain(sentence, 1000) if isinstance(sentence, str) else ""
    return Accusation(
        plain(decision, 64), plain(boot, 64), float(seconds), words, tuple(proved[:CULPRITS_MOST]),
        tuple(_held(found.get("orders"))),
    )  # fmt: skip


def _proved(row: dict[str, Any]) -> Culprit | None:
    """What only its end gives back is certain; at most it is that and what it may hold besides."""
    name, cgroup = row.get("name"), row.get("cgroup")
    if not isinstance(name, str) or not isinstance(cgroup, str) or len(cgroup) > 4096:
        return None
    certain, back, most, charge = (
        _whole(row.get(key)) for key in (
            "outside_certain_bytes", "expected_return_bytes", "outside_most_bytes", "charge_bytes",
        )
    )  # fmt: skip
    least = max(certain, back)
    holder = PageHolder(plain(name, 256), cgroup, charge, least, max(least, charge + most))
    return culprit_of(holder, is_proved=True)


def _held(orders: Any) -> Iterable[str]:
    for order in orders[:64] if isinstance(orders, list) else ():
        if isinstance(order, dict) and order.get("why") == "suspected":
            cgroup = order.get("cgroup")
            if isinstance(cgroup, str) and len(cgroup) <= 4096 and (one := workload_id(cgroup)):
                yield one


def _whole(value: Any) -> int:
    is_whole = type(value) is int and 0 <= value <= _BYTES_MOST
    return value if is_whole else 0


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) < 1e12
