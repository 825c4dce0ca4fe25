# SPDX-License-Identifier: Apache-2.0
"""One statement of a dead node's own record, as agent, NodeReport and NodeDeath carry it."""

from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.judge.node_death import EvidenceKind, NodeEvidence
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    ObjectFields,
    clean,
    without_absent,
    word_of,
    words_of,
)

LINES_MOST: Final = 16
PODS_MOST: Final = 32
_KINDS: Final = words_of(EvidenceKind)


@dataclass(frozen=True, slots=True)
class RecordLine:
    """What it says, of whom."""

    kind: EvidenceKind
    pods: tuple[str, ...] = ()
    """Uids; empty: it is about the node."""
    text: str = ""
    at_seconds: float | None = None
    source: str = ""
    """Who says so: ``agent``, ``black box``, ``event``; only in a NodeDeath."""

    def evidence(self) -> NodeEvidence:
        """As the judge takes it."""
        return NodeEvidence(self.kind, frozenset(self.pods))

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        at = None if self.at_seconds is None else time_words(self.at_seconds)
        return without_absent({
            "kind": word_of(self.kind), "pods": [clean(pod, 64) for pod in self.pods[:PODS_MOST]],
            "text": clean(self.text, TEXT_LETTERS), "at": at, "source": clean(self.source, 64),
        })  # fmt: skip


def record_lines(fields: ObjectFields, name: str) -> tuple[RecordLine, ...]:
    """The list of that name.  ObjectProblem."""
    return tuple(
        RecordLine(
            row.needed_word("kind", _KINDS), row.texts("pods", PODS_MOST, 64),
            row.text("text", TEXT_LETTERS), row.seconds("at"), row.text("source", 64),
        )
        for row in fields.rows(name, LINES_MOST)
    )  # fmt: skip
