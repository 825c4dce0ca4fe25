# SPDX-License-Identifier: Apache-2.0
"""One runner for the verbs of ``seawall cluster ... --slurm`` that change something."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from seawall.cli.cluster_source import ClusterVerb
from seawall.cli.slurm_options import person, slurm_commands, slurm_folder
from seawall.cli.statuses import NOT_WHOLE

if TYPE_CHECKING:
    from seawall.cluster.pages.cluster_act_page import ClusterActPage
    from seawall.cluster.slurm.slurm_acts import SlurmActs


class SlurmActVerb(ClusterVerb["ClusterActPage"]):
    """What each write was, or would be, is its answer: the same page as of Kubernetes."""

    name = "cluster-act"
    text_view = "seawall.cluster.pages.cluster_act_text:act_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.pages.cluster_act_document:ACT"

    def page(self) -> "ClusterActPage":
        """UsageProblem: nothing was written."""
        from seawall.cluster.slurm.slurm_acts import SlurmActs  # noqa: PLC0415 - of Slurm alone

        asked = self.arguments
        return self.deed(
            SlurmActs(
                slurm_commands(asked), slurm_folder(asked), person(),
                is_dry_run=asked.dry_run,
            )
        )  # fmt: skip

    @abstractmethod
    def deed(self, acts: "SlurmActs") -> "ClusterActPage":
        """Do it, or in a dry run all but that."""

    def status(self, page: "ClusterActPage") -> int:
        return NOT_WHOLE if page.outcome == "partly" else 0
