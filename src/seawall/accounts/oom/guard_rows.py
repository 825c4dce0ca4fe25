# SPDX-License-Identifier: Apache-2.0
"""Which rows of a task table are the processes of Seawall's guard.

A table has no command lines.  The guard and its companions are Python, started by no name of
their own, and give themselves oom_score_adj -999 (own_process.py), which nothing else written in
Python is known to do.
"""

import re
from typing import Final

from seawall.readings.oom_log.oom_report import Task

GUARD_ADJ: Final = -999
_NAME: Final = re.compile(r"seawall(?:-guard)?|python3?(?:\.\d{1,2})?", re.ASCII)


def is_of_guard(task: Task) -> bool:
    """By its name and its oom_score_adj; also where the kernel may not kill it at all (-1000)."""
    adj = task.oom_score_adj
    return adj is not None and adj <= GUARD_ADJ and _NAME.fullmatch(task.comm) is not None
