# SPDX-License-Identifier: Apache-2.0
"""What is kept of a Node: some 0.4 KB where the whole object takes 80.  Pure.

Labels and annotations are decoded by the names that the policy has; all others are skipped, not
read.
"""

import datetime as dt
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from seawall.cluster.judge.node_death import Stratum
from seawall.cluster.objects.seawall_policy_object import SeawallPolicyObject

CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
"""Set by the node lifecycle controller with the time when ``spec.unschedulable`` was."""
_NAME_LETTERS: Final = 253
_WORD_LETTERS: Final = 128


class RowFields(NamedTuple):
    """Which labels, taints and annotations count, as the policy names them; of labels the first
    that a node has.
    """

    pool_labels: tuple[str, ...]
    domain_labels: tuple[str, ...]
    capacity_type_labels: tuple[str, ...]
    planned_taints: tuple[str, ...]
    planned_annotations: tuple[str, ...]
    zone_labels: tuple[str, ...] = (
        "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone",
    )  # fmt: skip

    @classmethod
    def of_policy(cls, policy: SeawallPolicyObject) -> "RowFields":
        """As the cluster's owner, or the policy's defaults, name them."""
        return cls(
            policy.pool_labels, policy.domain_labels, policy.capacity_type_labels,
            policy.planned_taints, policy.planned_annotations,
        )  # fmt: skip


class NodeRow(msgspec.Struct, gc=False, frozen=True):
    """A node at one resource version.  Words that many nodes share are one string in memory."""

    name: str
    uid: str
    resource_version: int
    """0: the server's is no number; then it cannot be compared."""
    boot_id: str
    ready: str
    """``True``, ``False``, ``Unknown``; empty: no such condition yet."""
    ready_seconds: float
    """Unix time of the condition's last transition: of the node lifecycle controller's clock where
    ``ready`` is Unknown, else of the node's own.  0: it has none."""
    ready_reason: str
    pool: str
    kernel: str
    capacity_type: str
    zone: str
    domain: str
    is_cordoned: bool
    cordoned_seconds: float
    """When, by the controller's clock; 0: it does not say."""
    plan: str
    """The first mark that says that somebody ends this node: a taint, an annotation, ``deleted``
    (a deletion that waits for finalizers).  Empty: none."""
    planned_seconds: float
    """When that mark was set, where it says so; else 0."""

    @property
    def stratum(self) -> Stratum:
        return Stratum(self.pool, self.kernel, self.capacity_type, self.zone)


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str
    reason: str = ""
    lastTransitionTime: str | None = None  # noqa: N815 - the API's names


class _Taint(msgspec.Struct, gc=False):
    key: str
    value: str = ""
    timeAdded: str | None = None  # noqa: N815


class _NodeInfo(msgspec.Struct, gc=False):
    bootID: str = ""  # noqa: N815
    kernelVersion: str = ""  # noqa: N815


class _Status(msgspec.Struct, gc=False):
    capacity: msgspec.Raw = msgspec.Raw(b"null")
    """Decoded of nodes without a pool's label alone."""
    conditions: list[_Condition] | None = None
    nodeInfo: _NodeInfo = msgspec.field(default_factory=_NodeInfo)  # noqa: N815


class _Spec(msgspec.Struct, gc=False):
    unschedulable: bool = False
    taints: list[_Taint] | None = None


