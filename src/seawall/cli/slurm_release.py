# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster release --slurm``: a quarantine ends, its jobs are let go."""

from typing import TYPE_CHECKING

from seawall.cli.slurm_act import SlurmActVerb

if TYPE_CHECKING:
    from seawall.cluster.pages.cluster_act_page import ClusterActPage
    from seawall.cluster.slurm.slurm_acts import SlurmActs


class SlurmReleaseVerb(SlurmActVerb):
    """One deed of a person with Slurm's AdminLevel Operator."""

    def deed(self, acts: "SlurmActs") -> "ClusterActPage":
        return acts.release(self.arguments.subject)


run = SlurmReleaseVerb.run
