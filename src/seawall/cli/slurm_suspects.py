# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster suspects --slurm``: jobs that are suspected of killing nodes."""

import time
from typing import TYPE_CHECKING

from seawall.cli.cluster_source import ClusterVerb
from seawall.cli.slurm_options import slurm_folder

if TYPE_CHECKING:
    from seawall.cluster.slurm.slurm_suspects_page import SlurmSuspectsPage


class SlurmSuspectsVerb(ClusterVerb["SlurmSuspectsPage"]):
    """By the controller's folder; slurmctld is not asked."""

    name = "slurm-suspects"
    text_view = "seawall.cluster.slurm.slurm_suspects_page:slurm_suspects_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.slurm.slurm_suspects_document:SLURM_SUSPECTS"

    def page(self) -> "SlurmSuspectsPage":
        from seawall.cluster.slurm.slurm_suspects_page import slurm_suspects  # noqa: PLC0415 - of Slurm

        folder = slurm_folder(self.arguments)
        return slurm_suspects(
            folder.read(), str(folder.path), time.time(), has_controller=folder.has_active()
        )


run = SlurmSuspectsVerb.run
