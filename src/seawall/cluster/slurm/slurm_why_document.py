# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why --slurm --json``."""

from typing import Final, Literal

from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.slurm.slurm_death import DeathJob, SlurmDeath
from seawall.cluster.slurm.slurm_suspects_document import SLURM_SUSPECTS
from seawall.cluster.slurm.slurm_why_page import SlurmWhyPage
from seawall.views.documents.document_fields import Document, shown


def kind(death: SlurmDeath) -> Literal["silent", "reset"]:
    """It fell silent until slurmctld gave it up, or it booted and nobody had meant it to"""
    return "silent" if death.kind is DeathKind.SILENT else "reset"


SLURM_WHY: Final = Document(
    name="slurm-why",
    verb="seawall cluster why --slurm --json",
    about="Which job kills nodes of a Slurm cluster, or what is known of one node or job.",
    is_of_host=False,
    pages=(SlurmWhyPage,),
    shapes={
        **SLURM_SUSPECTS.shapes,
        SlurmWhyPage: (
            *shown(
                "as_of=as_of_unix_seconds:time source cluster:filled "
                "watched_since=watched_since_unix_seconds:time "
                "looked_at=looked_at_unix_seconds:time is_watched is_dry_run "
                "nobody_is_held_because:filled", of="reading",
            ),
            *shown("subject:filled answer headline suspect others deaths hold done:filled"),
            *shown("outlook commands could_not_see=unseen"),
        ),
        SlurmDeath: shown(
            "node died_at=moment_seconds:time observed_at=observed_seconds:time", kind,
            "partitions=stratum.pool kernel=stratum.kernel switch=domain:filled jobs"
        ),
        DeathJob: shown("job=unit user uid account:filled name"),
    },
)  # fmt: skip
