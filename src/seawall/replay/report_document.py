# SPDX-License-Identifier: Apache-2.0
"""``seawall guard report --json``."""

from typing import Final

from seawall.blackbox.record_times import rfc3339_of
from seawall.replay.report_all_nodes import RepeatVictim, poison_in
from seawall.replay.report_limits import OverLimitRow, over_limits
from seawall.replay.report_model import (
    EndedWorkload,
    GuardReport,
    NodeCoverage,
    Occasion,
    ReportTarget,
)
from seawall.replay.report_words import verdict, what_happened
from seawall.views.documents.document_fields import Document, one_of, shown


def reported(report: GuardReport) -> list[OverLimitRow]:
    """Who these reports are about, on all nodes together: the most overrun first."""
    return over_limits(report.reported)


def workloads(report: GuardReport) -> list[RepeatVictim]:
    """Who was chosen, on most nodes first."""
    return poison_in(report.occasions)


REPORT: Final = Document(
    name="guard-report",
    verb="seawall guard report --json",
    about="What guards did or would have done, on one node or many, held against what really "
    "happened. Additive within the major number.",
    pages=(GuardReport,),
    shapes={
        GuardReport: (
            *shown("since=since_unix_seconds until=until_unix_seconds", turn=rfc3339_of),
            *shown(verdict, "nodes reports=reported:count", reported, workloads),
            *shown("occasions could_not_see=unseen"),
        ),
        NodeCoverage: (
            *shown("node=name has_blackbox=has_box has_journal"),
            *shown("from=first_unix_seconds to=last_unix_seconds", turn=rfc3339_of),
            *shown("boots"),
        ),
        OverLimitRow: (
            *shown("name trigger=most.trigger reports nodes"),
            *shown("first_at=first_unix_seconds last_at=last_unix_seconds", turn=rfc3339_of),
            *shown("most_overrun_bytes=over_bytes limit_bytes most_overrun_name=name", of="most"),
            *shown("most_overrun_decision=most.decision"),
        ),
        RepeatVictim: shown("name occasions nodes harmed others_killed=others"),
        Occasion: (
            *shown("at=unix_seconds", turn=rfc3339_of),
            *shown("node boot_id"),
            *shown("mode", turn=one_of("observe enforce")),
            *shown("kind trigger decisions sentence refused held targets returned_bytes ending"),
            *shown("judgement", {"happened": what_happened}),
            *shown("kernel_kills=kills kernel_kills_unnamed=unnamed died_seconds:3", of="truth"),
            *shown("ended_seconds:3 recovered_seconds:3 seen_seconds:3", of="truth"),
        ),
        ReportTarget: (
            *shown("name cgroup=path inode"),
            *shown("step", turn=one_of("kill terminate freeze clamp unclamp")),
            *shown("predicted_bytes"),
        ),
        EndedWorkload: shown("name cgroup=path processes seconds:3 is_target is_at_limit"),
    },
)
