# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster undo --slurm``: holds are taken off, also without the folder."""

from typing import TYPE_CHECKING

from seawall.cli.slurm_act import SlurmActVerb

if TYPE_CHECKING:
    from seawall.cluster.pages.cluster_act_page import ClusterActPage
    from seawall.cluster.slurm.slurm_acts import SlurmActs


class SlurmUndoVerb(SlurmActVerb):
    """One deed of a person with Slurm's AdminLevel Operator."""

    def deed(self, acts: "SlurmActs") -> "ClusterActPage":
        if self.arguments.all:
            return acts.undo_all()
        return acts.release(self.arguments.subject, "undo")


run = SlurmUndoVerb.run
