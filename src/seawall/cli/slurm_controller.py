# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster controller --slurm``: asks slurmctld until it is ended."""

import logging
import signal
from argparse import Namespace

from seawall.cli.cluster_controller import log_to_stderr
from seawall.cli.slurm_options import slurm_commands, slurm_folder, slurm_policy_of
from seawall.problems import UsageProblem


def run(arguments: Namespace) -> int:
    """UsageProblem: another one runs with this folder, or the policy is wrong."""
    from seawall.cluster.slurm.slurm_observer import SlurmObserver  # noqa: PLC0415 - of Slurm

    if arguments.act:
        raise UsageProblem("--act is of Kubernetes; what may be done in Slurm says the policy")
    policy, folder = slurm_policy_of(arguments), slurm_folder(arguments)
    if not folder.be_active():
        raise UsageProblem(f"{folder.path}: another controller runs with this folder")
    log_to_stderr("seawall.slurm")
    words = "dry run: nobody is held" if policy.dry_run else f"approval: {policy.approval}"
    logging.getLogger("seawall.slurm").info("%s", words)
    controller = SlurmObserver(slurm_commands(arguments), folder, policy, arguments.slurm_poll)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: controller.stop())
    try:
        if arguments.once:
            controller.turn()
        else:
            controller.run()
    finally:
        folder.end()
    return 0
