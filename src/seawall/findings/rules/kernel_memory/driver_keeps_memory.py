# SPDX-License-Identifier: Apache-2.0
"""A driver keeps memory after those who used it have gone.

A driver frees what it took for a program when the program's last descriptor is closed.  What it
still has then is a leak of the driver, or of what hands buffers on: ending programs frees none
of it.  Said only where a counter of the driver, or a trace, shows the memory itself; pools of
free pages are not meant (SW121).
"""

from collections.abc import Sequence

from seawall.accounts.claim import Claim
from seawall.accounts.claim_joining.claim_owner import is_total
from seawall.accounts.claims.claims import Claims
from seawall.accounts.drivers.driver_holders import DriverHolders, LeftBehind
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.words import size

_GONE = "(gone)"
_NONE = "no driver is known to keep memory without users"
_KINDS = ("surface", "managed", "pinned", "unknown")
_OUTLOOK = "Nobody is left whose end would free it; with each such program it grows."


@rule(
    id="SW120",
    title="A driver keeps memory after its users have gone",
    severity="warning",
    thresholds={
        "warn_fraction": "share of MemTotal; consoles and the driver itself have less (proposal)"
    },
    confirm=(
        "sudo find /proc/[0-9]*/fd -lname '/dev/nvidia*' -o -lname '/dev/dri/*' 2>/dev/null",
        "seawall memory",
    ),
    remedy=(
        "drain the node, and reload the driver or boot again: ending programs frees none of it",
        "keep a capture (seawall capture) for the driver's maker",
    ),
    provide="root with CAP_SYS_PTRACE: who holds files of drivers",
)
def judge(
    claims: Claims, ledger: Ledger, holders: DriverHolders | Unread, *, warn_fraction: float = 0.01,
) -> Finding | Sequence[Finding]:  # fmt: skip
    least = warn_fraction * ledger.total_bytes
    taken = [claim for claim in claims.claims if claim.driver and claim.kind in _KINDS]
    found = [_gone(c) for c in taken if c.holder.endswith(_GONE) and c.least_bytes >= least]
    totals = [claim for claim in taken if is_total(claim) and claim.most_bytes >= least]
    if isinstance(holders, Unread):
        unknown = blind("who holds files of drivers is not known", holders)
        return ([*found, unknown] if totals else found) or quiet(_NONE)
    if totals and not holders.is_complete:
        missing = Unread("/proc/PID/fd", "refused", "some processes were not asked")
        return [*found, blind("not all holders of drivers' files are known", missing)]
    found += [_left(one) for one in holders.left_behind if one.bytes >= least]
    return found or quiet(_NONE)


def _gone(claim: Claim) -> Finding:
    return fires(
        "warning",
        f"{size(claim.bytes)} is still held by {claim.driver}, that it took for {claim.holder}",
        [Evidence(f"held, {claim.confidence}", claim.bytes, "bytes", claim.source)],
        outlook=_OUTLOOK,
        subject=f"{claim.driver} {claim.holder}",
    )


def _left(one: LeftBehind) -> Finding:
    return fires(
        "warning",
        f"{size(one.bytes)} at most is still held by {one.driver}, whose users have all gone",
        [Evidence("held at most", one.bytes, "bytes", one.source)],
        outlook=_OUTLOOK,
        subject=one.driver,
    )
