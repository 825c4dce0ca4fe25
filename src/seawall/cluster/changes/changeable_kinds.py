# SPDX-License-Identifier: Apache-2.0
"""Kinds of objects that Seawall may change, and the only fields of each that it may ever write.

Whoever may annotate an object can forge what stands in its record.  So a record is believed only
as far as what we do ourselves: we suspend, scale to zero, set seconds of two tolerations, and
take away a gate that is ours.  Pure.
"""

import json
import re
from typing import Any, Final, NamedTuple

from seawall.cluster.objects.api_group import GROUP, QUARANTINE_GATE

SUSPEND: Final = "/spec/suspend"
ACTIVE: Final = "/spec/active"
REPLICAS: Final = "/spec/replicas"
TOLERATIONS: Final = "/spec/tolerations"
GATES: Final = "/spec/schedulingGates"
NODE_SELECTOR: Final = "/spec/nodeSelector/"
"""And behind it the key, escaped as RFC 6901 wants it; only keys of our group."""

DEATH_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Of a node that is silent: the tolerations that a hold may change are for these."""

_REPLICAS_MOST: Final = 1_000_000
_ROWS_MOST: Final = 256
_TOLERATION_FIELDS: Final = {"key", "operator", "value", "effect", "tolerationSeconds"}
_WORDS_MOST: Final = 512
_SECONDS_MOST: Final = 1 << 53
_SELECTOR_KEY: Final = re.compile(
    re.escape(f"{NODE_SELECTOR}{GROUP}~1") + r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
_SELECTOR_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class ChangeableKind(NamedTuple):
    """A kind whose objects may be changed."""

    kind: str
    group: str
    """Empty: the core's."""
    plural: str
    version: str
    """Which is asked where the server prefers none."""
    paths: tuple[str, ...]

    @property
    def api_version(self) -> str:
        """As an object says it."""
        return f"{self.group}/{self.version}" if self.group else self.version


CHANGEABLE_KINDS: Final = (
    ChangeableKind("Pod", "", "pods", "v1", (TOLERATIONS, GATES, NODE_SELECTOR)),
    ChangeableKind("Job", "batch", "jobs", "v1", (SUSPEND,)),
    ChangeableKind("CronJob", "batch", "cronjobs", "v1", (SUSPEND,)),
    ChangeableKind("Deployment", "apps", "deployments", "v1", (REPLICAS,)),
    ChangeableKind("StatefulSet", "apps", "statefulsets", "v1", (REPLICAS,)),
    ChangeableKind("ReplicaSet", "apps", "replicasets", "v1", (REPLICAS,)),
    ChangeableKind("JobSet", "jobset.x-k8s.io", "jobsets", "v1alpha2", (SUSPEND,)),
    ChangeableKind("Workload", "kueue.x-k8s.io", "workloads", "v1beta1", (ACTIVE,)),
    ChangeableKind("RayJob", "ray.io", "rayjobs", "v1", (SUSPEND,)),
    ChangeableKind("Workflow", "argoproj.io", "workflows", "v1alpha1", (SUSPEND,)),
)


def changeable_kind(kind: str, api_version: str = "") -> ChangeableKind | None:
    """Of that name, in the version that ``api_version`` names; None: Seawall never changes it."""
    group, _, version = api_version.rpartition("/")
    for one in CHANGEABLE_KINDS:
        if one.kind == kind and (not api_version or group == one.group):
            return one._replace(version=version) if version else one
    return None


def field_problem(kind: ChangeableKind, path: str, before: Any, after: Any) -> str:
    """Why this change may not be made, or undone; empty: it may.  ``None``: the field is absent."""
    if not any(path == one or (one == NODE_SELECTOR and path.startswith(one))
               for one in kind.paths):  # fmt: skip
        return f"{path[:64]!r} is no field of a {kind.kind} that Seawall writes"
    if path == SUSPEND and not (after is True and before in (None, False)):
        return f"{path} is only ever set to true"
    if path == ACTIVE and not (after is False and before in (None, True)):
        return f"{path} is only ever set to false"
    if path == REPLICAS and not (_is_zero(after) and (before is None or _is_count(before))):
        return f"{path} is only ever set to 0, from 1 to {_REPLICAS_MOST}"
    if path == TOLERATIONS:
        return _tolerations_problem(before, after)
    if path == GATES:
        return _gates_problem(before, after)
    if path.startswith(NODE_SELECTOR):
        return _selector_problem(path, before, after)
    return ""


def same_value(one: Any, other: Any) -> bool:
    """As JSON: 1 is not true, and the order of a list counts."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _is_zero(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == 0


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and 1 <= value <= _REPLICAS_MOST


def _tolerations_problem(before: Any, after: Any) -> str:
    """They may differ in what concerns a silent node, and in nothing else."""
    for rows in (before, after):
        if rows is None:
            continue
        if not isinstance(rows, list) or len(rows) > _ROWS_MOST:
            return f"{TOLERATIONS}: expected a list of at most {_ROWS_MOST}"
        if not all(_is_toleration(row) for row in rows):
            return f"{TOLERATIONS}: holds what is no toleration"
    others = [[row for row in rows or () if not _is_of_death(row)] for rows in (before, after)]
    if not same_value(*others):
        words = " and ".join(DEATH_TAINTS)
        return f"{TOLERATIONS}: only those of {words} with effect NoExecute are changed"
    return ""


def _is_toleration(row: Any) -> bool:
    if not isinstance(row, dict) or not row.keys() <= _TOLERATION_FIELDS:
        return False
    seconds = row.get("tolerationSeconds")
    if seconds is not None:
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            return False
        if abs(seconds) > _SECONDS_MOST:
            return False
    words = [value for name, value in row.items() if name != "tolerationSeconds"]
    return all(isinstance(word, str) and len(word) <= _WORDS_MOST for word in words)


def _is_of_death(row: dict[str, Any]) -> bool:
    return row.get("key") in DEATH_TAINTS and row.get("effect") == "NoExecute"


def _gates_problem(before: Any, after: Any) -> str:
    """Only our own gate is taken away; the API lets nobody add one to a pod that exists."""
    for rows in (before, after):
        if rows is None:
            continue
        if not isinstance(rows, list) or len(rows) > _ROWS_MOST:
            return f"{GATES}: expected a list of at most {_ROWS_MOST}"
        for row in rows:
            if not isinstance(row, dict) or set(row) != {"name"}:
                return f"{GATES}: holds what is no gate"
            if not isinstance(row["name"], str) or len(row["name"]) > _WORDS_MOST:
                return f"{GATES}: holds what is no gate"
    without = [row for row in before or () if row["name"] != QUARANTINE_GATE]
    if not same_value(without, list(after or ())):
        return f"{GATES}: only {QUARANTINE_GATE} is taken away"
    return ""


def _selector_problem(path: str, before: Any, after: Any) -> str:
    if _SELECTOR_KEY.fullmatch(path) is None:
        return f"{path[:64]!r}: only keys of {GROUP} are written"
    for value in (before, after):
        if value is None:
            continue
        if not isinstance(value, str) or _SELECTOR_VALUE.fullmatch(value) is None:
            return f"{path}: expected the value of a label"
    return ""
