# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster suspects --slurm --json``."""

from typing import Final

from seawall.cluster.slurm.job_quarantine import JobHold
from seawall.cluster.slurm.slurm_suspects_page import SlurmSuspectRow, SlurmSuspectsPage
from seawall.views.documents.document_fields import Document, shown


def known_by(row: SlurmSuspectRow) -> str:
    """By what it is known again: its number, its name, or its script"""
    return {1: "job", 2: "name", 3: "script"}.get(row.suspect.key.level, "job")


SLURM_SUSPECTS: Final = Document(
    name="slurm-suspects",
    verb="seawall cluster suspects --slurm --json",
    about="The jobs that are suspected of killing nodes of a Slurm cluster, worst first.",
    is_of_host=False,
    pages=(SlurmSuspectsPage,),
    shapes={
        SlurmSuspectsPage: shown(
            "as_of=as_of_unix_seconds:time source cluster:filled "
            "watched_since=watched_since_unix_seconds:time "
            "looked_at=looked_at_unix_seconds:time is_watched is_dry_run "
            "nobody_is_held_because:filled deaths "
            "evidence_folder:filled records suspects=rows could_not_see=unseen"
        ),
        SlurmSuspectRow: shown(
            "name=suspect.name user=suspect.user uid=suspect.uid account=suspect.account:filled",
            "job_name=suspect.label",
            known_by,
            "key_value=suspect.key.value state=suspect.state verdict=suspect.verdict "
            "score_log10=suspect.score_log10 threshold_log10=suspect.threshold_log10 "
            "nodes=suspect.nodes why_not=suspect.why_not:filled "
            "named_at=suspect.named_seconds:time expires_at=suspect.expires_seconds:time "
            "approved_by=suspect.approved_by:filled released_by=suspect.released_by:filled "
            "last_death_at=last_death_unix_seconds:time jobs_held records_accuse "
            "holds=suspect.holds",
        ),
        JobHold: shown(
            "target lever at=at_seconds:time priority_before restores result words:filled"
        ),
    },
)  # fmt: skip
