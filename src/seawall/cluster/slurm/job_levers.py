# SPDX-License-Identifier: Apache-2.0
"""Holds that are laid on jobs, and taken off again: scontrol's words, each written down before.

The way back stands in the controller's folder and, where we may write it, in the job's
AdminComment, which only administrators write and everybody reads.
"""

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.cluster.slurm.hold_plan import HoldStep
from seawall.cluster.slurm.job_quarantine import JobHold, JobQuarantine
from seawall.cluster.slurm.slurm_rows import SlurmJobRow
from seawall.cluster.slurm.slurm_state import SlurmStateFolder
from seawall.host.slurm_commands import SlurmCommandProblem, SlurmCommands, SlurmSilence

_TARGET: Final = re.compile(r"[0-9]{1,10}(?:_(?:[0-9]{1,10}|\[[0-9,:-]{1,65536}\]))?\Z", re.ASCII)
_COMMENT: Final = re.compile(
    r"seawall: held as (\S{1,64}), priority before ([0-9]{1,10})(?:;|\Z)", re.ASCII
)
_BASIC: Final = "priority/basic"
_FACTORS: Final = "%Y|%A|%B|%F|%J|%P|%Q|%S|%T"
"""Of sprio: the priority, and the factors of which it is made."""


class CommentedHold(NamedTuple):
    """What a job's AdminComment says of a hold of ours."""

    quarantine: str
    priority_before: int


def commented_hold(row: SlurmJobRow) -> CommentedHold | None:
    """None: it says nothing of us."""
    found = _COMMENT.match(row.admin_comment)
    return CommentedHold(found[1], int(found[2])) if found else None


class JobLevers:
    """Each method does one thing to one target and says what became of it."""

    def __init__(
        self, commands: SlurmCommands, folder: SlurmStateFolder, priority_type: str
    ) -> None:
        self._commands, self._folder = commands, folder
        self.is_basic = priority_type == _BASIC

    def hold(self, name: str, step: HoldStep, rows: list[SlurmJobRow]) -> JobHold | None:
        """Begin, do, say.  None: a person has released the quarantine since it was planned."""
        begun = JobHold(
            step.target, step.lever, time.time(), step.priority_before, "begun",
            restores=self._restores(step),
        )  # fmt: skip
        with self._folder.change() as state:
            one = state.quarantines.get(name)
            if one is None or one.state != "Active":
                return None
            state.quarantines[name] = one.with_hold(begun)
        try:
            self._check(step.target)
            if step.lever == "requeuehold":
                self._commands.text("scontrol", "requeuehold", step.target)
            else:
                self._hold(one, step, rows)
        except SlurmSilence as problem:
            ended = replace(begun, words=str(problem))  # the next look says what became of it
        except SlurmCommandProblem as problem:
            ended = replace(begun, result="refused", words=str(problem))
        else:
            ended = replace(begun, result="done")
        self._note(name, ended)
        return ended

    def _hold(self, one: JobQuarantine, step: HoldStep, rows: list[SlurmJobRow]) -> None:
        self._commands.text("scontrol", "hold", step.target)
        if not any(row.admin_comment for row in rows):  # another tool's is not written over
            why = "nodes died with it" if one.nodes else "a person's order"
            self._comment(
                step.target,
                f"seawall: held as {one.name}, priority before {step.priority_before}; "
                f"{why}: ask your administrators",
            )

    def _comment(self, target: str, words: str) -> None:
        """For people, and for an undo without our folder; an Operator may not write it."""
        with contextlib.suppress(SlurmCommandProblem):
            self._commands.text("scontrol", "update", f"JobId={target}", f"AdminComment={words}")

    def release(
        self, one: JobQuarantine, hold: JobHold, jobs: Mapping[int, SlurmJobRow]
    ) -> JobHold:
        """Take it off, if it is still as we left it; written down by whoever asked."""
        rows = [row for row in rows_of(hold.target, jobs) if not row.is_over]
        if not rows:
            return replace(hold, result="gone", words="it ended")
        held = [row for row in rows if row.priority == 0]
        if not held and hold.lever == "requeuehold":
            return replace(hold, result="undone", words="")  # with its hold
        if not held:
            return replace(hold, result="changed", words="somebody released it since")
        is_requeued = any(
            other.lever == "requeuehold" and _unit(other.target) == _unit(hold.target)
            for other in one.holds
        )
        if not is_requeued and all("JobHeldUser" in row.reason for row in held):
            return replace(hold, result="changed", words="its user holds it since")
        try:
            self._check(hold.target)
            self._commands.text("scontrol", "release", hold.target)
            self._restore(hold, rows)
        except SlurmCommandProblem as problem:
            return replace(hold, words=str(problem))
        return replace(hold, result="undone", words="")

    def _restore(self, hold: JobHold, rows: list[SlurmJobRow]) -> None:
        if hold.restores and hold.priority_before > 0:
            words = (f"JobId={hold.target}", f"Priority={hold.priority_before}")
            self._commands.text("scontrol", "update", *words)
        if any(commented_hold(row) for row in rows):
            self._comment(hold.target, "")

    def _restores(self, step: HoldStep) -> bool:
        """With priority/basic it would queue behind everybody; with priority/multifactor what an
        administrator has set would be gone, and what Slurm reckons must not be set for good.
        """
        if self.is_basic:
            return True
        if step.lever != "hold" or not _TARGET.match(step.target):
            return False
        try:
            text = self._commands.text(
                "sprio", "--noheader", f"--jobs={step.target.partition('_')[0]}",
                f"--format={_FACTORS}",
            )  # fmt: skip
        except SlurmCommandProblem:
            return False  # it reckons none, or none that waits
        return is_set_by_hand(text, step.priority_before)

    def _note(self, name: str, hold: JobHold) -> None:
        with self._folder.change() as state:
            if name in state.quarantines:
                state.quarantines[name] = state.quarantines[name].with_hold(hold)

    def _check(self, target: str) -> None:
        """A target comes from a file, too."""
        if not _TARGET.match(target):
            raise SlurmCommandProblem(f"no number of a job: {target[:80]!r}")


def is_set_by_hand(factors: str, priority: int) -> bool:
    """Whether sprio tells of a job of that priority, which no factor explains."""
    for line in factors.splitlines():
        whole, *parts = (word.strip() for word in line.split("|"))
        if whole == str(priority) and priority > 1 and not any(part.strip("0.") for part in parts):
            return True
    return False


def rows_of(target: str, jobs: Mapping[int, SlurmJobRow]) -> list[SlurmJobRow]:
    """Rows that a target names: a whole array, one task, tasks that waited together."""
    unit, _, tasks = target.partition("_")
    rows = [row for row in jobs.values() if str(row.unit) == unit or str(row.job) == unit]
    if not tasks:
        return rows
    if not tasks.startswith("["):
        return [row for row in rows if row.task in (tasks, "") or not row.task.isdigit()]
    return rows


def _unit(target: str) -> str:
    return target.partition("_")[0]
