# SPDX-License-Identifier: Apache-2.0
"""Who holds uncounted memory, and how much of it nobody claims.

SW101 tells how much there is.  Drivers, sockets and traces tell whose it is, each for a part;
what is left nobody is known to hold, and those who hold files of drivers are suspects, not
culprits.
"""

from collections.abc import Iterator, Sequence

from seawall.accounts.claim import Claim, Suspect
from seawall.accounts.claim_joining.claim_owner import RANKS
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import UncountedCharge, sum_of
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Brief, Evidence, Finding, fires, quiet
from seawall.findings.ledger_words import cut_ledger
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.base import Base
from seawall.readings.meminfo import PATH
from seawall.words import size

_SHOWN = 3
_REVEAL = (
    "seawall memory --who: who takes such memory, while it is being taken",
    "load af_packet_diag (packet rings by socket) before it is needed; run as root",
)


@rule(
    id="SW122",
    title="Who holds uncounted memory",
    severity="critical",
    thresholds={
        "warn_fraction": "share of MemTotal that one holds, or that nobody claims; proposal",
        "critical_fraction": "share of MemTotal, certain, that makes it critical; proposal",
        "plenty_fraction": "share of memory left from which it is a warning; proposal",
    },
    confirm=("seawall memory",),
    remedy=("end what holds it, in the ordinary way: nothing else frees it",),
    provide="root on the host: drivers and sockets of other processes are asked",
    has_holder=True,
)
def judge(
    claims: Claims, ledger: Ledger, headroom: Headroom, base: Base | Unread, *,
    warn_fraction: float = 0.03, critical_fraction: float = 0.10, plenty_fraction: float = 0.25,
) -> Finding | Sequence[Finding]:  # fmt: skip
    if (cut := cut_ledger(ledger)) is not None:
        return cut
    total = ledger.total_bytes
    by_name: dict[str, list[Claim]] = {}
    for claim in claims.of_residual():
        # What processes share and nobody is charged with is told by what it is.
        if (claim.workload or claim.things) and claim.confidence != "bound":
            by_name.setdefault(claim.workload or claim.holder, []).append(claim)
    most = critical_fraction * total if headroom.fraction < plenty_fraction else total
    sums = {name: sum_of(held) for name, held in by_name.items()}
    found = [
        _held(name, held, critical=held.certain_bytes > most)
        for name, held in sums.items() if held.bytes >= warn_fraction * total
    ]  # fmt: skip
    normal = max(base.residual_bytes, 0) if isinstance(base, Base) else 0
    left = claims.unexplained_bytes - normal - ledger.residual_error_bytes
    if left >= warn_fraction * total:
        found.append(_unclaimed(claims, normal))
    return found or quiet(f"{size(claims.unexplained_bytes)} is claimed by nobody")


def _held(name: str, outside: UncountedCharge, *, critical: bool) -> Finding:
    held = outside.claims
    weakest = max((claim.confidence for claim in held), key=RANKS.__getitem__)
    missing = f"Not told: {held[0].missing or 'whose'}." if not held[0].workload else ""
    return fires(
        "critical" if critical else "warning",
        f"{size(outside.bytes)} ({size(outside.least_bytes)} at least) of uncounted memory is held"
        f" by {name} ({weakest})",
        [Evidence(f"{c.kind}, {c.confidence}", c.bytes, "bytes", c.source) for c in held[:_SHOWN]],
        outlook=f"No limit bounds it, and no kill of another process frees it. {missing}".strip(),
        workload=held[0].workload, subject="" if held[0].workload else name,
        brief=Brief(
            headline=f"{size(outside.bytes)} of uncounted memory is held by"
            f" {'one workload' if held[0].workload else 'one holder'} ({weakest})",
            who="" if held[0].workload else name,
        ),
        remedy=tuple(dict.fromkeys(claim.give_back for claim in held if claim.give_back)) or None,
    )  # fmt: skip


def _unclaimed(claims: Claims, normal: int) -> Finding:
    bounds = [claim for claim in claims.of_residual() if claim.confidence == "bound"]
    names = f", at most {size(bounds[0].most_bytes)} of it by {bounds[0].holder}" if bounds else ""
    left, most = claims.unexplained_bytes, claims.unexplained_most_bytes
    return fires(
        "info",
        f"{size(left - normal)} of uncounted memory is held by nobody who can be named{names}",
        [
            Evidence("held by nobody known", left, "bytes", PATH),
            Evidence("at most", most, "bytes", PATH),
        ],
        outlook=" ".join(_suspected(claims.suspects)), subject="unclaimed", remedy=_REVEAL,
        explained_by=("SW103", "SW101"),
    )  # fmt: skip


def _suspected(suspects: Sequence[Suspect]) -> Iterator[str]:
    yield "Suspects, nothing is proved:" if suspects else "No suspects were seen."
    for one in suspects[:_SHOWN]:
        yield f"{one.workload or 'a process of the host'} ({one.why});"
    if len(suspects) > _SHOWN:
        yield f"{len(suspects)} in all."
