# SPDX-License-Identifier: Apache-2.0
"""``seawall oom predict --json``: schema ``seawall.oom-predict/1``."""

from typing import Any, Final

from seawall.accounts.oom.agreement import Agreement
from seawall.accounts.oom.contenders import Contender
from seawall.accounts.oom.prediction import Prediction, Ranked
from seawall.accounts.oom.relief import Relief
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.oom_predict_page import PredictPage

DESCRIBED_MOST: Final = 100
"""Rows of processes that are only described: they are all alike."""


def document(head: dict[str, Any], page: PredictPage) -> dict[str, Any]:
    """Without a prediction its fields are absent and named in ``unread``."""
    values = with_unread(_values(page.prediction))
    missing = page.missing
    return {
        **head,
        **values,
        "unread": [*head["unread"], *values["unread"]],
        "missing": None if missing is None else {"path": missing.path, "why": missing.why},
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


_FIELDS: Final = (
    "scope", "limit", "formula", "killable", "why", "ranking", "left_out", "immune",
    "kernel_threads", "hangs", "relief", "agreement", "notes",
)  # fmt: skip


def _values(prediction: Prediction | None) -> dict[str, Any]:
    if prediction is None:
        return dict.fromkeys(_FIELDS)
    shown = prediction.ranking
    if prediction.scope.kind == "described":
        shown = shown[:DESCRIBED_MOST]
    formula = prediction.formula
    return {
        "scope": prediction.scope.kind,
        "limit": _limit(prediction),
        "formula": {
            "name": formula.name,
            "holds_for": formula.holds_for,
            "text": formula.text,
            "unit": formula.unit,
            "is_own_kernel": prediction.is_own_kernel,
        },
        "killable": prediction.killable,
        "why": prediction.why,
        "ranking": [_row(row) for row in shown],
        "left_out": len(prediction.ranking) - len(shown),
        "immune": [
            {"pid": one.pid, "comm": one.comm, "why": one.immune} for one in prediction.immune
        ],
        "kernel_threads": prediction.kernel_threads,
        "hangs": prediction.hangs,
        "relief": None if prediction.relief is None else _relief(prediction.relief),
        "agreement": None if prediction.agreement is None else _agreement(prediction.agreement),
        "notes": list(prediction.notes),
    }  # fmt: skip


def _limit(prediction: Prediction) -> dict[str, Any]:
    scope = prediction.scope
    group = scope.group
    return {
        "name": scope.name,
        "total_pages": scope.total_pages,
        "cgroup": None if group is None else group.path,
        "bytes": None if group is None else group.limit,
        "file": None if group is None else group.limit_file,
        "asked": None if scope.asked is None else scope.asked.name,
    }


def _row(row: Ranked) -> dict[str, Any]:
    one: Contender = row.one
    return {
        "pid": one.pid,
        "comm": one.comm,
        "points": row.points,
        "oom_score": row.oom_score,
        "returns_bytes": row.returns.likely,
        "returns_least_bytes": row.returns.least,
        "returns_most_bytes": row.returns.most,
        "oom_score_adj": one.candidate.oom_score_adj,
        "swap_bytes": one.swap,
        "page_tables_bytes": one.page_tables,
        "hugetlb_bytes": one.hugetlb,
        "dies_with_cgroup": row.group,
        "shares_memory_with": list(row.shares),
        "ends_container": row.ends_container,
        **with_unread(
            {
                "workload": row.workload,
                "anon_bytes": one.anon,
                "file_bytes": one.file,
                "shmem_bytes": one.shmem,
                "kernel_oom_score": one.kernel_score,
            }
        ),
    }


def _relief(relief: Relief) -> dict[str, Any]:
    return {
        "outcome": relief.outcome,
        "needed_bytes": relief.needed_bytes,
        "freed_bytes": relief.freed_bytes,
        "kills": relief.kills,
        "tied": relief.tied,
        "largest_tied_bytes": relief.largest_tied_bytes,
        "first": [
            {"pid": v.pid, "comm": v.comm, "points": v.points, "returns_bytes": v.returns_bytes}
            for v in relief.first
        ],
    }


def _agreement(agreement: Agreement) -> dict[str, Any]:
    return {
        "compared": agreement.compared,
        "differ": agreement.off_count,
        "order_agrees": agreement.order_agrees,
        "first": [
            {"pid": o.pid, "comm": o.comm, "ours": o.ours, "kernels": o.kernels}
            for o in agreement.off
        ],
    }
