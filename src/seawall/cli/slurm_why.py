# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why --slurm``: who killed a node, why a job is held, why nobody is."""

import time
from typing import TYPE_CHECKING

from seawall.cli.cluster_source import ClusterVerb
from seawall.cli.slurm_options import slurm_folder
from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.cluster.slurm.slurm_why_page import SlurmWhyPage


class SlurmWhyVerb(ClusterVerb["SlurmWhyPage"]):
    """By the controller's folder; slurmctld is not asked."""

    name = "slurm-why"
    text_view = "seawall.cluster.slurm.slurm_why_text:slurm_why_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.slurm.slurm_why_document:SLURM_WHY"

    def page(self) -> "SlurmWhyPage":
        from seawall.cluster.slurm.slurm_suspects_page import slurm_suspects  # noqa: PLC0415 - of Slurm
        from seawall.cluster.slurm.slurm_why_page import slurm_why  # noqa: PLC0415 - likewise

        folder = slurm_folder(self.arguments)
        state = folder.read()
        if state.polled_at is None and not state.message:
            raise UsageProblem(
                f"{folder.path}: no controller has written here; it does so on the host of "
                "slurmctld (seawall cluster controller --slurm; another folder: --state DIR)"
            )
        reading = slurm_suspects(
            state, str(folder.path), time.time(), has_controller=folder.has_active()
        )
        return slurm_why(reading, state, self.arguments.subject)


run = SlurmWhyVerb.run
