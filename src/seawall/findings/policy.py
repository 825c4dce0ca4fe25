# SPDX-License-Identifier: Apache-2.0
"""What the owner of the node says about rules: which are muted, which thresholds moved.

``/etc/seawall/rules.toml``::

    [SW101]
    mute = true
    reason = "driver of the lab nodes, ticket 4711"   # required
    until = 2027-01-31                                # required: a mute ends by itself
    workload = "lab/*"                                # optional: only these
    [SW102.thresholds]
    warn_fraction = 0.05
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute:
    """One rule kept out of the findings, for a reason and for a time."""

    rule_id: str
    reason: str
    until: str
    """ISO date; the last day on which it counts."""
    workload: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The mutes that have not expired, and the thresholds that were moved."""

    mutes: tuple[Mute, ...] = ()
    thresholds: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    expired: tuple[Mute, ...] = ()

    def muted_reason(self, rule_id: str, workload: str | None) -> str | None:
        """Why this finding does not count; None when it does."""
        for mute in self.mutes:
            if mute.rule_id == rule_id and fnmatchcase(workload or "", mute.workload):
                return f"{mute.reason} (until {mute.until})"
        return None

    def thresholds_for(self, rule_id: str) -> Mapping[str, int | float]:
        """Keyword arguments for the rule's ``judge``."""
        return self.thresholds.get(rule_id, {})
