# SPDX-License-Identifier: Apache-2.0
"""``seawall check SW101``: one rule, for scripts; ``seawall check --slurm``: a node between jobs.

The second is started by slurmd on all nodes at once: what judges rules is imported for the first
alone.
"""

from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.cli.judging_options import add_judging_arguments
from seawall.cli.source_options import add_source_arguments
from seawall.problems import UsageProblem

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall check`` to its parser."""
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="e.g. SW101; see seawall rules list"
    )  # fmt: skip
    parser.add_argument("--npd", action="store_true", help="node-problem-detector's protocol")
    parser.add_argument(
        "--slurm", action="store_true",
        help="instead of a rule: what is broken here and what Slurm's jobs left, for "
        "HealthCheckProgram; "
        "exit 0, 1 a problem, 2 it could not be seen; drains as /etc/seawall/slurm.toml says",
    )  # fmt: skip
    parser.add_argument(
        "--config", metavar="FILE", help="with --slurm: instead of /etc/seawall/slurm.toml"
    )
    parser.add_argument(
        "--only", metavar="CHECKS", help="with --slurm: these alone, e.g. processes,shm,gpu"
    )
    parser.add_argument(
        "--report", action="store_true",
        help="with --slurm: drain nothing and ask slurmctld nothing, whatever the file says",
    )  # fmt: skip
    add_source_arguments(parser)
    add_judging_arguments(parser)


def complete(arguments: Namespace) -> None:
    """UsageProblem for neither a rule nor --slurm, and for what that one has no use for."""
    if not arguments.slurm:
        if arguments.id is None:
            raise UsageProblem("which rule? e.g. seawall check SW101; or --slurm")
        if arguments.config or arguments.only or arguments.report:
            raise UsageProblem("--config, --only and --report go with --slurm")
        return
    others = ("id", "npd", "bundle", "root", "at", "fail_on", "rules")
    if any(getattr(arguments, name) for name in others):
        raise UsageProblem(
            "--slurm looks at this machine alone: --config, --only, --report or --json"
        )


def run(arguments: Namespace) -> int:
    """Print the answer; the exit status."""
    if arguments.slurm:
        from seawall.cli.check_slurm import run_check  # noqa: PLC0415 - one of the two

        return run_check(
            arguments.config, arguments.only or "", is_report=arguments.report,
            is_json=arguments.json,
        )  # fmt: skip
    from seawall.cli.check_rule import run_rule  # noqa: PLC0415 - one of the two

    return run_rule(arguments)
