# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster controller --slurm``: asks slurmctld until it is ended."""

import logging
import signal
from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING

from seawall.cli.cluster_controller import log_to_stderr
from seawall.cli.slurm_options import slurm_commands, slurm_folder, slurm_policy_of
from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.cluster.slurm.slurm_policy import SlurmPolicy
    from seawall.cluster.slurm.turn_sink import TurnSink


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
    with ExitStack() as stack:
        stack.callback(folder.end)
        address = arguments.metrics_address or policy.metrics_address
        sink = _metrics(address, policy, stack) if address and not arguments.once else None
        commands, poll = slurm_commands(arguments), arguments.slurm_poll
        controller = SlurmObserver(commands, folder, policy, poll, sink)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: controller.stop())
        if arguments.once:
            controller.turn()
        else:
            controller.run()
    return 0


def _metrics(address: str, policy: "SlurmPolicy", stack: ExitStack) -> "TurnSink":
    """Served until ``stack`` ends; UsageProblem: no such address, or the extra is not there."""
    from seawall.cli.guard_metrics import address_of  # noqa: PLC0415 - where they are asked for

    try:
        from seawall.cluster.observer.observer_metrics import ObserverEndpoint  # noqa: PLC0415
        from seawall.cluster.slurm.slurm_metrics import SlurmMetrics  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "seawall":
            raise
        raise UsageProblem(
            f"metrics_address: no Python module {problem.name}: it needs the extra `cluster`: "
            "pip install 'seawall[cluster]'"
        ) from None
    try:
        host, port = address_of(address)
    except UsageProblem:
        raise UsageProblem(f"metrics_address {address}: expected ADDRESS:PORT") from None
    metrics = SlurmMetrics(policy)
    try:
        endpoint = ObserverEndpoint(host, port, metrics, metrics.problem)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"metrics_address {address}: {words}") from error
    endpoint.start()
    stack.callback(endpoint.close)
    logging.getLogger("seawall.slurm").info("metrics on %s:%d", host, endpoint.port)
    return metrics
