# SPDX-License-Identifier: Apache-2.0
"""The switch by which each kind of owner is stopped, and started again.  Pure.

A Job that Kueue manages has no switch of its own: Kueue sets ``suspend`` back, its Workload is the
one that counts.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

KUEUE_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
KUEUE_GROUP: Final = "kueue.x-k8s.io"


class OwnerSwitch(NamedTuple):
    """One field of one kind."""

    group: str
    kind: str
    path: str
    """JSON pointer."""
    off: Any
    """The value that stops it."""
    is_scale: bool = False
    """By opt-in only: what scales it or deploys it fights for the number."""


SWITCHES: Final = (
    OwnerSwitch("batch", "CronJob", "/spec/suspend", True),
    OwnerSwitch("batch", "Job", "/spec/suspend", True),
    OwnerSwitch("jobset.x-k8s.io", "JobSet", "/spec/suspend", True),
    OwnerSwitch("ray.io", "RayJob", "/spec/suspend", True),
    OwnerSwitch("argoproj.io", "Workflow", "/spec/suspend", True),
    OwnerSwitch(KUEUE_GROUP, "Workload", "/spec/active", False),
    OwnerSwitch("apps", "Deployment", "/spec/replicas", 0, True),
    OwnerSwitch("apps", "StatefulSet", "/spec/replicas", 0, True),
)


def switch_of(api_version: str, kind: str) -> OwnerSwitch | None:
    """None: this kind has no switch that is known here."""
    group = api_version.rpartition("/")[0]
    return next((one for one in SWITCHES if one.kind == kind and one.group == group), None)


def is_managed_by_kueue(owner: Mapping[str, Any]) -> bool:
    """Whether a ``suspend`` that others set on it would be overridden; ``owner``: its JSON."""
    metadata = owner.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return isinstance(labels, Mapping) and bool(labels.get(KUEUE_QUEUE_LABEL))