class NodeRowDecoder:
    """Bytes of a Node object into its row."""

    def __init__(self, fields: RowFields) -> None:
        self._fields = fields
        labels = (*fields.pool_labels, *fields.domain_labels, *fields.capacity_type_labels,
                  *fields.zone_labels)  # fmt: skip
        metadata = msgspec.defstruct(
            "_Metadata",
            [("name", str), ("uid", str, ""), ("resourceVersion", str, ""),
             ("deletionTimestamp", str | None, None), ("labels", _some(labels) | None, None),
             ("annotations", _some(fields.planned_annotations) | None, None)],
        )  # fmt: skip
        self._decoder = msgspec.json.Decoder(msgspec.defstruct(
            "_Node", [("metadata", metadata),
                      ("spec", _Spec, msgspec.field(default_factory=_Spec)),
                      ("status", _Status, msgspec.field(default_factory=_Status))],
        ))  # fmt: skip

    def decode(self, data: bytes | msgspec.Raw) -> NodeRow:
        """``msgspec.MsgspecError`` where it is no Node."""
        node: Any = self._decoder.decode(data)
        metadata, status, taints = node.metadata, node.status, node.spec.taints or ()
        ready = next((one for one in status.conditions or () if one.type == "Ready"), None)
        cordon = next((one for one in taints if one.key == CORDON_TAINT), None)
        plan, planned_seconds = self._plan(metadata, taints)
        label = self._label(metadata.labels)
        version = metadata.resourceVersion
        return NodeRow(
            name=metadata.name[:_NAME_LETTERS],
            uid=metadata.uid[:_WORD_LETTERS],
            resource_version=version_number(version),
            boot_id=status.nodeInfo.bootID[:_WORD_LETTERS],
            ready=_word(ready.status) if ready else "",
            ready_seconds=unix_seconds(ready.lastTransitionTime) if ready else 0.0,
            ready_reason=_word(ready.reason) if ready else "",
            pool=label(self._fields.pool_labels) or hardware_words(status.capacity),
            kernel=_word(status.nodeInfo.kernelVersion),
            capacity_type=label(self._fields.capacity_type_labels),
            zone=label(self._fields.zone_labels),
            domain=label(self._fields.domain_labels),
            is_cordoned=node.spec.unschedulable or cordon is not None,
            cordoned_seconds=unix_seconds(cordon.timeAdded) if cordon else 0.0,
            plan=plan,
            planned_seconds=planned_seconds,
        )

    def _plan(self, metadata: Any, taints: Sequence[_Taint]) -> tuple[str, float]:
        for one in taints:
            if one.key in self._fields.planned_taints:
                return _word(f"taint {one.key}"), unix_seconds(one.timeAdded) or _number(one.value)
        if metadata.annotations is not None:
            for name in self._fields.planned_annotations:
                if getattr(metadata.annotations, name):
                    return _word(f"annotation {name}"), 0.0
        if metadata.deletionTimestamp:
            return "deleted", unix_seconds(metadata.deletionTimestamp)
        return "", 0.0

    @staticmethod
    def _label(labels: Any) -> Any:
        def first(names: tuple[str, ...]) -> str:
            values = (getattr(labels, name) for name in names) if labels is not None else ()
            return _word(next((value for value in values if value), ""))

        return first


def hardware_words(capacity: bytes | msgspec.Raw) -> str:
    """Stands for a pool where no label names one, as on machines that people install themselves:
    only nodes that are alike die alike.  Empty: the node does not say what it has.

    Of extended resources the names alone count, for a node that loses a device is the same node;
    memory as two digits of GiB, for machines of one model differ by some MiB.
    """
    try:
        amounts = msgspec.json.decode(capacity, type=dict[str, str | int | float] | None) or {}
    except msgspec.MsgspecError:
        return ""
    processors = str(amounts.get("cpu", ""))
    memory = _memory_gib(str(amounts.get("memory", "")))
    if not processors.isascii() or not processors.isdigit() or not memory:
        return ""
    devices = sorted(name for name in amounts if "/" in name and name.isascii())
    return _word(", ".join((f"{processors} cpu", f"{memory} GiB", *devices[:3])))


def _memory_gib(text: str) -> str:
    """``263847520Ki`` is ``250``; empty where it is no such amount."""
    number = text.removesuffix("Ki")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        return ""
    gib = int(number) / (2**20 if text.endswith("Ki") else 2**30)
    return f"{float(f'{gib:.2g}'):g}"


def version_number(text: str) -> int:
    """Comparable by KEP-5504 (1.35), and in etcd's practice before; 0 where it is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def unix_seconds(text: str | None) -> float:
    """Of the API's time; 0 where it is none or none that can be read."""
    if not text:
        return 0.0
    try:
        return msgspec.convert(text, dt.datetime).timestamp()
    except (msgspec.ValidationError, ValueError, OverflowError):
        return 0.0


def _number(text: str) -> float:
    """The cluster autoscaler writes Unix seconds as its taint's value."""
    return float(text) if text.isascii() and text.isdigit() and len(text) == 10 else 0.0


def _word(text: str) -> str:
    return sys.intern(text[:_WORD_LETTERS])


def _some(names: tuple[str, ...]) -> Any:
    """A type that has these fields and skips all others; attributes are the names themselves."""
    wanted = dict.fromkeys(names)
    rename = {f"f{number}": name for number, name in enumerate(wanted)}
    made = msgspec.defstruct("_Some", [(one, str, "") for one in rename], rename=rename, gc=False)
    for one, name in rename.items():
        setattr(made, name, getattr(made, one))  # reads by the label's own name
    return made
