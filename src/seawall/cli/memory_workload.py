# SPDX-License-Identifier: Apache-2.0
"""``seawall memory WORKLOAD``: the memory of one workload alone, by kind, counted or not."""

from argparse import Namespace

from seawall.accounts.cgroup_memory.memory_parts import parts_of
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import sum_of, uncounted_claims
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.pods.pod_table import Room
from seawall.accounts.workloads import Workload
from seawall.cgroup_paths import is_within
from seawall.cli.console import console_for, terminal_rows
from seawall.cli.named_workload import named_workload
from seawall.cli.pods import table_of
from seawall.cli.source_options import open_source
from seawall.cli.verb_page import folded, page_lines, print_page
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.kernel import Kernel
from seawall.sources.source import Source
from seawall.views.document import head, render
from seawall.views.memory_workload_page import WorkloadMemoryPage


def run(arguments: Namespace) -> int:
    """Print the memory of the one workload that was named; the exit status."""
    source = open_source(arguments)
    page = page_of(source, named_workload(source, arguments.workload))
    top = head("memory", source.first.get(Kernel), None)
    if arguments.json:
        from seawall.views.documents.memory_document import MEMORY  # noqa: PLC0415 - one of the two

        print(render(MEMORY.of(top, page)))
        return 0
    from seawall.views.memory_workload_text import lines  # noqa: PLC0415 - only one of the two

    paper = console_for(arguments.color)
    body, unseen = list(lines(page, paper)), page.unseen
    if len(list(page_lines(paper, top, source.notes, body, unseen))) > terminal_rows() - 1:
        unseen = tuple(folded(unseen, "--json tells all of it"))
    print_page(paper, top, source.notes, body, unseen)
    return 0


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
