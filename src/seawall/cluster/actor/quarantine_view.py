# SPDX-License-Identifier: Apache-2.0
"""A quarantine from the API's JSON, with the actor's own marks on it.  Pure."""

from typing import Final

from seawall.cluster.actor.family_view import ActorQuarantine
from seawall.cluster.objects.api_group import GROUP
from seawall.cluster.objects.object_fields import ObjectFields
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object

ACTIVATED_AT: Final = f"{GROUP}/activated-at"
MODE_AT: Final = f"{GROUP}/mode-at"
"""Annotations of a quarantine, by the actor: when it made it active, and gave it its mode."""


def actor_quarantine(document: object, seen_seconds: float) -> ActorQuarantine:
    """``seen_seconds``: when it was seen with the mode that it has, for one that a person set.
    ObjectProblem: what is wrong with it.
    """
    one = workload_quarantine_object(document)
    metadata = ObjectFields(document, one.name).needed_fields("metadata")
    marks = metadata.fields("annotations")
    activated = mode = None
    if marks is not None:
        activated, mode = marks.seconds(ACTIVATED_AT), marks.seconds(MODE_AT)
    return ActorQuarantine(
        one, metadata.text("uid", 64), metadata.text("resourceVersion", 64),
        activated, seen_seconds if mode is None else mode,
    )  # fmt: skip
