# SPDX-License-Identifier: Apache-2.0
"""What the table of workloads cannot show, and what would let it."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.claims.claims import Claims
from seawall.accounts.pods.pod_table import PodTable
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.words import size

_NOTABLE_BYTES: Final = 64 << 20
"""The kernel itself has as much on any host."""


def unseen(
    table: PodTable | Unread, topics: Sequence[NotSeen], claims: Claims | Unread, *,
    with_stalls: bool = True,
) -> list[NotSeen]:  # fmt: skip
    """Rows of "Could not see": the topics' own, then what the table itself lacks, and what no
    cgroup counts and nobody claims.  The text tells of stalls in its headline.
    """
    if isinstance(table, Unread):
        missing = NotSeen("any workload", f"{table.path}: {table.detail or table.why}",
                          "a mounted cgroup tree with the memory controller")  # fmt: skip
        told = any(table.path in row.what for row in topics)
        return list(topics) if told else [missing, *topics]
    return [*topics, *_of_table(table, with_stalls=with_stalls), *_of_claims(claims)]


def _of_table(table: PodTable, *, with_stalls: bool) -> Iterator[NotSeen]:
    nameless = [
        row.workload for row in table.rows
        if row.workload.kind == "container" and row.workload.name.startswith("container:")
    ]  # fmt: skip
    if nameless:
        first = nameless[0].name
        yield NotSeen(
            f"names of {len(nameless)} containers, first {first}",
            "no file of this host tells; those made inside a container or by a user are known "
            "to their maker only",
            "/var/log/pods, /var/log/containers and the runtime's folder below /run (in a "
            "container: --root /host)",
        )
    if table.version == 1 and with_stalls:
        yield NotSeen(
            "how long each workload waits for memory", "cgroup v1 does not measure it",
            "cgroup v2 and Linux 4.20 or later",
        )  # fmt: skip


def _of_claims(claims: Claims | Unread) -> Iterator[NotSeen]:
    if isinstance(claims, Unread):
        what = "uncounted memory, as drivers and packet rings take it"
        why = f"no cgroup counts it; {claims.path}: {claims.detail or claims.why}"
        yield NotSeen(what, why, "seawall memory")
        return
    if claims.unexplained_bytes < _NOTABLE_BYTES:
        return
    left, most = size(claims.unexplained_bytes), size(claims.unexplained_most_bytes)
    yield NotSeen(
        f"whose {left} of uncounted memory is ({most} at most)",
        "no cgroup counts it and no source names a holder",
        "seawall memory: what is known of it; seawall memory --who: who takes more of it",
    )  # fmt: skip
