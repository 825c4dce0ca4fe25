# SPDX-License-Identifier: Apache-2.0
"""What was done in the name of a quarantine: the part of its status that is not the observer's."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    ObjectFields,
    clean,
    without_absent,
)

ACTIONS_MOST: Final = 64
PODS_MOST: Final = 1000
_WORD_LETTERS: Final = 63
_PATH_LETTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class QuarantineAction:
    """One write, or one that was refused or only told of."""

    lever: str
    """An ``ActionLever``'s value, or a word of a later version."""
    kind: str
    """Of the object that it was done to, ``Pod`` say."""
    namespace: str
    """Empty: a node."""
    name: str
    uid: str
    at_seconds: float
    result: str
    """An ``ActionResult``'s value, or a word of a later version."""
    path: str = ""
    """JSON pointer to the field; empty: the whole object, a deletion say."""
    before: Any = None
    """As it was sent; None: it was absent."""
    after: Any = None
    undone_seconds: float | None = None
    problem: str = ""

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        undone = self.undone_seconds
        return without_absent({
            "lever": self.lever, "kind": self.kind, "namespace": self.namespace,
            "name": self.name, "uid": self.uid, "at": time_words(self.at_seconds),
            "path": self.path, "before": self.before, "after": self.after,
            "result": self.result, "undoneAt": None if undone is None else time_words(undone),
            "problem": clean(self.problem, TEXT_LETTERS),
        })  # fmt: skip


class CanaryVerdict(Enum):
    """How the trial of a canary ended; readers take other words too, those of a later version."""

    PASSED = "passed"
    """It ran its time, or to its own end: the family goes to guarded nodes."""
    KILLED = "killed"
    """A guard, the kernel or a limit had to end it."""
    NODE_DIED = "node died"
    ENDED = "ended"
    """It was taken away, or failed by itself, before anything was seen."""


@dataclass(frozen=True, slots=True)
class QuarantineCanary:
    """The one pod that is let through, to see whether its node lives."""

    pod: str
    node: str = ""
    """Empty: it runs nowhere yet."""
    since_seconds: float | None = None
    """When it was first seen to run there."""
    verdict: str = ""
    """Empty: it is on trial; ``passed``, ``killed``, ``node died`` or ``ended``."""
    uid: str = ""
    """Of the pod: the next one of a StatefulSet has the same name."""
    boot_id: str = ""
    """Of the node when the pod was first seen to run: a node that reboots fast is never silent."""

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        since = self.since_seconds
        return without_absent({
            "pod": self.pod, "uid": self.uid, "node": self.node, "bootID": self.boot_id,
            "since": None if since is None else time_words(since), "verdict": self.verdict,
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class QuarantinedPod:
    """A pod that matches, and where it runs: a node's guard keeps it from starting there again."""

    uid: str
    node: str

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        return {"uid": self.uid, "node": self.node}


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """What actor and people say in a quarantine's status; the observer writes none of it."""

    actions: tuple[QuarantineAction, ...] = ()
    """The newest last, at most ``ACTIONS_MOST``."""
    approved_by: str = ""
    """Who has said that it may be done; empty: nobody."""
    canary: QuarantineCanary | None = None
    pods: tuple[QuarantinedPod, ...] = ()
    """Of a quarantine in force, at most ``PODS_MOST``; each node's agent takes its own."""

    def document(self) -> dict[str, Any]:
        """What it is as JSON; absent where nothing was done."""
        actions = [one.document() for one in self.actions[-ACTIONS_MOST:]]
        pods = [one.document() for one in self.pods[:PODS_MOST]]
        return without_absent({
            "actions": actions or None, "pods": pods or None,
            "approvedBy": clean(self.approved_by, 253),
            "canary": None if self.canary is None else self.canary.document(),
        })  # fmt: skip


def actor_status(fields: ObjectFields | None) -> ActorStatus:
    """Of a quarantine's status.  ObjectProblem: what is wrong with it."""
    if fields is None:
        return ActorStatus()
    canary = fields.fields("canary")
    return ActorStatus(
        tuple(_action(row) for row in fields.rows("actions", ACTIONS_MOST)),
        fields.text("approvedBy"),
        None if canary is None else QuarantineCanary(
            canary.needed_text("pod"), canary.text("node"), canary.seconds("since"),
            canary.text("verdict", _WORD_LETTERS), canary.text("uid", _WORD_LETTERS),
            canary.text("bootID", _WORD_LETTERS),
        ),
        tuple(
            QuarantinedPod(row.needed_text("uid", _WORD_LETTERS), row.needed_text("node"))
            for row in fields.rows("pods", PODS_MOST)
        ),
    )  # fmt: skip


def _action(row: ObjectFields) -> QuarantineAction:
    return QuarantineAction(
        lever=row.needed_text("lever", _WORD_LETTERS), kind=row.text("kind", _WORD_LETTERS),
        namespace=row.text("namespace", _WORD_LETTERS), name=row.text("name"),
        uid=row.text("uid", _WORD_LETTERS), at_seconds=row.needed_seconds("at"),
        result=row.needed_text("result", _WORD_LETTERS), path=row.text("path", _PATH_LETTERS),
        before=row.value("before"), after=row.value("after"),
        undone_seconds=row.seconds("undoneAt"), problem=row.text("problem", TEXT_LETTERS),
    )  # fmt: skip
