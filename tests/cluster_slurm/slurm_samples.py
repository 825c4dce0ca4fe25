"""Rows of Slurm's as its commands print them, made by hand."""

from dataclasses import replace

from seawall.cluster.slurm.slurm_rows import JOB_FIELDS, RowMarks, SlurmctldNodeRow, SlurmJobRow

MARKS = RowMarks.of("0123456789ab")
BOOT = "2026-11-29T07:02:50"
LATER = "2026-11-29T09:00:00"
NODE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=8 CPULoad=1.39 "
    "AvailableFeatures=(null) Gres=(null) NodeAddr=127.0.0.1 NodeHostName=vm Port=46799 "
    "Version=22.05.8 OS=Linux 6.1.0-28-amd64 #1 SMP PREEMPT_DYNAMIC  RealMemory=8000 "
    "State={state} ThreadsPerCore=1 Partitions=main,gpu  BootTime={boot} "
    "SlurmdStartTime=2026-11-29T18:35:55 AllocTRES=  ExtSensorsTemp=n/s{reason}"
)


def node_line(name: str, state: str, boot: str = BOOT, reason: str = "") -> str:
    reason = f" Reason={reason}" if reason else ""
    return NODE.format(name=name, state=state, boot=boot, reason=reason)


def node(name: str, state: str = "IDLE", boot: str = BOOT, reason: str = "") -> SlurmctldNodeRow:
    word, *flags = state.split("+")
    return SlurmctldNodeRow(name, word, frozenset(flags), "main", "6.1.0", boot, reason)


def job_line(**more: str) -> str:
    fields = {
        "JobID": "7", "ArrayJobID": "N/A", "ArrayTaskID": "N/A", "UserID": "1000",
        "UserName": "alice", "Account": "physics", "Partition": "main", "State": "RUNNING",
        "Reason": "None", "RestartCnt": "0", "BatchFlag": "1", "PriorityLong": "4294901759",
        "NodeList": "n1", "StartTime": "2026-11-29T18:00:00", "EndTime": "2026-11-29T19:00:00",
        "admin_comment": "", "Command": "(null)", "Name": "train", **more,
    }  # fmt: skip
    return MARKS.field.join(fields[name] for name in JOB_FIELDS) + f"{MARKS.row}\n"


JOB = SlurmJobRow(
    job=7, unit=7, task="", uid=1000, user="alice", account="physics", state="RUNNING",
    reason="None", restarts=0, is_batch=True, priority=100, nodes=("n1",), ended_seconds=None,
    admin_comment="", command="", name="train-7",
)  # fmt: skip


def job(number: int, **more: object) -> SlurmJobRow:
    """A job of alice's; its own unit unless ``more`` says another."""
    return replace(JOB, **{"job": number, "unit": number, **more})  # type: ignore[arg-type]
