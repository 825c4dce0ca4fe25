# SPDX-License-Identifier: Apache-2.0
"""What slurmctld and slurmdbd know, asked by Slurm's commands; nothing is changed here."""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.cluster.slurm.job_keys import SCRIPT_MOST, script_digest
from seawall.cluster.slurm.slurm_rows import (
    ACCOUNTING_FIELDS,
    AccountedJob,
    RowMarks,
    SlurmctldNodeRow,
    SlurmJobRow,
    accounted_jobs,
    job_format,
    job_rows,
    leaf_switches,
    node_rows,
    setting_of,
)
from seawall.host.slurm_commands import SlurmCommandProblem, SlurmCommands

SETTINGS: Final = ("ClusterName", "SlurmdTimeout", "PriorityType", "SLURM_VERSION", "SlurmUser")
_SCRIPT_SECONDS: Final = 5.0
_SCRIPTS_A_LOOK: Final = 20
_SCRIPTS_KEPT: Final = 20_000
_TRIES_MOST: Final = 3
_SLURMD_TIMEOUT: Final = 300.0


@dataclass(frozen=True, slots=True)
class SlurmView:
    """One whole look."""

    at_seconds: float
    """Unix seconds, before the first question."""
    nodes: Mapping[str, SlurmctldNodeRow]
    jobs: Mapping[int, SlurmJobRow]
    unread_jobs: int
    """Rows that are no jobs as squeue prints them."""


class SlurmReader:
    """Each method says SlurmCommandProblem where there is no answer."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._scripts: dict[int, str] = {}
        self._tries: dict[int, int] = {}
        self._scripts_left = _SCRIPTS_A_LOOK
        self.settings: Mapping[str, str] = {}

    def view(self) -> SlurmView:
        """Nodes and jobs as of now."""
        at = time.time()
        if not self.settings:
            config = self._commands.text("scontrol", "show", "config")
            self.settings = setting_of(config, SETTINGS)
        self._scripts_left = _SCRIPTS_A_LOOK
        try:
            nodes = node_rows(self._commands.text("scontrol", "-o", "--all", "show", "node"))
            jobs, bad = self.jobs()
        except ValueError as problem:
            raise SlurmCommandProblem(str(problem)) from None
        if not nodes:
            raise SlurmCommandProblem("scontrol show node: no nodes")
        return SlurmView(at, nodes, jobs, bad)

    def jobs(self) -> tuple[dict[int, SlurmJobRow], int]:
        """By number, and how many could not be read.  ValueError: it breaks off."""
        marks = RowMarks.of(os.urandom(12).hex())
        text = self._commands.text(
            "squeue", "--all", "--noheader", "--states=all", "--local", "-O", job_format(marks)
        )
        return job_rows(text, marks)

    def jobs_now(self) -> dict[int, SlurmJobRow]:
        """The same, for what is about to be written."""
        try:
            return self.jobs()[0]
        except ValueError as problem:
            raise SlurmCommandProblem(str(problem)) from None

    def accounted(self, since_seconds: float) -> tuple[AccountedJob, ...]:
        """Jobs that slurmdbd says ended with a node since then."""
        marks = RowMarks.of(os.urandom(12).hex())
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since_seconds))
        text = self._commands.text(
            "sacct", "--allusers", "--duplicates", "--allocations", "--noheader", "--parsable",
            f"--delimiter={marks.field}", f"--starttime={since}", "--endtime=now",
            "--state=NODE_FAIL", f"--format={','.join(ACCOUNTING_FIELDS)}",
        )  # fmt: skip
        return accounted_jobs(text, marks)

    def switches(self) -> dict[str, str]:
        """Node to its leaf switch; empty where the site told Slurm of none."""
        try:
            return leaf_switches(self._commands.text("scontrol", "-o", "show", "topology"))
        except SlurmCommandProblem:
            return {}

    def digest(self, row: SlurmJobRow) -> str | None:
        """Of its script; empty: it has none; None: it was not read.  A few are asked for a look."""
        if not row.is_batch:
            return ""
        known = self._scripts.get(row.unit)
        if known is not None or self._scripts_left <= 0:
            return known
        if self._tries.get(row.unit, 0) >= _TRIES_MOST:
            return None
        self._scripts_left -= 1
        try:
            script = self._commands.text(
                "scontrol", "write", "batch_script", str(row.job), "-",
                seconds=_SCRIPT_SECONDS, bytes_most=64 << 20,
            )  # fmt: skip
        except SlurmCommandProblem:
            self._tries[row.unit] = self._tries.get(row.unit, 0) + 1
            return None
        self._scripts[row.unit] = digest = script_digest(script[:SCRIPT_MOST])
        while len(self._scripts) > _SCRIPTS_KEPT:
            del self._scripts[next(iter(self._scripts))]
        while len(self._tries) > _SCRIPTS_KEPT:
            del self._tries[next(iter(self._tries))]
        return digest

    def round_seconds(self, poll_seconds: float) -> float:
        """How far apart nodes can be found silent that fell silent together: slurmctld pings all
        nodes three times in SlurmdTimeout, and waits MessageTimeout for each answer.
        """
        word = self.settings.get("SlurmdTimeout", "").partition(" ")[0]
        timeout = float(word) if word.isdigit() and int(word) else _SLURMD_TIMEOUT
        return min(timeout / 3.0, 120.0) + poll_seconds + 10.0

    def is_beside_controller(self) -> str:
        """Why this host's word does not count: another one has the active slurmctld.  Empty: it
        has.  Of several controllers on several hosts one acts, and slurmctld itself says which.
        """
        for line in self._commands.text("scontrol", "ping").splitlines():
            words = line.split()
            if len(words) >= 5 and words[1] == "at" and words[-1] == "UP":
                host = words[2].partition(".")[0]
                own = socket.gethostname().partition(".")[0]
                return "" if host == own else f"the active slurmctld is on {host}, not on {own}"
        return "no slurmctld says that it is up"
