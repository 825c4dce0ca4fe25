# SPDX-License-Identifier: Apache-2.0
"""``uncounted_then`` of ``seawall oom explain --json``: a moment of a black box."""

from typing import Any, Final

from seawall.views.documents.claims_shapes import CLAIM_SHAPES, CLAIMED
from seawall.views.documents.document_fields import Shapes, object_of, shown
from seawall.views.uncounted_moment import UncountedMoment


def _residual(moment: UncountedMoment) -> int | None:
    return None if moment.ledger.missing else moment.ledger.residual_bytes


_SHAPES: Final[Shapes] = {
    UncountedMoment: (
        *shown("at=unix_seconds:time"),
        *shown("before_seconds:3"),
        *shown("of total_bytes=ledger.total_bytes"),
        *shown({"residual_bytes": _residual}),
        *shown("residual_error_bytes=ledger.residual_error_bytes"),
        *CLAIMED,
    ),
    **CLAIM_SHAPES,
}


def moment_object(moment: UncountedMoment) -> dict[str, Any]:
    """``uncounted_then``, with the claims of that moment."""
    made: dict[str, Any] = object_of(moment, _SHAPES)
    return made
