# SPDX-License-Identifier: Apache-2.0
"""What slurmctld is told of a job that the guard ended here: AdminComment, and the end of it all.

Both are asked for by the node's owner (``job_comment``, ``job_end_whole``) and done by Slurm's own
commands, in a child of the aide with a deadline: slurmctld may be what is down.

The number of a task's job may be that of its array too (slurmctld gives the last task the number
of the whole), and ``scancel`` and ``scontrol update`` would then mean every task.  So squeue is
asked first, for fields of a fixed width that no user writes, and a task is named as
``ARRAY_TASK``.  A job is ended whole with ``scancel``: it ends the steps on all nodes, and the job
is not requeued to kill the next node.
"""

import re
from typing import Any, Final, NamedTuple

from seawall.guard.tell.plain import plain
from seawall.host.slurm_commands import FOLDERS, SlurmCommandProblem, SlurmCommands

SECONDS: Final = 8.0
"""For each of three commands; MessageTimeout is 10 s, and they try again for longer."""
COMMENT_MOST: Final = 1000
_ANSWER_MOST: Final = 8 << 20
_NUMBER_WIDTH: Final = 20
_NO_TASK: Final = "N/A"
_WIDTHS: Final = {
    "JobID": _NUMBER_WIDTH, "ArrayJobID": _NUMBER_WIDTH, "ArrayTaskID": _NUMBER_WIDTH,
    "NumNodes": _NUMBER_WIDTH, "admin_comment": 2 * COMMENT_MOST,
}  # fmt: skip
_STDERR: Final = re.compile(r"^ *StdErr=(/.{1,4095})$", re.MULTILINE)
_FORMAT: Final = ",".join(f"{name}:{width}" for name, width in _WIDTHS.items())


class RunningJob(NamedTuple):
    """As slurmctld has it."""

    name: str
    """``4711``, or ``4700_12`` for a task of an array: nobody else is meant by it."""
    nodes: int
    comment: str


def run(request: dict[str, Any]) -> dict[str, Any]:
    """In the aide's child: ``done`` in words, ``problem``; ``stderr``: the file of the job's error
    output, where ``wants_stderr`` asks for it.
    """
    job, words = str(request.get("job", "")), str(request.get("words", ""))
    commands = JobCommands(str(request.get("commands", "")), str(request.get("conf", "")))
    done: list[str] = []
    problems: list[str] = []
    stderr = ""
    try:
        found = commands.find(job)
        if request.get("comment") is True:
            try:
                commands.comment(found, words, str(request.get("decision", "")))
                done.append("AdminComment")
            except SlurmCommandProblem as refusal:
                problems.append(plain(str(refusal), 200))
        if request.get("end") is True and found.nodes > 1:
            commands.end(found)
            done.append(f"scancel {found.name}")
        stderr = commands.stderr_of(found) if request.get("wants_stderr") is True else ""
    except SlurmCommandProblem as refusal:
        problems.append(plain(str(refusal), 200))
    problem = "; ".join(problems)[:400]
    return {"done": ", ".join(done), "problem": problem, "stderr": stderr}


class JobCommands:
    """squeue, scontrol and scancel of this node."""

    def __init__(self, folder: str, conf: str) -> None:
        """``folder``: where they are, else where such programs are; ``conf``: SLURM_CONF."""
        self._commands = SlurmCommands(conf, folders=folder or FOLDERS, ends_with_us=True)

    def find(self, job: str) -> RunningJob:
        """By its own number; SlurmCommandProblem where slurmctld does not know it (any more)."""
        if not job.isdecimal():
            raise SlurmCommandProblem(f"job {plain(job, 32)} has no number that its commands take")
        told = self._told("squeue", "--noheader", f"--jobs={job}", f"--Format={_FORMAT}")
        found = [row for line in told.split("\n") if (row := row_of(line, job)) is not None]
        if len(found) != 1:
            raise SlurmCommandProblem(f"squeue does not know job {job}")
        return found[0]

    def comment(self, job: RunningJob, words: str, decision: str) -> None:
        """Behind what stands there; once for each decision."""
        if decision and decision in job.comment:
            return
        text = f"{job.comment}; {words}" if job.comment else words
        text = plain(text, 10 * COMMENT_MOST)[-COMMENT_MOST:]
        self._told("scontrol", "update", f"JobId={job.name}", f"AdminComment={text}")

    def stderr_of(self, job: RunningJob) -> str:
        """Its path as slurmctld fills it in; empty where it does not name one.

        A user who forges that line in another field gains a file that the user may write anyway.
        """
        found = _STDERR.search(self._told("scontrol", "show", "job", job.name))
        return found[1] if found else ""

    def end(self, job: RunningJob) -> None:
        """On all its nodes."""
        self._told("scancel", job.name)

    def _told(self, *words: str) -> str:
        out = self._commands.output(*words, seconds=SECONDS, bytes_most=_ANSWER_MOST)
        return out.decode("utf-8", "replace")


def row_of(line: str, job: str) -> RunningJob | None:
    """One line of squeue; None: it is of another job of the array, or none."""
    fields, at = [], 0
    for width in _WIDTHS.values():
        fields.append(line[at : at + width].strip())
        at += width
    number, array, task, nodes, comment = fields
    if number != job or not nodes.isdecimal():
        return None
    is_task = task.isdecimal() and array.isdecimal()
    if not is_task and task != _NO_TASK:
        return None  # tasks that have not begun: more than one
    comment = "" if comment in ("N/A", "(null)") else comment
    return RunningJob(f"{array}_{task}" if is_task else job, int(nodes), comment)
