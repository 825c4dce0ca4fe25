# SPDX-License-Identifier: Apache-2.0
"""``seawall memory WORKLOAD``: the memory of one workload alone, by kind, counted or not."""

from dataclasses import replace

from seawall.accounts.cgroup_memory.memory_parts import parts_of
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import sum_of, uncounted_claims
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.pods.pod_table import Room
from seawall.accounts.workloads import Workload
from seawall.cgroup_paths import is_within
from seawall.cli.console import terminal_rows
from seawall.cli.named_workload import named_workload
from seawall.cli.pods import table_of
from seawall.cli.verb import SourceVerb, folded, page_lines
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.sources.source import Source
from seawall.views.memory_workload_page import WorkloadMemoryPage
from seawall.views.terminal import Console


class WorkloadMemoryVerb(SourceVerb[WorkloadMemoryPage]):
    """The memory of the one workload that was named."""

    name = "memory"
    text_view = "seawall.views.memory_workload_text:lines"
    document_table = "seawall.views.documents.memory_document:MEMORY"

    def page(self) -> WorkloadMemoryPage:
        return page_of(self.source, named_workload(self.source, self.arguments.workload))

    def fitted(self, page: WorkloadMemoryPage, paper: Console) -> WorkloadMemoryPage:
        """With what could not be seen in short, where it is longer than the screen."""
        body, top = self.text(page, paper), self.head(page)
        if (
            len(list(page_lines(paper, top, page.bundle_notes, body, page.unseen)))
            < terminal_rows()
        ):
            return page
        return replace(page, unseen=tuple(folded(page.unseen, "--json tells all of it")))


run = WorkloadMemoryVerb.run


def page_of(source: Source, workload: Workload) -> WorkloadMemoryPage:
    """Everything that the verb shows."""
    if workload.kind == "root":
        raise UsageProblem("/ is the whole node: seawall memory")
    table, unseen = table_of(source, with_stalls=False)
    rows = {row.workload.cgroup: row for row in table.rows}
    row = rows.get(workload.cgroup)
    room = None if row is None else row.room
    path = room.cgroup if isinstance(room, Room) else workload.cgroup
    claims = source.first.get(Claims)
    known = None if isinstance(claims, Unread) else claims
    uncounted = sum_of(
        claim for claim in uncounted_claims(known.claims if known else ())
        if claim.cgroup is not None and is_within(claim.cgroup, workload.cgroup)
    )  # fmt: skip
    return WorkloadMemoryPage(
        workload=workload,
        row=row,
        parts=None if row is None else parts_of(row.memcg),
        limit_name=rows[path].workload.name if path in rows else path,
        claims=uncounted.claims,
        suspects=tuple(
            one for one in (known.suspects if known else ())
            if one.cgroup is not None and is_within(one.cgroup, workload.cgroup)
        ),
        headroom=source.first.get(Headroom),
        unseen=tuple(unseen),
        bundle_notes=source.notes,
    )  # fmt: skip
