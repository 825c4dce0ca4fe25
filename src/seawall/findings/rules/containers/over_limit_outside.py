# SPDX-License-Identifier: Apache-2.0
"""A container is over its limit, or near it, when memory that no cgroup counts is added.

Drivers and packet rings take pages that are charged to nobody: the limit does not stop the one
for whom they are taken, and the node runs out while the container looks small.  Only evidence
that is exact or traced makes it critical; an upper bound alone never names anyone.
"""

from collections.abc import Iterator, Sequence

from seawall.accounts.cgroup_memory.memory_groups import innermost
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import (
    ShadowCharge,
    ShadowCharges,
    UncountedCharge,
    overrun_of,
)
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.words import size

_SHOWN = 3


@rule(
    id="SW211",
    title="A container is over its limit with its uncounted memory",
    severity="critical",
    thresholds={
        "near_fraction": "share of the limit that counted and uncounted memory reach; proposal",
        "outside_least_bytes": "bytes of uncounted memory; less is data in sockets on its way",
    },
    confirm=("seawall pods --wide", "seawall memory"),
    remedy=("let the workload give back what it holds, or end it: a higher limit changes nothing",),
    provide="root on the host: drivers and sockets of other processes are asked",
)
def judge(
    claims: Claims, shadows: ShadowCharges, *, near_fraction: float = 0.9,
    outside_least_bytes: int = 64 << 20,
) -> Finding | Sequence[Finding]:  # fmt: skip
    found: dict[str, Finding] = {}
    for path, shadow in shadows.by_path.items():
        charge, limit = shadow.group.memcg.usage, shadow.group.limit
        outside = shadow.outside.against_limit()
        if charge is None or not limit:
            continue
        overrun = overrun_of(charge, limit, outside, near_fraction, outside_least_bytes)
        if overrun is not None:
            found[path] = _finding(shadow, outside, overrun.level, is_over=overrun.is_over)
    kept = {group.path for group in innermost(shadows.by_path[path].group for path in found)}
    if not found:
        return _nobody(claims, shadows, outside_least_bytes)
    return [finding for path, finding in found.items() if path in kept]


def _nobody(claims: Claims, shadows: ShadowCharges, outside_least_bytes: int) -> Finding:
    """Blind where a source was refused and what nobody claims would be enough."""
    left = claims.unexplained_bytes
    missing = claims.refusals()
    if missing and left >= outside_least_bytes:
        return blind(f"whose {size(left)} of kernel memory is could not be asked", *missing)
    return quiet(f"{size(shadows.node.bytes)} is uncounted, held by nobody near its limit")


def _finding(
    shadow: ShadowCharge, outside: UncountedCharge, level: str, *, is_over: bool
) -> Finding:
    group = shadow.group
    charge, limit = group.memcg.usage or 0, group.limit or 0
    likely = "" if outside.certain_bytes == outside.bytes else " most likely"
    give_back = list(dict.fromkeys(claim.give_back for claim in outside.claims if claim.give_back))
    return fires(
        "critical" if level == "critical" else "warning",
        f"limit {size(limit)}, counted {size(charge)}, really {size(charge + outside.bytes)}"
        f"{likely}: {size(outside.bytes)} is uncounted",
        [
            Evidence("charge", charge, "bytes", group.usage_file),
            Evidence("limit", limit, "bytes", group.limit_file),
            *_evidence(outside),
        ],
        outlook=("It is over its limit, and" if is_over else "It is near its limit, and")
        + " neither the limit nor an OOM kill in the container sees that part: when it grows, it is"
        " the node that runs out.",
        workload=group.name,
        remedy=(*give_back[:2], "a higher limit changes nothing: this memory is not under it"),
    )


def _evidence(outside: UncountedCharge) -> Iterator[Evidence]:
    for claim in outside.claims[:_SHOWN]:
        name = f"uncounted: {claim.kind}, {claim.confidence}"
        yield Evidence(name, claim.bytes, "bytes", claim.source)
    yield Evidence("uncounted, certain", outside.certain_bytes, "bytes", "sum of exact and traced")
    yield Evidence("uncounted, possible", outside.most_bytes, "bytes", "sum of what is possible")
