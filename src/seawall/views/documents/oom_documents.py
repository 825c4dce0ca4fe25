# SPDX-License-Identifier: Apache-2.0
"""``seawall oom predict --json``."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from seawall.accounts.oom.agreement import Agreement
from seawall.accounts.oom.badness_ages import Formula
from seawall.accounts.oom.contenders import Contender
from seawall.accounts.oom.prediction import Prediction, Ranked
from seawall.accounts.oom.relief import Relief
from seawall.accounts.oom.scope import Scope
from seawall.views.documents.document_fields import (
    Document,
    shown,
    spread,
    unread,
)
from seawall.views.oom_predict_page import DESCRIBED_MOST, PredictPage


class FormulaRow(NamedTuple):
    """The age of oom_badness that was used."""

    formula: Formula
    is_own_kernel: bool
    """It is that of the kernel that runs there, not a "what if"."""


class MissingFile(NamedTuple):
    """Why there is no prediction."""

    path: str
    why: str


def formula(prediction: Prediction) -> FormulaRow:
    """The age of oom_badness that was used."""
    return FormulaRow(prediction.formula, prediction.is_own_kernel)


def ranking(prediction: Prediction) -> Sequence[Ranked]:
    """All that may be chosen, who dies first at the top; of processes that were described the
    first 100.
    """
    is_described = prediction.scope.kind == "described"
    return prediction.ranking[: DESCRIBED_MOST if is_described else None]


def left_out(prediction: Prediction) -> int:
    """How many processes of the ranking are not shown."""
    return len(prediction.ranking) - len(ranking(prediction))


def why_immune(one: Contender) -> str:
    """Why the kernel would never choose it."""
    return one.immune or ""


def missing(page: PredictPage) -> MissingFile | None:
    """Why there is no prediction; None: there is one."""
    return None if page.missing is None else MissingFile(page.missing.path, page.missing.why)


PREDICT: Final = Document(
    name="oom-predict",
    verb="seawall oom predict --json",
    about="Who the OOM killer would choose now. Additive within a major number; unlimited is null; "
    "what could not be read is absent and named in its object's unread.",
    pages=(PredictPage,),
    shapes={
        PredictPage: (
            *spread("prediction", Prediction),
            *shown(missing, "could_not_see=unseen bundle_notes"),
        ),
        Prediction: (
            *unread("scope=scope.kind limit=scope", formula, "killable why", ranking, left_out),
            *unread("immune kernel_threads hangs relief agreement notes"),
        ),
        Scope: shown(
            "name total_pages cgroup=group.path bytes=group.limit file=group.limit_file "
            "asked=asked.name"
        ),
        FormulaRow: shown(
            "name=formula.name holds_for=formula.holds_for text=formula.text unit=formula.unit "
            "is_own_kernel"
        ),
        Ranked: (
            *shown("pid=one.pid comm=one.comm points oom_score returns_bytes=returns.likely"),
            *shown("returns_least=least returns_most=most", of="returns", unit="bytes"),
            *shown("oom_score_adj=one.candidate.oom_score_adj"),
            *shown("swap page_tables hugetlb", of="one", unit="bytes"),
            *shown("dies_with_cgroup=group shares_memory_with=shares ends_container"),
            *unread("workload"),
            *unread("anon file shmem", of="one", unit="bytes"),
            *unread("kernel_oom_score=one.kernel_score"),
        ),
        Contender: (*shown("pid comm"), *shown({"why": why_immune})),
        Relief: shown("outcome needed_bytes freed_bytes kills tied largest_tied_bytes first"),
        Agreement: shown("compared differ=off_count order_agrees first=off"),
    },
)
