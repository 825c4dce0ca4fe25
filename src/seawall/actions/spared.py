# SPDX-License-Identifier: Apache-2.0
"""Whom no order reaches in a cgroup that is acted on, and who is left when it was."""

from collections.abc import Callable
from typing import TypeAlias

from seawall.actions import session_daemons, step_daemons

SparedTest: TypeAlias = Callable[[int], bool]
"""Whether a process, by its number, is left alone."""


def spared_in(folder: int) -> SparedTest | None:
    """For an open folder: a job's slurmstepd, a session's sshd; None: nobody is spared in it."""
    if step_daemons.is_of_job(folder):
        return step_daemons.is_step_daemon
    if session_daemons.is_of_session(folder):
        return session_daemons.is_session_daemon
    return None
