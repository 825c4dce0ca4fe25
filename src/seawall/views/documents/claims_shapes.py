# SPDX-License-Identifier: Apache-2.0
"""Claims and suspects: the same fields in every document that has them."""

from typing import Final, NamedTuple

from seawall.accounts.claim import Claim, Suspect
from seawall.accounts.claims.shadow_charge import ShadowCharges
from seawall.host.host import Unread
from seawall.views.documents.document_fields import Shapes, shown, unread


class NodeUncounted(NamedTuple):
    """What all workloads together are charged with and hold besides; where a source was refused,
    nothing seen is not nothing.
    """

    uncounted_bytes: int | None
    """What workloads hold in no cgroup's charge, most likely."""
    uncounted_least_bytes: int | None
    """What of it is certain."""
    uncounted_most_bytes: int | None
    """What is possible, upper bounds included."""
    shadow_charge_bytes: int | None
    """All charges, and all uncounted memory."""


def node_uncounted(shadow: ShadowCharges | Unread) -> NodeUncounted:
    """The node's uncounted memory in bytes; None for what is not known."""
    if isinstance(shadow, Unread):
        return NodeUncounted(None, None, None, None)
    is_seen = shadow.is_whole or bool(shadow.node.bytes)
    return NodeUncounted(
        uncounted_bytes=shadow.node.bytes if is_seen else None,
        uncounted_least_bytes=shadow.node.least_bytes,
        uncounted_most_bytes=shadow.node.most_bytes if shadow.is_whole else None,
        shadow_charge_bytes=shadow.node_bytes if is_seen else None,
    )


CLAIMED: Final = (
    *shown("claims suspects"),
    *unread("unexplained_bytes=claimed.unexplained_bytes"),
    *unread("unexplained_least_bytes=claimed.unexplained_least_bytes"),
    *unread("unexplained_most_bytes=claimed.unexplained_most_bytes"),
)
"""Of a page with ``claimed``, ``claims`` and ``suspects``."""

CLAIM_SHAPES: Final[Shapes] = {
    Claim: shown(
        "holder workload cgroup driver bytes least_bytes most_bytes class=kind within "
        "counted=is_counted source confidence missing give_back"
    ),
    Suspect: shown("workload cgroup driver pids why"),
    NodeUncounted: unread(
        "uncounted_bytes uncounted_least_bytes uncounted_most_bytes shadow_charge_bytes"
    ),
}
