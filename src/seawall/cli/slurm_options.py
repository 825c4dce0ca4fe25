# SPDX-License-Identifier: Apache-2.0
"""Options of ``seawall cluster ... --slurm``, and what they stand for."""

import getpass
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Final

from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.cluster.slurm.slurm_policy import SlurmPolicy
    from seawall.cluster.slurm.slurm_state import SlurmStateFolder
    from seawall.host.slurm_commands import SlurmCommands

SLURM_VERBS: Final = ("why", "suspects", "quarantine", "approve", "release", "undo", "controller")
"""Of ``seawall cluster``: those that know Slurm."""
_FOLDER: Final = "/var/lib/seawall/slurm-controller"
_POLICY: Final = "/etc/seawall/slurm-controller.toml"
_POLICY_MOST: Final = 1 << 20


def add_slurm_options(verb: ArgumentParser, name: str) -> None:
    """Of one verb."""
    group = verb.add_argument_group("Slurm (docs/slurm.md)")
    group.add_argument(
        "--slurm", action="store_true", help="of the Slurm cluster of this host, not of Kubernetes"
    )
    group.add_argument(
        "--state", dest="slurm_state", metavar="DIR", default=_FOLDER,
        help="the controller's folder (default %(default)s)",
    )  # fmt: skip
    if name in ("why", "suspects"):
        return
    group.add_argument(
        "--conf", dest="slurm_conf", metavar="FILE", default="",
        help="slurm.conf (default $SLURM_CONF, else where Slurm looks)",
    )  # fmt: skip
    if name == "quarantine":
        group.add_argument(
            "--by", dest="slurm_by", choices=("job", "name", "script"), default="job",
            help="by what its jobs are known again: job, also when it is requeued; name or script, "
            "also when its user submits it anew (default %(default)s)",
        )  # fmt: skip
    if name in ("controller", "quarantine"):
        group.add_argument(
            "--policy", dest="slurm_policy", metavar="FILE", help=f"default {_POLICY}, if there"
        )
    if name == "controller":
        group.add_argument(
            "--poll", dest="slurm_poll", type=_poll_of, default=30.0, metavar="SECONDS",
            help="between two looks, 1 to 300 (default %(default)g)",
        )  # fmt: skip


def refuse_kubernetes_options(arguments: Namespace) -> None:
    """UsageProblem: one that only a Kubernetes cluster has, beside ``--slurm``."""
    for option, name in (
        ("--from", "dump"),
        ("--kubeconfig", "kubeconfig"),
        ("--context", "context"),
    ):
        if getattr(arguments, name, None) is not None:
            raise UsageProblem(
                f"{option} is of Kubernetes; --slurm reads the controller's folder: --state DIR"
            )


def slurm_folder(arguments: Namespace) -> "SlurmStateFolder":
    """That was named."""
    from seawall.cluster.slurm.slurm_state import SlurmStateFolder  # noqa: PLC0415 - of Slurm alone

    return SlurmStateFolder(arguments.slurm_state)


def slurm_commands(arguments: Namespace) -> "SlurmCommands":
    """With the slurm.conf that was named."""
    from seawall.host.slurm_commands import SlurmCommands  # noqa: PLC0415 - of Slurm alone

    return SlurmCommands(arguments.slurm_conf)


def slurm_policy_of(arguments: Namespace) -> "SlurmPolicy":
    """UsageProblem: it cannot be read, or something in it is wrong."""
    from seawall.cluster.slurm.slurm_policy import SlurmPolicy, slurm_policy  # noqa: PLC0415
    from seawall.host.input_file import open_input  # noqa: PLC0415 - of Slurm alone

    path = arguments.slurm_policy or _POLICY
    try:
        with open_input(path, "a policy") as file:
            text = file.read(_POLICY_MOST)
    except FileNotFoundError:
        if arguments.slurm_policy is None:
            return SlurmPolicy()
        raise UsageProblem(f"{path}: no such file; expected a policy") from None
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}") from error
    return slurm_policy(text, path)


def person() -> str:
    """In whose name something is done: who called sudo, else who runs this."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _poll_of(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 1.0 <= seconds <= 300.0:
        raise ArgumentTypeError(f"expected seconds from 1 to 300, not {text!r}")
    return seconds
