# SPDX-License-Identifier: Apache-2.0
"""``seawall numbers --json``."""

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.cgroup_memory.memory_numbers import held_bytes
from seawall.accounts.cgroup_memory.memory_parts import MemoryParts
from seawall.accounts.numbers.tool_numbers import Input, ToolNumber, tool_numbers
from seawall.accounts.numbers.tool_numbers_processes import Resident
from seawall.findings.blindness import NotSeen
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.views.documents.document_fields import (
    Document,
    joined,
    known,
    one_of,
    shown,
    spread,
    unread,
)
from seawall.views.numbers_page import NodePage, NumbersPage, WorkloadPage
from seawall.views.numbers_words import WORKING_SET, Alert, alert, node_alert, node_why, why

Scope: TypeAlias = Literal["workload", "node"]


class ContainerNumbers(NamedTuple):
    """One container of the pod, in short."""

    group: MemoryGroup

    @property
    def is_sandbox(self) -> bool:
        """The pod's pause container."""
        return self.group.workload is not None and self.group.workload.is_sandbox

    @property
    def working_set_bytes(self) -> int | None:
        """What the kubelet ranks by."""
        shown = {number.name: number.bytes for number in tool_numbers(self.group)}
        return shown.get(WORKING_SET)

    @property
    def limit_bytes(self) -> int | Unlimited | None:
        """Its own; null: none."""
        if self.group.limit is None and self.group.memcg.limit is not None:
            return UNLIMITED
        return self.group.limit


class Fallback(NamedTuple):
    """A metric that everybody has."""

    metric: str
    """In PromQL."""
    bytes: int
    """Its value now."""


def fallback(best: Alert) -> Fallback | None:
    """A metric that everybody has, where not everybody has the first."""
    return Fallback(best.fallback, best.fallback_bytes) if best.fallback else None


def needs(best: Alert) -> str | None:
    """Who has it, where not everybody does."""
    return best.needs if best.fallback else None


def limit(page: WorkloadPage) -> int | Unlimited | None:
    """The tightest of its own and those above; null: none."""
    if page.limits_unread:
        return None
    return UNLIMITED if page.limit is None else page.limit


def limit_of(page: WorkloadPage) -> str | None:
    """Whose limit that is."""
    return None if page.limits_unread else page.limit_of or None


def held(page: WorkloadPage) -> int | None:
    """What reclaim cannot take without swap."""
    return held_bytes(page.group.memcg)


def containers(page: WorkloadPage) -> list[ContainerNumbers]:
    """Of a pod, by name."""
    return [ContainerNumbers(group) for group in page.containers]


def why_lines(page: WorkloadPage) -> list[str]:
    """Why the numbers differ; a sentence each."""
    return list(why(page))


def node_why_lines(page: NodePage) -> list[str]:
    """Why the numbers differ; a sentence each."""
    return list(node_why(page))


def root(_page: NodePage) -> str:
    """Its address; ``/`` is the node."""
    return "/"


def resident_anon(resident: Resident) -> int | None:
    """Of it, anonymous memory."""
    return resident.by_kind.get("anon")


def resident_file(resident: Resident) -> int | None:
    """Of it, mapped files."""
    return resident.by_kind.get("file")


def resident_shmem(resident: Resident) -> int | None:
    """Of it, tmpfs and shared memory."""
    return resident.by_kind.get("shmem")


def _workload_scope(_page: WorkloadPage) -> Scope:
    return "workload"


def _node_scope(_page: NodePage) -> Scope:
    return "node"


def _node_kind(_page: NodePage) -> str:
    return "root"


class WorkloadNumbers(NamedTuple):
    """Of one workload."""

    about: WorkloadPage
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
    """What was noted with the bundle."""


class NodeNumbers(NamedTuple):
    """Of the node."""

    about: NodePage
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]


def numbers_document(head: dict[str, Any], page: NumbersPage) -> dict[str, Any]:
    """Rows that are not there because a file could not be read are in ``unread`` too."""
    about = page.about
    if isinstance(about, NodePage):
        return NUMBERS.of(head, NodeNumbers(about, page.unseen, page.bundle_notes))
    document = NUMBERS.of(head, WorkloadNumbers(about, page.unseen, page.bundle_notes))
    return joined(document, {"unread": about.missing})


_PAGE: Final = (
    *spread("about"),
    *shown("values=about.numbers could_not_see=unseen bundle_notes"),
)

NUMBERS: Final = Document(
    name="numbers",
    verb="seawall numbers --json",
    about="One workload's memory, or the node's, as each tool shows it: the formula, its inputs at "
    "this moment, and why the numbers differ. Additive within a major number; what could not be "
    "read is absent and named in its object's unread.",
    pages=(WorkloadNumbers, NodeNumbers),
    shapes={
        WorkloadNumbers: _PAGE,
        NodeNumbers: _PAGE,
        WorkloadPage: (
            *shown({"scope": _workload_scope}, "workload=name"),
            *shown("kind", turn=one_of("container pod unit slice cgroup root")),
            *unread("cgroup=group.path cgroup_version=group.memcg.version"),
            *known("slurm"),
            *unread({"limit_bytes": limit}, limit_of, {"held_bytes": held}),
            *unread("parts counts processes=resident inside has_lxcfs", containers),
            *shown({"why": why_lines}),
            *unread(alert),
        ),
        NodePage: (
            *shown({"scope": _node_scope, "workload": root, "kind": _node_kind}),
            *unread("limit_bytes=meminfo.mem_total kubelet_gap_bytes=gap"),
            *shown({"why": node_why_lines}),
            *unread({"alert": node_alert}),
        ),
        MemoryParts: (
            *unread("anonymous_bytes=anon inactive_file_bytes=inactive_file"),
            *unread("active_file_bytes=active_file shmem_bytes=shmem"),
            *shown("shmem_is_estimate"),
            *unread("kernel_bytes=kernel rest_bytes=rest swap_bytes=swap"),
        ),
        Alert: (
            *shown("metric bytes why"),
            *known(needs, fallback),
        ),
        ToolNumber: (
            *shown("tool name bytes formula inputs parts=letters"),
            *known("note:filled"),
        ),
        Input: shown("name bytes sign source"),
        Resident: (
            *shown("processes missing resident_bytes=bytes source"),
            *unread("shares_bytes"),
            *shown("shares_processes"),
            *known(
                {
                    "resident_anon_bytes": resident_anon,
                    "resident_file_bytes": resident_file,
                    "resident_shmem_bytes": resident_shmem,
                }
            ),
            *unread("times_counted:3"),
        ),
        ContainerNumbers: (
            *shown("workload=group.name is_sandbox"),
            *unread("usage_bytes=group.memcg.usage working_set_bytes"),
            *unread("anonymous_bytes=group.memcg.anon limit_bytes"),
        ),
    },
)
