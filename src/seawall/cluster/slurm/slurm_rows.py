# SPDX-License-Identifier: Apache-2.0
"""What ``scontrol -o show node``, ``squeue`` and ``sacct`` print, as rows.  Pure.

Slurm prints what users write (names, commands, comments) raw: a job's name may hold
`` NodeList=n1`` and whole further lines, and ``scontrol show job`` puts it before all that counts.
So jobs are read from commands that let us choose what stands between the fields, and that is drawn
anew for each call, after every name was written (``RowMarks``).  Nodes have no field of a user's.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.formats.host_list import hosts_of
from seawall.formats.iso_time import iso_datetime

NODES_MOST: Final = 65536
JOBS_MOST: Final = 500_000
_TEXT_MOST: Final = 1024
_NONE: Final = ("(null)", "None", "N/A", "n/a", "Unknown", "NONE", "")

# What the letters behind a state mean where flags have no words (before 21.08; man scontrol).
_SUFFIXES: Final = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN",
    "%": "POWERING_DOWN", "$": "MAINTENANCE", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}  # fmt: skip
PLANNED_FLAGS: Final = frozenset({
    "DRAIN", "DRAINED", "DRAINING", "FAIL", "MAINT", "MAINTENANCE", "POWER", "POWER_DOWN",
    "POWERED_DOWN", "POWER_SAVING", "POWER_UP", "POWERING_DOWN", "POWERING_UP", "REBOOT",
    "REBOOT_ISSUED", "REBOOT_REQUESTED", "FUTURE",
})  # fmt: skip
"""Somebody means to take the node away.  PLANNED is not among them: the backfill scheduler has a
job for it, and nobody is going to touch it."""
REBOOTED: Final = "Node unexpectedly rebooted"
RUNNING_STATES: Final = frozenset({
    "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT",
    "RESIZING",
})  # fmt: skip
WAITING_STATES: Final = frozenset({
    "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD",
})  # fmt: skip
NODE_FAIL: Final = "NODE_FAIL"


class RowMarks(NamedTuple):
    """What stands behind each field, and behind the last one of a row."""

    field: str
    row: str

    @classmethod
    def of(cls, nonce: str) -> "RowMarks":
        """``nonce``: hexadecimal digits that nobody could know before."""
        return cls(f"~{nonce}f~", f"~{nonce}r~")


JOB_FIELDS: Final = (
    "JobID", "ArrayJobID", "ArrayTaskID", "UserID", "UserName", "Account", "Partition", "State",
    "Reason", "RestartCnt", "BatchFlag", "PriorityLong", "NodeList", "StartTime", "EndTime",
    "admin_comment", "Command", "Name",
)  # fmt: skip
ACCOUNTING_FIELDS: Final = ("JobIDRaw", "UID", "User", "Account", "State", "NodeList", "End",
                            "JobName")  # fmt: skip


@dataclass(frozen=True, slots=True)
class SlurmctldNodeRow:
    """One node as slurmctld sees it."""

    name: str
    state: str
    """Without flags: IDLE, MIXED, ALLOCATED, DOWN, FUTURE, ..."""
    flags: frozenset[str]
    pool: str
    """Its partitions."""
    kernel: str
    """As ``uname -r`` has it."""
    boot: str
    """When it booted, as Slurm has it; empty: it never registered."""
    reason: str = ""

    @property
    def is_silent(self) -> bool:
        """Its slurmd does not answer."""
        return "NOT_RESPONDING" in self.flags

    @property
    def is_down(self) -> bool:
        """It was given up by slurmctld, or set so by somebody."""
        return self.state == "DOWN"

    @property
    def is_planned(self) -> bool:
        """Somebody means to take it away."""
        return bool(self.flags & PLANNED_FLAGS) or self.state in PLANNED_FLAGS


@dataclass(frozen=True, slots=True)
class SlurmJobRow:
    """One job, or the tasks of an array that wait together."""

    job: int
    unit: int
    """The array's number, else the job's: what one hold is of."""
    task: str
    """Of an array: ``7``, or ``8-200%3`` of those that wait; empty: none."""
    uid: int
    user: str
    account: str
    state: str
    reason: str
    restarts: int
    is_batch: bool
    priority: int
    """0: held."""
    nodes: tuple[str, ...]
    """That it has now."""
    ended_seconds: float | None
    admin_comment: str
    command: str
    name: str

    @property
    def is_on_nodes(self) -> bool:
        """Its nodes are its own now."""
        return self.state in RUNNING_STATES and bool(self.nodes)

    @property
    def is_over(self) -> bool:
        """It neither runs nor waits."""
        return self.state not in RUNNING_STATES and self.state not in WAITING_STATES

    @property
    def run(self) -> str:
        """The job until it is requeued."""
        return f"{self.job}.{self.restarts}"

    @property
    def address(self) -> str:
        """``7``, ``4700_12``, ``4700_[13-200]``: what scontrol takes for this row alone."""
        if not self.task:
            return str(self.job)
        tasks = self.task.partition("%")[0]
        return f"{self.unit}_{tasks if tasks.isdigit() else f'[{tasks}]'}"


class AccountedJob(NamedTuple):
    """A job that slurmdbd says ended with its node."""

    job: int
    uid: int
    user: str
    account: str
    nodes: tuple[str, ...]
    ended_seconds: float | None
    name: str


def node_rows(text: str) -> dict[str, SlurmctldNodeRow]:
    """By name.  ValueError: that is no answer of scontrol's."""
    rows = {}
    for line in text.splitlines():
        if not line.startswith("NodeName="):
            continue  # a reason may hold a line's end
        row = _node_row(line)
        if row is not None:
            rows[row.name] = row
        if len(rows) > NODES_MOST:
            raise ValueError(f"more than {NODES_MOST} nodes")
    if not rows and "NodeName=" in text:
        raise ValueError("scontrol show node: no node can be read")
    return rows


