# SPDX-License-Identifier: Apache-2.0
"""Events of what a person did, on the quarantine, the workload and its pods.  Pure."""

from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.objects.api_group import API_VERSION, GROUP
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import clean, without_absent

REPORTER: Final = f"{GROUP}/cli"
"""``reportingController`` of what people do."""
PODS_MOST: Final = 20
"""Of a deed on a thousand pods the owner's event is enough."""
_NOTE_LETTERS: Final = 1000


@dataclass(frozen=True, slots=True)
class ActEvent:
    """One Event (``events.k8s.io/v1``)."""

    reason: str
    note: str
    kind: str
    api_version: str
    name: str
    uid: str
    namespace: str = ""
    """Empty: it belongs to none, and its Events lie in ``default``."""
    is_warning: bool = False

    @property
    def path(self) -> str:
        """Where it is created."""
        return f"/apis/events.k8s.io/v1/namespaces/{self.namespace or 'default'}/events"

    def document(self, at_seconds: float, number: int) -> dict[str, Any]:
        """What it is as JSON; ``number``: of this deed."""
        stem = self.name[:200].rstrip("-.")
        return {
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {
                "name": f"{stem}.{round(at_seconds * 1e6):x}{number:x}",
                "namespace": self.namespace or "default",
            },
            "eventTime": time_words(at_seconds), "reportingController": REPORTER,
            "reportingInstance": "seawall-cluster", "action": "Quarantine",
            "reason": self.reason, "type": "Warning" if self.is_warning else "Normal",
            "note": clean(self.note, _NOTE_LETTERS),
            "regarding": without_absent({
                "apiVersion": self.api_version, "kind": self.kind, "name": self.name,
                "uid": self.uid, "namespace": self.namespace,
            }),
        }  # fmt: skip


def quarantine_event(reason: str, note: str, name: str, uid: str) -> ActEvent:
    """On the quarantine itself."""
    return ActEvent(reason, note, "WorkloadQuarantine", API_VERSION, name, uid)
