# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster approve --slurm``: what is proposed may be done."""

from typing import TYPE_CHECKING

from seawall.cli.slurm_act import SlurmActVerb

if TYPE_CHECKING:
    from seawall.cluster.pages.cluster_act_page import ClusterActPage
    from seawall.cluster.slurm.slurm_acts import SlurmActs


class SlurmApproveVerb(SlurmActVerb):
    """One deed of a person with Slurm's AdminLevel Operator."""

    def deed(self, acts: "SlurmActs") -> "ClusterActPage":
        return acts.approve(self.arguments.subject, may_end=self.arguments.yes)


run = SlurmApproveVerb.run
