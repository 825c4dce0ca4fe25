# SPDX-License-Identifier: Apache-2.0
"""A driver keeps a pool of free pages: cache, and no leak.

NVIDIA's open module keeps freed system memory since 590, graphics drivers with TTM always do.
The pool outlives the programs it was taken for and is uncounted memory (TTM's: since 7.1), so it
looks like a leak; it is given back when memory is short.
"""

from seawall.accounts.claim_joining.claim_owner import likely_bytes
from seawall.accounts.claims.claims import Claims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.words import percent, size


@rule(
    id="SW121",
    title="A driver keeps a pool of free pages",
    severity="info",
    thresholds={"info_fraction": "share of MemTotal; proposal, as much is asked about"},
    confirm=(
        "sudo cat /sys/kernel/debug/ttm/page_pool",
        "sudo grep -H . /sys/kernel/debug/shrinker/nv-sysmem-alloc-*/count",
    ),
    remedy=(
        "nothing has to be done: it comes back when memory is short",
        "NVIDIA: NVreg_EnableSystemMemoryPools=0 switches it off; TTM: the module's page_pool_size",
    ),
    provide="root, and debugfs (CONFIG_SHRINKER_DEBUG for NVIDIA's); GPUReclaim since 7.1",
)
def judge(claims: Claims, ledger: Ledger, *, info_fraction: float = 0.01) -> Finding:
    pools = [claim for claim in claims.claims if claim.kind == "pool"]
    held = sum(map(likely_bytes, pools))
    evidence = [Evidence(claim.holder, claim.bytes, "bytes", claim.source) for claim in pools]
    if held < info_fraction * ledger.total_bytes:
        return quiet(f"{size(held)} is in pools of drivers", evidence)
    names = ", ".join(dict.fromkeys(claim.holder for claim in pools))
    return fires(
        "info",
        f"{size(held)} ({percent(held / ledger.total_bytes)} of memory) is only cache of {names}",
        evidence,
        outlook="It is no leak: the driver gives these pages back under pressure.",
    )
