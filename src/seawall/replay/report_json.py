# SPDX-License-Identifier: Apache-2.0
"""``seawall guard report --json`` (``seawall.guard-report/1``)."""

from typing import Any

from seawall.blackbox.record_times import rfc3339_of
from seawall.replay.report_all_nodes import poison_in
from seawall.replay.report_limits import OverLimitRow, over_limits
from seawall.replay.report_model import EndedWorkload, GuardReport, NodeCoverage, Occasion
from seawall.replay.report_words import verdict, what_happened
from seawall.views.document import not_seen_rows


def document(head: dict[str, Any], report: GuardReport) -> dict[str, Any]:
    """As ``schemas/guard-report.json`` has it."""
    return {
        **head,
        "since": rfc3339_of(report.since_unix_seconds),
        "until": rfc3339_of(report.until_unix_seconds),
        "verdict": verdict(report),
        "nodes": [_node(node) for node in report.nodes],
        "reports": len(report.reported),
        "reported": [_over_limit(row) for row in over_limits(report.reported)],
        "workloads": [
            {"name": row.name, "occasions": row.occasions, "nodes": list(row.nodes),
             "harmed": row.harmed, "others_killed": row.others}
            for row in poison_in(report.occasions)
        ],
        "occasions": [_occasion(occasion) for occasion in report.occasions],
        "could_not_see": not_seen_rows(report.unseen),
    }  # fmt: skip


def _node(node: NodeCoverage) -> dict[str, Any]:
    first, last = node.first_unix_seconds, node.last_unix_seconds
    return {
        "node": node.name, "has_blackbox": node.has_box, "has_journal": node.has_journal,
        "from": None if first is None else rfc3339_of(first),
        "to": None if last is None else rfc3339_of(last), "boots": node.boots,
    }  # fmt: skip


def _over_limit(row: OverLimitRow) -> dict[str, Any]:
    most = row.most
    return {
        "name": row.name, "trigger": most.trigger, "reports": row.reports,
        "nodes": list(row.nodes), "first_at": rfc3339_of(row.first_unix_seconds),
        "last_at": rfc3339_of(row.last_unix_seconds), "most_overrun_bytes": most.over_bytes,
        "limit_bytes": most.limit_bytes, "most_overrun_name": most.name,
        "most_overrun_decision": most.decision,
    }  # fmt: skip


def _occasion(one: Occasion) -> dict[str, Any]:
    truth = one.truth
    return {
        "at": rfc3339_of(one.unix_seconds), "node": one.node, "boot_id": one.boot_id,
        "mode": one.mode, "kind": one.kind, "trigger": one.trigger, "decisions": one.decisions,
        "sentence": one.sentence, "refused": one.refused, "held": one.held,
        "targets": [
            {"name": target.name, "cgroup": target.path, "inode": target.inode,
             "step": target.step, "predicted_bytes": target.predicted_bytes}
            for target in one.targets
        ],
        "returned_bytes": one.returned_bytes,
        "ending": one.ending, "judgement": one.judgement, "happened": what_happened(one),
        "kernel_kills": [_kill(kill) for kill in truth.kills],
        "kernel_kills_unnamed": truth.unnamed,
        "died_seconds": _rounded(truth.died_seconds),
        "ended_seconds": _rounded(truth.ended_seconds),
        "recovered_seconds": _rounded(truth.recovered_seconds),
        "seen_seconds": _rounded(truth.seen_seconds),
    }  # fmt: skip


def _kill(kill: EndedWorkload) -> dict[str, Any]:
    return {
        "name": kill.name, "cgroup": kill.path, "processes": kill.processes,
        "seconds": _rounded(kill.seconds), "is_target": kill.is_target,
        "is_at_limit": kill.is_at_limit,
    }  # fmt: skip


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
