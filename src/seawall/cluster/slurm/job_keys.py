# SPDX-License-Identifier: Apache-2.0
"""How a job is known again after it was requeued, submitted anew or renamed.  Pure.

User and account are slurmctld's word; whoever is accused is so with both, and nobody can be accused
by what another user writes.
"""

import re
from typing import Final

from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.judge.workload_keys import stable_name
from seawall.cluster.slurm.slurm_rows import SlurmJobRow

LEVEL_UNIT: Final = 1
"""The job with all its requeues, or the array with all its tasks."""
LEVEL_NAME: Final = 2
"""User, account, and the name without numbers."""
LEVEL_SCRIPT: Final = 3
"""User, account, and the script without numbers; of srun and salloc the program."""
JOB_NUMBER: Final = re.compile(r"(?:slurm:)?(\d{1,18})(?:_(\d{1,9}))?(?:[.@].*)?", re.ASCII)
"""Number and task of ``4711``, ``4700_12``, and of what node verbs print: ``slurm:4711@alice``."""
SCRIPT_MOST: Final = 1 << 16
_LETTERS: Final = 16
_NAME_MOST: Final = 64
_NUMBERS: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d+", re.ASCII)


def job_keys(row: SlurmJobRow, script: str | None) -> tuple[WorkloadKey, ...]:
    """Fine to coarse.  ``script``: its digest; None: it was not read; empty: it has none."""
    owner = f"{row.uid}/{row.account}"
    keys = [
        WorkloadKey(LEVEL_UNIT, f"{owner}/job {row.unit}"),
        WorkloadKey(LEVEL_NAME, f"{owner}/name {_short(stable_name(row.name))}"),
    ]
    if script:
        keys.append(WorkloadKey(LEVEL_SCRIPT, f"{owner}/script {script}"))
    elif script == "" and not row.is_batch and row.command:
        program = stable_name(row.command.rpartition("/")[2])
        keys.append(WorkloadKey(LEVEL_SCRIPT, f"{owner}/program {_short(program)}"))
    return tuple(keys)


def script_digest(script: str) -> str:
    """Of a batch script: seeds, dates and numbers of a series do not make it another one."""
    stable = _NUMBERS.sub("#", script[:SCRIPT_MOST]).strip()
    return _digest(stable) if stable else ""


def _short(name: str) -> str:
    """Names may be long, and hold what steers a terminal."""
    if len(name) <= _NAME_MOST and name.isprintable():
        return name
    return _digest(name)


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415 - not whole in the self-contained file

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_LETTERS]
