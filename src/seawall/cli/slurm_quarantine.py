# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster quarantine JOB --slurm``: a person's own word against a job."""

from typing import TYPE_CHECKING

from seawall.cli.slurm_act import SlurmActVerb
from seawall.cli.slurm_options import slurm_policy_of
from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.cluster.pages.cluster_act_page import ClusterActPage
    from seawall.cluster.slurm.slurm_acts import SlurmActs


class SlurmQuarantineVerb(SlurmActVerb):
    """Writes an active quarantine; the controller holds its jobs."""

    def deed(self, acts: "SlurmActs") -> "ClusterActPage":
        from seawall.cluster.slurm.job_keys import (  # noqa: PLC0415 - of Slurm alone
            LEVEL_NAME,
            LEVEL_SCRIPT,
            LEVEL_UNIT,
        )
        from seawall.cluster.slurm.slurm_acts import HoldOrder  # noqa: PLC0415 - likewise

        asked = self.arguments
        if asked.mode is not None:
            raise UsageProblem("--mode is of Kubernetes; in Slurm a job is held")
        if asked.yes:
            raise UsageProblem(
                "--yes: a job that runs is ended only after a conviction; scancel ends this one"
            )
        levels = {"job": LEVEL_UNIT, "name": LEVEL_NAME, "script": LEVEL_SCRIPT}
        order = HoldOrder(asked.workload, levels[asked.slurm_by], asked.life, asked.reason)
        return acts.quarantine(order, slurm_policy_of(asked))


run = SlurmQuarantineVerb.run
