# SPDX-License-Identifier: Apache-2.0
"""Claims and suspects as JSON: the same fields in every document that has them."""

from typing import Any

from seawall.accounts.claim import Claim, Suspect
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import ShadowCharges
from seawall.host.host import Unread
from seawall.views.document import with_unread


def claims_fields(claims: Claims | Unread) -> dict[str, Any]:
    """``claims``, ``suspects``, ``unexplained_*``, and in ``unread`` those that are missing."""
    known = None if isinstance(claims, Unread) else claims
    numbers = {
        "unexplained_bytes": known and known.unexplained_bytes,
        "unexplained_least_bytes": known and known.unexplained_least_bytes,
        "unexplained_most_bytes": known and known.unexplained_most_bytes,
    }
    return {
        "claims": [claim_object(claim) for claim in (known.claims if known else ())],
        "suspects": [suspect_object(suspect) for suspect in (known.suspects if known else ())],
        **with_unread(numbers),
    }


def node_shadow_fields(shadow: ShadowCharges | Unread) -> dict[str, Any]:
    """What all workloads together are charged with and hold besides; where a source was refused,
    nothing seen is not nothing.
    """
    known = None if isinstance(shadow, Unread) else shadow
    seen = known if known and (known.is_whole or known.node.bytes) else None
    return {
        "uncounted_bytes": seen and seen.node.bytes,
        "uncounted_least_bytes": known and known.node.least_bytes,
        "uncounted_most_bytes": known.node.most_bytes if known and known.is_whole else None,
        "shadow_charge_bytes": seen and seen.node_bytes,
    }


def claim_object(claim: Claim) -> dict[str, Any]:
    """One claim."""
    return {
        "holder": claim.holder,
        "workload": claim.workload,
        "cgroup": claim.cgroup,
        "driver": claim.driver,
        "bytes": claim.bytes,
        "least_bytes": claim.least_bytes,
        "most_bytes": claim.most_bytes,
        "class": claim.kind,
        "within": claim.within,
        "counted": claim.is_counted,
        "source": claim.source,
        "confidence": claim.confidence,
        "missing": claim.missing,
        "give_back": claim.give_back,
    }


def suspect_object(suspect: Suspect) -> dict[str, Any]:
    """Who could hold uncounted memory that nobody is known to hold; nothing is proved."""
    return {
        "workload": suspect.workload,
        "cgroup": suspect.cgroup,
        "driver": suspect.driver,
        "pids": list(suspect.pids),
        "why": suspect.why,
    }