def _node_row(line: str) -> SlurmctldNodeRow | None:
    facts, _, reason = line.partition(" Reason=")
    name = re.match(r"NodeName=(\S{1,255})(?: |\Z)", facts)
    state = re.findall(r" State=(\S{1,400})", facts)
    if name is None or len(state) != 1:
        return None
    word, *flags = re.split(r"[+,]", state[0])
    while word and word[-1] in _SUFFIXES:
        flags.append(_SUFFIXES[word[-1]])
        word = word[:-1]
    return SlurmctldNodeRow(
        name[1], word, frozenset(flags), _value(facts, "Partitions"),
        _kernel(facts), _value(facts, "BootTime"), reason[:_TEXT_MOST],
    )  # fmt: skip


def _value(facts: str, key: str) -> str:
    found = re.search(rf" {key}=(\S{{1,1024}})", facts)
    return "" if found is None or found[1] in _NONE else found[1]


def _kernel(facts: str) -> str:
    found = re.search(r" OS=\S{1,64} (\S{1,128})", facts)
    return found[1] if found else ""


def job_format(marks: RowMarks) -> str:
    """For ``squeue -O``: whole fields, our marks between."""
    last = JOB_FIELDS[-1]
    return ",".join(f"{name}:0{marks.row if name == last else marks.field}" for name in JOB_FIELDS)


def job_rows(text: str, marks: RowMarks) -> tuple[dict[int, SlurmJobRow], int]:
    """By number, and how many could not be read.  ValueError: that is no answer of squeue's."""
    rows, bad = {}, 0
    for fields in _fields(text, marks, len(JOB_FIELDS)):
        row = None if fields is None else _job_row(fields)
        if row is None:
            bad += 1
        else:
            rows[row.job] = row
        if len(rows) > JOBS_MOST:
            raise ValueError(f"more than {JOBS_MOST} jobs")
    return rows, bad


def _fields(text: str, marks: RowMarks, count: int) -> Iterator[list[str] | None]:
    """None: a row that has not so many fields."""
    pieces = text.split(f"{marks.row}\n")
    if pieces[-1].strip():
        raise ValueError("the answer breaks off within a row")
    for piece in pieces[:-1]:
        fields = piece.split(marks.field)
        yield fields if len(fields) == count else None


def _job_row(fields: list[str]) -> SlurmJobRow | None:
    """None: it is no job as squeue prints them."""
    (job, array, task, uid, user, account, _, state, reason, restarts, batch, priority,
     nodes, _, ended, admin_comment, command, name) = fields  # fmt: skip
    try:
        number = int(job)
        unit = number if array in _NONE else int(array)
        return SlurmJobRow(
            number, unit, _tasks(task), int(uid), user[:256],
            "" if account in _NONE else account[:256], state[:64], reason[:256],
            int(restarts), batch == "1", int(priority), hosts_of(nodes), slurm_seconds(ended),
            "" if admin_comment in _NONE else admin_comment[:_TEXT_MOST],
            "" if command in _NONE else command[:_TEXT_MOST], name[:_TEXT_MOST],
        )  # fmt: skip
    except ValueError:
        return None


def _tasks(words: str) -> str:
    """ValueError: neither a task nor a list of them."""
    if words in _NONE:
        return ""
    if not _TASKS.match(words):
        raise ValueError(words[:80])
    return words


_TASKS: Final = re.compile(r"[0-9,:-]+(?:%[0-9]{1,9})?\Z", re.ASCII)


def accounted_jobs(text: str, marks: RowMarks) -> tuple[AccountedJob, ...]:
    """Of ``sacct --parsable --delimiter``: jobs, without their steps, that ended with a node."""
    found = []
    for piece in re.split(rf"{re.escape(marks.field)}\n", text):
        fields = piece.split(marks.field)
        if len(fields) != len(ACCOUNTING_FIELDS) or not fields[0].isdigit():
            continue  # a step, or the end
        job, uid, user, account, state, nodes, ended, name = fields
        if not state.startswith(NODE_FAIL) or not uid.isdigit():
            continue
        try:
            hosts = hosts_of(nodes)
        except ValueError:
            continue
        found.append(
            AccountedJob(int(job), int(uid), user[:256], account[:256], hosts, slurm_seconds(ended),
                         name[:_TEXT_MOST])
        )  # fmt: skip
    return tuple(found)


def slurm_seconds(words: str) -> float | None:
    """Of Slurm's time, which ``TZ=UTC`` made one of UTC."""
    if words in _NONE:
        return None
    try:
        return iso_datetime(f"{words}Z").timestamp()
    except ValueError:
        return None


def leaf_switches(text: str) -> dict[str, str]:
    """Of ``scontrol -o show topology``: node to its switch of level 0, of 64 nodes at most."""
    domains: dict[str, str] = {}
    for line in text.splitlines():
        found = re.match(r"SwitchName=(\S{1,255}) Level=0 .*?\bNodes=(\S+)", line)
        if found is None:
            continue
        try:
            hosts = hosts_of(found[2])
        except ValueError:
            continue
        if len(hosts) <= _DOMAIN_MOST:
            domains.update(dict.fromkeys(hosts, found[1]))
    return domains


_DOMAIN_MOST: Final = 64


def setting_of(config: str, names: Iterable[str]) -> dict[str, str]:
    """Of ``scontrol show config``: these, where they are there."""
    wanted, found = set(names), dict[str, str]()
    for line in config.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() in wanted:
            found.setdefault(name.strip(), value.strip())
    return found
