# SPDX-License-Identifier: Apache-2.0
"""What sources of claims could not see here, as rows of "Could not see"."""

from seawall.accounts.claims.claims import Claims
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread


def claims_unseen(claims: Claims | Unread) -> list[NotSeen]:
    """The sources' own sentences; then that nobody was named, where that is so."""
    if isinstance(claims, Unread):
        return []  # the topic's own row says why
    rows = [NotSeen("holders", words, "") for words in claims.unseen]
    if not claims.of_residual():
        row = NotSeen(
            "who holds the uncounted memory", "no source names a holder",
            "seawall memory --who, which watches who takes such memory while it is taken",
        )  # fmt: skip
        rows.append(row)
    return rows
