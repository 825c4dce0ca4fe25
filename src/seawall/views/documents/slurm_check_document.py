# SPDX-License-Identifier: Apache-2.0
"""``seawall check --slurm --json``."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from seawall.accounts.slurm_health import SlurmProblem
from seawall.findings.blindness import NotSeen
from seawall.slurm_node import SlurmRemark
from seawall.views.documents.document_fields import Document, shown


class SlurmCheckPage(NamedTuple):
    """What one run of the check found."""

    node: str
    """The node's name in Slurm, where slurmd started the check; else the host's."""
    is_slurmds_call: bool
    """slurmd started it: nobody else's call drains or lifts."""
    running_jobs: int
    checks: Mapping[str, str]
    """Those that were made, and what the file says is done for a problem of each: report, drain."""
    problems: tuple[SlurmProblem, ...]
    """Broken, or left behind by a job that ended: each by itself makes the exit status 1."""
    notes: tuple[SlurmRemark, ...]
    """What a job that runs here may cause: it is judged by no exit status and drains nothing."""
    could_not_see: tuple[NotSeen, ...]
    """Checks that lack something; without a problem they make the exit status 2."""
    draining: tuple[str, ...]
    """Drained, lifted or left alone, and why; empty where there was nothing to decide."""


SLURM_CHECK: Final = Document(
    name="slurm-check",
    verb="seawall check --slurm --json",
    about="What is broken on a node of Slurm and what jobs that ended left on it.",
    pages=(SlurmCheckPage,),
    shapes={
        SlurmProblem: shown("check=kind words what:filled is_lasting"),
        SlurmRemark: shown("check=kind words"),
    },
)
