# SPDX-License-Identifier: Apache-2.0
"""``RescueOrder``: that a silent node shall end the workload that took its memory.

One a node, under the node's name.  It is no evidence: the node's guard judges by itself whether
whom it names goes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from seawall.cluster.objects.api_group import API_VERSION, RESCUE_ORDER
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    ObjectFields,
    ObjectProblem,
    clean,
    object_name,
    without_absent,
    word_of,
    words_of,
)

PODS_MOST: Final = 8
ORDER_SECONDS: Final = 300.0
ORDER_MOST_SECONDS: Final = 600.0
_REASON_LETTERS: Final = 512
_MESSAGE_LETTERS: Final = 1024


class RescueState(Enum):
    """What the node says of it."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    DONE = "done"


_STATES: Final = words_of(RescueState)
FINAL_STATES: Final = (RescueState.REFUSED, RescueState.DONE)


@dataclass(frozen=True, slots=True)
class RescueStatus:
    """The node's answer."""

    state: RescueState | None = None
    """None: it has not answered."""
    message: str = ""
    decision: str = ""
    """Id in the guard's decisions.jsonl."""
    returned_bytes: int | None = None
    at_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RescueOrderObject:
    """What one node is ordered, and what it answered."""

    node: str
    boot_id: str
    pods: tuple[str, ...]
    """Uids."""
    requested_by: str
    expires_seconds: float
    reason: str = ""
    status: RescueStatus = RescueStatus()
    quarantine: str = ""
    """In whose name: the actor's orders need one that stands; a person's do not."""

    def document(self) -> dict[str, Any]:
        """The whole object as JSON; the API server leaves its status out at a creation."""
        status = self.status
        return {
            "apiVersion": API_VERSION, "kind": RESCUE_ORDER.kind, "metadata": {"name": self.node},
            "spec": without_absent({
                "nodeName": self.node, "bootID": self.boot_id, "podUIDs": list(self.pods),
                "requestedBy": self.requested_by, "reason": clean(self.reason, _REASON_LETTERS),
                "quarantine": self.quarantine,
                "expiresAt": time_words(self.expires_seconds),
            }),
            "status": without_absent({
                "state": None if status.state is None else word_of(status.state),
                "message": clean(status.message, _MESSAGE_LETTERS), "decision": status.decision,
                "returnedBytes": status.returned_bytes,
                "at": None if status.at_seconds is None else time_words(status.at_seconds),
            }),
        }  # fmt: skip


def rescue_order_object(document: object) -> RescueOrderObject:
    """From JSON.  ObjectProblem: what is wrong with this one."""
    name = object_name(document, RESCUE_ORDER.kind)
    whole = ObjectFields(document, f"{RESCUE_ORDER.kind} {name}")
    spec = whole.needed_fields("spec")
    status = whole.fields("status")
    pods = spec.texts("podUIDs", PODS_MOST, 64)
    if not pods:
        raise ObjectProblem(f"{spec.where}.podUIDs: expected at least one, found none")
    return RescueOrderObject(
        node=name, boot_id=spec.needed_text("bootID", 64), pods=pods,
        requested_by=spec.needed_text("requestedBy"),
        expires_seconds=spec.needed_seconds("expiresAt"),
        reason=spec.text("reason", _REASON_LETTERS), quarantine=spec.text("quarantine", 63),
        status=RescueStatus() if status is None else RescueStatus(
            status.word("state", _STATES), status.text("message", _MESSAGE_LETTERS),
            status.text("decision", 64), status.whole("returnedBytes"), status.seconds("at"),
        ),
    )  # fmt: skip
