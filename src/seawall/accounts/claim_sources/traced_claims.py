# SPDX-License-Identifier: Apache-2.0
"""Pages seen being taken, and looked up once more by page frame: ``memory --who``."""

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.tracing.trace_rows import TracedRow
from seawall.accounts.tracing.traced_memory import Traced


def claims(traced: Traced) -> SourceClaims:
    """One for each workload and kind; nothing where nobody traced before this moment."""
    trace = traced.sum
    if not trace.has_trace:
        return SourceClaims()
    from seawall.accounts.tracing.traced_words import bounded, give_back, source_words  # noqa: PLC0415 - why loads us

    def claim(row: TracedRow) -> Claim:
        gone = "; its cgroup is gone, and the memory stayed" if row.is_gone else ""
        return bounded(
            Claim(
                holder=row.holder,
                workload=row.workload,
                cgroup=row.cgroup,
                driver=row.driver,
                bytes=row.bytes,
                least_bytes=row.least_bytes,
                most_bytes=row.most_bytes,
                kind=row.kind,
                within=row.within,
                is_counted=False,
                source=source_words(row, trace.seconds),
                confidence="traced",
                missing=f"what it took before the trace began{gone}",
                give_back=give_back(row.kind, row.what, is_gone=row.is_gone),
            )
        )

    return SourceClaims(tuple(claim(row) for row in trace.rows if row.bytes))
